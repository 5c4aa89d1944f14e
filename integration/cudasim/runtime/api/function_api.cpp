// Kernels: attributes, occupancy, handles.

#include "api.h"
#include "call.h"
#include "registry.h"

using namespace cudart;

namespace {

struct Target {
  CUkernel kernel = nullptr;
  int device = 0;
};

// The kernel behind a stub or handle, and the device whose copy of it is meant.
cudaError_t find_target(const void* func, Target* target) {
  if (const cudaError_t error = enter_context(); error != cudaSuccess) return error;
  if (const cudaError_t error = resolve_symbol(func, &target->kernel); error != cudaSuccess) return error;
  return current_device(&target->device);
}

// Reads one attribute; one that the driver does not know leaves the member as it is.
class KernelAttributes {
 public:
  explicit KernelAttributes(const Target& target) : target_(target) {}

  template <typename Member>
  void operator()(Member& member, CUfunction_attribute attribute) {
    int value = 0;
    const cudaError_t error = ask_context<&DriverTable::cuKernelGetAttribute>(kDefaultStream, &value, attribute,
                                                                              target_.kernel, target_.device);
    if (error == cudaSuccess) {
      member = static_cast<Member>(value);
    } else if (error != cudaErrorInvalidValue && error != cudaErrorNotSupported && first_error_ == cudaSuccess) {
      first_error_ = error;
    }
  }

  cudaError_t first_error() const { return first_error_; }

 private:
  Target target_;
  cudaError_t first_error_ = cudaSuccess;
};

}  // namespace

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes* attr, const void* func) {
  if (!attr) return record(cudaErrorInvalidValue);
  Target target;
  if (const cudaError_t error = find_target(func, &target); error != cudaSuccess) return record(error);
  *attr = {};
  KernelAttributes ask(target);
  ask(attr->maxThreadsPerBlock, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  ask(attr->sharedSizeBytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  ask(attr->constSizeBytes, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES);
  ask(attr->localSizeBytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
  ask(attr->numRegs, CU_FUNC_ATTRIBUTE_NUM_REGS);
  ask(attr->ptxVersion, CU_FUNC_ATTRIBUTE_PTX_VERSION);
  ask(attr->binaryVersion, CU_FUNC_ATTRIBUTE_BINARY_VERSION);
  ask(attr->cacheModeCA, CU_FUNC_ATTRIBUTE_CACHE_MODE_CA);
  ask(attr->maxDynamicSharedSizeBytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  ask(attr->preferredShmemCarveout, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
  ask(attr->clusterDimMustBeSet, CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET);
  ask(attr->requiredClusterWidth, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH);
  ask(attr->requiredClusterHeight, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT);
  ask(attr->requiredClusterDepth, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH);
  ask(attr->clusterSchedulingPolicyPreference, CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE);
  ask(attr->nonPortableClusterSizeAllowed, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
  return record(ask.first_error());
}

cudaError_t cudaFuncSetAttribute(const void* func, enum cudaFuncAttribute attr, int value) {
  Target target;
  if (const cudaError_t error = find_target(func, &target); error != cudaSuccess) return record(error);
  return call_context<&DriverTable::cuKernelSetAttribute>(kDefaultStream, static_cast<CUfunction_attribute>(attr),
                                                          value, target.kernel, target.device);
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, enum cudaFuncAttribute attr, int value, int device) {
  return call_context<&DriverTable::cuKernelSetAttribute>(kDefaultStream, static_cast<CUfunction_attribute>(attr),
                                                          value, static_cast<CUkernel>(kernel), device);
}

cudaError_t cudaFuncSetCacheConfig(const void* func, enum cudaFuncCache cacheConfig) {
  Target target;
  if (const cudaError_t error = find_target(func, &target); error != cudaSuccess) return record(error);
  return call_context<&DriverTable::cuKernelSetCacheConfig>(kDefaultStream, target.kernel,
                                                            static_cast<CUfunc_cache>(cacheConfig), target.device);
}

cudaError_t cudaFuncSetSharedMemConfig(const void* func, enum cudaSharedMemConfig) {
  Target target;
  return record(find_target(func, &target));  // accepted and without meaning since Maxwell
}

cudaError_t cudaFuncGetName(const char** name, const void* func) {
  if (!name) return record(cudaErrorInvalidValue);
  Target target;
  if (const cudaError_t error = find_target(func, &target); error != cudaSuccess) return record(error);
  return call_context<&DriverTable::cuKernelGetName>(kDefaultStream, name, target.kernel);
}

cudaError_t cudaFuncGetParamInfo(const void* func, size_t paramIndex, size_t* paramOffset, size_t* paramSize) {
  Target target;
  if (const cudaError_t error = find_target(func, &target); error != cudaSuccess) return record(error);
  return call_context<&DriverTable::cuKernelGetParamInfo>(kDefaultStream, target.kernel, paramIndex, paramOffset,
                                                          paramSize);
}

cudaError_t cudaGetKernel(cudaKernel_t* kernelPtr, const void* entryFuncAddr) {
  if (!kernelPtr) return record(cudaErrorInvalidValue);
  Target target;
  if (const cudaError_t error = find_target(entryFuncAddr, &target); error != cudaSuccess) return record(error);
  *kernelPtr = target.kernel;
  return record(note_kernel(target.kernel));
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t* functionPtr, const void* symbolPtr) {
  if (!functionPtr) return record(cudaErrorInvalidValue);
  Target target;
  if (const cudaError_t error = find_target(symbolPtr, &target); error != cudaSuccess) return record(error);
  return call_context<&DriverTable::cuKernelGetFunction>(kDefaultStream, functionPtr, target.kernel);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* numBlocks, const void* func, int blockSize,
                                                          size_t dynamicSMemSize) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, func, blockSize, dynamicSMemSize,
                                                                cudaOccupancyDefault);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* numBlocks, const void* func, int blockSize,
                                                                   size_t dynamicSMemSize, unsigned int flags) {
  Target target;
  if (const cudaError_t error = find_target(func, &target); error != cudaSuccess) return record(error);
  return call_context<&DriverTable::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags>(
      kDefaultStream, numBlocks, reinterpret_cast<CUfunction>(target.kernel), blockSize, dynamicSMemSize, flags);
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* dynamicSmemSize, const void* func, int numBlocks,
                                                      int blockSize) {
  Target target;
  if (const cudaError_t error = find_target(func, &target); error != cudaSuccess) return record(error);
  return call_context<&DriverTable::cuOccupancyAvailableDynamicSMemPerBlock>(
      kDefaultStream, dynamicSmemSize, reinterpret_cast<CUfunction>(target.kernel), numBlocks, blockSize);
}
