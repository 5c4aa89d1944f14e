#include "context.h"

#include <atomic>

#include "error.h"
#include "lock.h"
#include "registry.h"
#include "thread_state.h"

namespace cudart {
namespace {

constexpr int kMaxDevices = 64;

struct Primary {
  CUcontext context;  // as last retained
  bool live;          // and not reset since
};

Primary g_primaries[kMaxDevices];

// Counts device resets, from 1: a thread bound under an older generation may hold a dead context.
constinit std::atomic<unsigned> g_generation{1};

bool is_dead_primary(CUcontext context) {
  Guard guard;
  for (const Primary& primary : g_primaries) {
    if (primary.context == context) return !primary.live;
  }
  return false;
}

cudaError_t make_primary_current(int device) {
  CUcontext context = nullptr;
  if (const cudaError_t error = retain_primary(device, &context); error != cudaSuccess) return error;
  return to_runtime_error(driver().cuCtxSetCurrent(context));
}

cudaError_t bind() {
  CUcontext context = nullptr;
  if (const CUresult result = driver().cuCtxGetCurrent(&context); result != CUDA_SUCCESS)
    return to_runtime_error(result);
  if (context && !is_dead_primary(context)) return cudaSuccess;
  return make_primary_current(t_state.device);
}

}  // namespace

cudaError_t retain_primary(int device, CUcontext* context) {
  if (device < 0 || device >= kMaxDevices) return cudaErrorInvalidDevice;
  Guard guard;
  Primary& primary = g_primaries[device];
  if (!primary.live) {
    CUdevice handle = 0;
    if (const CUresult result = driver().cuDeviceGet(&handle, device); result != CUDA_SUCCESS)
      return to_runtime_error(result);
    if (const CUresult result = driver().cuDevicePrimaryCtxRetain(&primary.context, handle); result != CUDA_SUCCESS) {
      return to_runtime_error(result);
    }
    primary.live = true;
  }
  *context = primary.context;
  return cudaSuccess;
}

cudaError_t enter_context() {
  const unsigned generation = g_generation.load(std::memory_order_acquire);
  if (__builtin_expect(t_state.bound_generation == generation, 1)) return cudaSuccess;
  if (const cudaError_t error = load_driver(); error != cudaSuccess) return error;
  if (const cudaError_t error = bind(); error != cudaSuccess) return error;
  t_state.bound_generation = generation;
  return load_eagerly_if_asked();
}

bool rebind_context() {
  CUcontext context = nullptr;
  if (driver().cuCtxGetCurrent(&context) != CUDA_SUCCESS || context) return false;
  return make_primary_current(t_state.device) == cudaSuccess;
}

cudaError_t select_device(int device) {
  if (const cudaError_t error = check_device(device); error != cudaSuccess) return error;
  t_state.device = device;
  const unsigned generation = g_generation.load(std::memory_order_acquire);
  if (const cudaError_t error = make_primary_current(device); error != cudaSuccess) return error;
  t_state.bound_generation = generation;
  return load_eagerly_if_asked();
}

cudaError_t reset_device() {
  if (const cudaError_t error = load_driver(); error != cudaSuccess) return error;
  int device = 0;
  if (const cudaError_t error = current_device(&device); error != cudaSuccess) return error;
  if (const CUresult result = driver().cuDevicePrimaryCtxReset(device); result != CUDA_SUCCESS) {
    return to_runtime_error(result);
  }
  {
    Guard guard;
    if (device < kMaxDevices) g_primaries[device].live = false;
  }
  g_generation.fetch_add(1, std::memory_order_release);
  return cudaSuccess;
}

cudaError_t current_device(int* device) {
  if (const cudaError_t error = load_driver(); error != cudaSuccess) return error;
  CUdevice handle = 0;
  const CUresult result = driver().cuCtxGetDevice(&handle);
  if (result == CUDA_ERROR_INVALID_CONTEXT || result == CUDA_ERROR_CONTEXT_IS_DESTROYED) {
    *device = t_state.device;
    return cudaSuccess;
  }
  if (result == CUDA_SUCCESS) *device = handle;
  return to_runtime_error(result);
}

cudaError_t check_device(int device) {
  if (const cudaError_t error = load_driver(); error != cudaSuccess) return error;
  int count = 0;
  if (const CUresult result = driver().cuDeviceGetCount(&count); result != CUDA_SUCCESS)
    return to_runtime_error(result);
  if (!count) return cudaErrorNoDevice;
  return device >= 0 && device < count && device < kMaxDevices ? cudaSuccess : cudaErrorInvalidDevice;
}

}  // namespace cudart
