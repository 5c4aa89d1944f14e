#pragma once

// How an API function calls the driver: driver loaded, context bound, entry point there, failure noted as the thread's
// last error.

#include "context.h"
#include "driver.h"
#include "error.h"

namespace cudart {

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
constexpr DefaultStream kDefaultStream = DefaultStream::kPerThread;
#else
constexpr DefaultStream kDefaultStream = DefaultStream::kLegacy;
#endif

inline CUdeviceptr device_pointer(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

// The two below don't touch the last error, for functions that look at the result first.

// A driver function that needs no context.
template <auto Entry, typename... Args>
cudaError_t ask_driver(DefaultStream mode, Args... args) {
  if (const cudaError_t error = load_driver(); error != cudaSuccess) return error;
  const auto function = driver(mode).*Entry;
  if (!function) return cudaErrorCallRequiresNewerDriver;
  return to_runtime_error(function(args...));
}

// A driver function that works in the current context.
template <auto Entry, typename... Args>
cudaError_t ask_context(DefaultStream mode, Args... args) {
  if (const cudaError_t error = enter_context(); error != cudaSuccess) return error;
  const auto function = driver(mode).*Entry;
  if (!function) return cudaErrorCallRequiresNewerDriver;
  CUresult result = function(args...);
  if (__builtin_expect(result == CUDA_ERROR_INVALID_CONTEXT, 0) && rebind_context()) result = function(args...);
  return to_runtime_error(result);
}

// The same, as the whole of an API function.
template <auto Entry, typename... Args>
cudaError_t call_driver(DefaultStream mode, Args... args) {
  return record(ask_driver<Entry>(mode, args...));
}

template <auto Entry, typename... Args>
cudaError_t call_context(DefaultStream mode, Args... args) {
  return record(ask_context<Entry>(mode, args...));
}

}  // namespace cudart
