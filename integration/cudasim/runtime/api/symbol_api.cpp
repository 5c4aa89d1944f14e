// Variables of the program, by the addresses of their host shadows.

#include "api.h"
#include "call.h"
#include "registry.h"

using namespace cudart;

cudaError_t cudaGetSymbolAddress(void** devPtr, const void* symbol) {
  if (!devPtr) return record(cudaErrorInvalidValue);
  CUdeviceptr address = 0;
  size_t size = 0;
  const cudaError_t error = resolve_variable(symbol, &address, &size);
  if (error == cudaSuccess) *devPtr = reinterpret_cast<void*>(address);
  return record(error);
}

cudaError_t cudaGetSymbolSize(size_t* size, const void* symbol) {
  if (!size) return record(cudaErrorInvalidValue);
  CUdeviceptr address = 0;
  return record(resolve_variable(symbol, &address, size));
}
