// The runtime's own functions, behind the ones that this library puts in front of them.
#pragma once

#include <cuda_runtime_api.h>

namespace caching_pool {

// The next definition of a function after this library's: the program's libcudart. Ends the process where there is
// none, as the caller was about to call it.
void* next_function(const char* name);

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(next_function(name));
}

// Calls that the pool itself makes.
namespace real {
cudaError_t malloc(void** pointer, size_t size);
cudaError_t free(void* pointer);
cudaError_t mem_get_info(size_t* free, size_t* total);
cudaError_t get_device(int* device);
cudaError_t clear_last_error();
cudaError_t event_create(cudaEvent_t* event);
cudaError_t event_record(cudaEvent_t event, cudaStream_t stream);
cudaError_t event_query(cudaEvent_t event);
cudaError_t stream_wait_event(cudaStream_t stream, cudaEvent_t event);
cudaError_t stream_synchronize(cudaStream_t stream);
cudaError_t device_synchronize();
}  // namespace real

}  // namespace caching_pool
