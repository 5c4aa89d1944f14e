#include "runtime.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <initializer_list>

namespace caching_pool {

void* next_function(const char* name) {
  if (void* function = dlsym(RTLD_NEXT, name)) return function;
  // A runtime that was loaded by dlopen is not in the global scope.
  for (const char* library : {"libcudart.so.13", "libcudart.so.12"}) {
    if (void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD)) {
      if (void* function = dlsym(handle, name)) return function;
    }
  }
  std::fprintf(stderr, "caching pool: no libcudart with %s is loaded\n", name);
  std::abort();
}

namespace real {

cudaError_t malloc(void** pointer, size_t size) {
  static auto* const function = next<cudaError_t(void**, size_t)>("cudaMalloc");
  return function(pointer, size);
}
cudaError_t free(void* pointer) {
  static auto* const function = next<cudaError_t(void*)>("cudaFree");
  return function(pointer);
}
cudaError_t mem_get_info(size_t* free, size_t* total) {
  static auto* const function = next<cudaError_t(size_t*, size_t*)>("cudaMemGetInfo");
  return function(free, total);
}
cudaError_t get_device(int* device) {
  static auto* const function = next<cudaError_t(int*)>("cudaGetDevice");
  return function(device);
}
cudaError_t clear_last_error() {
  static auto* const function = next<cudaError_t()>("cudaGetLastError");
  return function();
}
cudaError_t event_create(cudaEvent_t* event) {
  static auto* const function = next<cudaError_t(cudaEvent_t*, unsigned)>("cudaEventCreateWithFlags");
  return function(event, cudaEventDisableTiming);
}
cudaError_t event_record(cudaEvent_t event, cudaStream_t stream) {
  static auto* const function = next<cudaError_t(cudaEvent_t, cudaStream_t)>("cudaEventRecord");
  return function(event, stream);
}
cudaError_t event_query(cudaEvent_t event) {
  static auto* const function = next<cudaError_t(cudaEvent_t)>("cudaEventQuery");
  return function(event);
}
cudaError_t stream_wait_event(cudaStream_t stream, cudaEvent_t event) {
  static auto* const function = next<cudaError_t(cudaStream_t, cudaEvent_t, unsigned)>("cudaStreamWaitEvent");
  return function(stream, event, 0);
}
cudaError_t stream_synchronize(cudaStream_t stream) {
  static auto* const function = next<cudaError_t(cudaStream_t)>("cudaStreamSynchronize");
  return function(stream);
}
cudaError_t device_synchronize() {
  static auto* const function = next<cudaError_t()>("cudaDeviceSynchronize");
  return function();
}

}  // namespace real
}  // namespace caching_pool
