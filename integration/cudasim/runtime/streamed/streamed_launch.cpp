// Launches, and host functions in a stream.

#include <limits.h>
#include <stdlib.h>

#include "api.h"
#include "call.h"
#include "launch.h"
#include "registry.h"

using namespace cudart;

namespace {

static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute) &&
              offsetof(cudaLaunchAttribute, val) == offsetof(CUlaunchAttribute, value));

cudaError_t launch(cudaError_t resolved, CUkernel kernel, dim3 grid, dim3 block, void** args, size_t shared_bytes,
                   cudaStream_t stream) {
  if (resolved != cudaSuccess) return record(resolved);
  if (shared_bytes > UINT_MAX) return record(cudaErrorInvalidValue);
  const cudaError_t error = ask_context<&DriverTable::cuLaunchKernel>(
      kDefaultStream, reinterpret_cast<CUfunction>(kernel), grid.x, grid.y, grid.z, block.x, block.y, block.z,
      static_cast<unsigned>(shared_bytes), stream, args, nullptr);
  return record(__builtin_expect(error == cudaSuccess, 1) ? error : explain_launch_failure(error, grid, block));
}

cudaError_t launch_compiled(cudaKernel_t handle, dim3 grid, dim3 block, void** args, size_t shared_bytes,
                            cudaStream_t stream) {
  if (!handle) return record(cudaErrorInvalidDeviceFunction);
  CUkernel kernel = nullptr;
  const cudaError_t resolved = resolve(reinterpret_cast<Function*>(handle), &kernel);
  return launch(resolved, kernel, grid, block, args, shared_bytes, stream);
}

struct Callback {
  cudaStreamCallback_t function;
  void* data;
};

void CUDA_CB run_callback(CUstream stream, CUresult status, void* data) {
  const Callback callback = *static_cast<Callback*>(data);
  free(data);
  callback.function(stream, to_runtime_error(status), callback.data);
}

}  // namespace

cudaError_t cudaLaunchKernel(const void* func, dim3 gridDim, dim3 blockDim, void** args, size_t sharedMem,
                             cudaStream_t stream) {
  CUkernel kernel = nullptr;
  const cudaError_t resolved = resolve_symbol(func, &kernel);
  return launch(resolved, kernel, gridDim, blockDim, args, sharedMem, stream);
}

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 gridDim, dim3 blockDim, void** args, size_t sharedMem,
                                    cudaStream_t stream) {
  return launch_compiled(kernel, gridDim, blockDim, args, sharedMem, stream);
}
#else
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 gridDim, dim3 blockDim, void** args, size_t sharedMem,
                               cudaStream_t stream) {
  return launch_compiled(kernel, gridDim, blockDim, args, sharedMem, stream);
}
#endif

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* func, void** args) {
  if (!config) return record(cudaErrorInvalidValue);
  CUkernel kernel = nullptr;
  if (const cudaError_t error = resolve_symbol(func, &kernel); error != cudaSuccess) return record(error);
  if (config->dynamicSmemBytes > UINT_MAX) return record(cudaErrorInvalidValue);
  CUlaunchConfig driver_config{};
  driver_config.gridDimX = config->gridDim.x;
  driver_config.gridDimY = config->gridDim.y;
  driver_config.gridDimZ = config->gridDim.z;
  driver_config.blockDimX = config->blockDim.x;
  driver_config.blockDimY = config->blockDim.y;
  driver_config.blockDimZ = config->blockDim.z;
  driver_config.sharedMemBytes = static_cast<unsigned>(config->dynamicSmemBytes);
  driver_config.hStream = config->stream;
  driver_config.attrs = reinterpret_cast<CUlaunchAttribute*>(config->attrs);
  driver_config.numAttrs = config->numAttrs;
  const cudaError_t error =
      ask_context<&DriverTable::cuLaunchKernelEx>(kDefaultStream, static_cast<const CUlaunchConfig*>(&driver_config),
                                                  reinterpret_cast<CUfunction>(kernel), args, nullptr);
  return record(explain_launch_failure(error, config->gridDim, config->blockDim));
}

cudaError_t cudaLaunchCooperativeKernel(const void* func, dim3 gridDim, dim3 blockDim, void** args, size_t sharedMem,
                                        cudaStream_t stream) {
  CUkernel kernel = nullptr;
  if (const cudaError_t error = resolve_symbol(func, &kernel); error != cudaSuccess) return record(error);
  if (sharedMem > UINT_MAX) return record(cudaErrorInvalidValue);
  const cudaError_t error = ask_context<&DriverTable::cuLaunchCooperativeKernel>(
      kDefaultStream, reinterpret_cast<CUfunction>(kernel), gridDim.x, gridDim.y, gridDim.z, blockDim.x, blockDim.y,
      blockDim.z, static_cast<unsigned>(sharedMem), stream, args);
  return record(explain_launch_failure(error, gridDim, blockDim));
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void* userData) {
  return call_context<&DriverTable::cuLaunchHostFunc>(kDefaultStream, stream, fn, userData);
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* userData,
                                  unsigned int flags) {
  if (!callback) return record(cudaErrorInvalidValue);
  auto* pending = static_cast<Callback*>(malloc(sizeof(Callback)));
  if (!pending) return record(cudaErrorMemoryAllocation);
  *pending = {callback, userData};
  const cudaError_t error = ask_context<&DriverTable::cuStreamAddCallback>(kDefaultStream, stream, run_callback,
                                                                           static_cast<void*>(pending), flags);
  if (error != cudaSuccess) free(pending);
  return record(error);
}
