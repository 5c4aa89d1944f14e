// Linear copies, between addresses and to and from variables.

#include "api.h"
#include "call.h"
#include "registry.h"

using namespace cudart;

namespace {

bool is_known(cudaMemcpyKind kind) { return kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault; }

cudaError_t copy(void* to, const void* from, size_t count, cudaMemcpyKind kind) {
  if (!is_known(kind)) return cudaErrorInvalidMemcpyDirection;
  if (!count) return enter_context();
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return ask_context<&DriverTable::cuMemcpyHtoD>(kDefaultStream, device_pointer(to), from, count);
    case cudaMemcpyDeviceToHost:
      return ask_context<&DriverTable::cuMemcpyDtoH>(kDefaultStream, to, device_pointer(from), count);
    case cudaMemcpyDeviceToDevice:
      return ask_context<&DriverTable::cuMemcpyDtoD>(kDefaultStream, device_pointer(to), device_pointer(from), count);
    default:
      return ask_context<&DriverTable::cuMemcpy>(kDefaultStream, device_pointer(to), device_pointer(from), count);
  }
}

cudaError_t copy_async(void* to, const void* from, size_t count, cudaMemcpyKind kind, cudaStream_t stream) {
  if (!is_known(kind)) return cudaErrorInvalidMemcpyDirection;
  if (!count) return enter_context();
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return ask_context<&DriverTable::cuMemcpyHtoDAsync>(kDefaultStream, device_pointer(to), from, count, stream);
    case cudaMemcpyDeviceToHost:
      return ask_context<&DriverTable::cuMemcpyDtoHAsync>(kDefaultStream, to, device_pointer(from), count, stream);
    case cudaMemcpyDeviceToDevice:
      return ask_context<&DriverTable::cuMemcpyDtoDAsync>(kDefaultStream, device_pointer(to), device_pointer(from),
                                                          count, stream);
    default:
      return ask_context<&DriverTable::cuMemcpyAsync>(kDefaultStream, device_pointer(to), device_pointer(from), count,
                                                      stream);
  }
}

// The address of the part [offset, offset + count) of a variable.
cudaError_t part_of_variable(const void* symbol, size_t count, size_t offset, void** address) {
  CUdeviceptr base = 0;
  size_t size = 0;
  if (const cudaError_t error = resolve_variable(symbol, &base, &size); error != cudaSuccess) return error;
  if (offset > size || count > size - offset) return cudaErrorInvalidValue;
  *address = reinterpret_cast<void*>(base + offset);
  return cudaSuccess;
}

bool leads_to_device(cudaMemcpyKind kind) {
  return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault;
}

bool leads_from_device(cudaMemcpyKind kind) {
  return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault;
}

}  // namespace

cudaError_t cudaMemcpy(void* dst, const void* src, size_t count, enum cudaMemcpyKind kind) {
  return record(copy(dst, src, count, kind));
}

cudaError_t cudaMemcpyAsync(void* dst, const void* src, size_t count, enum cudaMemcpyKind kind, cudaStream_t stream) {
  return record(copy_async(dst, src, count, kind, stream));
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* src, size_t count, size_t offset,
                               enum cudaMemcpyKind kind) {
  if (!leads_to_device(kind)) return record(cudaErrorInvalidMemcpyDirection);
  void* address = nullptr;
  const cudaError_t error = part_of_variable(symbol, count, offset, &address);
  return record(error == cudaSuccess ? copy(address, src, count, kind) : error);
}

cudaError_t cudaMemcpyFromSymbol(void* dst, const void* symbol, size_t count, size_t offset, enum cudaMemcpyKind kind) {
  if (!leads_from_device(kind)) return record(cudaErrorInvalidMemcpyDirection);
  void* address = nullptr;
  const cudaError_t error = part_of_variable(symbol, count, offset, &address);
  return record(error == cudaSuccess ? copy(dst, address, count, kind) : error);
}

cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* src, size_t count, size_t offset,
                                    enum cudaMemcpyKind kind, cudaStream_t stream) {
  if (!leads_to_device(kind)) return record(cudaErrorInvalidMemcpyDirection);
  void* address = nullptr;
  const cudaError_t error = part_of_variable(symbol, count, offset, &address);
  return record(error == cudaSuccess ? copy_async(address, src, count, kind, stream) : error);
}

cudaError_t cudaMemcpyFromSymbolAsync(void* dst, const void* symbol, size_t count, size_t offset,
                                      enum cudaMemcpyKind kind, cudaStream_t stream) {
  if (!leads_from_device(kind)) return record(cudaErrorInvalidMemcpyDirection);
  void* address = nullptr;
  const cudaError_t error = part_of_variable(symbol, count, offset, &address);
  return record(error == cudaSuccess ? copy_async(dst, address, count, kind, stream) : error);
}
