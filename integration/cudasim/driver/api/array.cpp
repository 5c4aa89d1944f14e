// CUDA arrays, and copies of bytes from and to rows of them. Rectangles and boxes are in copy_shaped.cpp.
#define __CUDA_API_VERSION_INTERNAL
#include "api/copy_request.h"
#include "texture/arrays.h"

using namespace cudasim;

namespace {

CUresult create(CallSite& site, CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR* description) {
  return call(site, Needs::kContext, [&](Driver& driver, ContextId context) {
    if (out == nullptr || description == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return driver.arrays->create(context, *description, out);
  });
}

void forget(Driver& driver, const char* symbol, const Array& array) {
  std::vector<ByteRange> ranges;
  driver.memory.for_each_byte_range(array.base, array.slice * array.slices(),
                                    [&](ByteRange range) { ranges.push_back(range); });
  driver.engine.forget(symbol, ranges);
}

// Of one row, from a byte of it on.
CUresult one_row(Driver& driver, CUarray handle, std::size_t offset, std::size_t bytes, std::uintptr_t& address) {
  const Array* const array = driver.arrays->find(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const std::uint64_t row =
      array->description.Width * element_bytes(array->description.Format, array->description.NumChannels);
  if (offset > row || bytes > row - offset) return CUDA_ERROR_INVALID_VALUE;
  address = array->base + offset;
  return CUDA_SUCCESS;
}

// One side of a copy: memory, or a byte in an array's first row.
struct End {
  std::uintptr_t address = 0;
  Operand kind = Operand::kDevice;
  CUarray array = nullptr;
  bool is_array = false;
};

CUresult copy(CallSite& site, End to, End from, std::size_t bytes, CUstream stream, bool synchronous,
              StreamMode mode = StreamMode::kLegacy) {
  return call(site, Needs::kContext, [&](Driver& driver, ContextId context) {
    for (End* const end : {&to, &from}) {
      if (!end->is_array) continue;
      std::uintptr_t address = 0;
      if (const CUresult bad = one_row(driver, end->array, end->address, bytes, address); bad != CUDA_SUCCESS)
        return bad;
      end->address = address;
    }
    CopyRequest request;
    request.symbol = site.symbol;
    request.shape = {bytes, 1, 1};
    request.to = {to.address, bytes, bytes};
    request.from = {from.address, bytes, bytes};
    request.to_kind = to.kind;
    request.from_kind = from.kind;
    request.stream = stream;
    request.mode = mode;
    request.synchronous = synchronous;
    return queue_copy(driver, context, request);
  });
}

End in_array(CUarray array, std::size_t offset) { return {offset, Operand::kDevice, array, true}; }
End in_host(const void* host) { return {reinterpret_cast<std::uintptr_t>(host), Operand::kHost}; }
End in_device(CUdeviceptr device) { return {device, Operand::kDevice}; }

}  // namespace

CUDASIM_API cuArrayCreate_v2(CUarray* out, const CUDA_ARRAY_DESCRIPTOR* d) {
  static CallSite site{"cuArrayCreate_v2"};
  CUDA_ARRAY3D_DESCRIPTOR whole{};
  if (d != nullptr) {
    whole.Width = d->Width;
    whole.Height = d->Height;
    whole.Format = d->Format;
    whole.NumChannels = d->NumChannels;
  }
  return create(site, out, d == nullptr ? nullptr : &whole);
}

CUDASIM_API cuArray3DCreate_v2(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR* description) {
  static CallSite site{"cuArray3DCreate_v2"};
  return create(site, out, description);
}

CUDASIM_API cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR* out, CUarray handle) {
  static CallSite site{"cuArrayGetDescriptor_v2"};
  return call(site, Needs::kContext, [&](Driver& driver, ContextId) {
    const Array* const array = driver.arrays->find(handle);
    if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CUDA_ARRAY3D_DESCRIPTOR& d = array->description;
    *out = {d.Width, d.Height, d.Format, d.NumChannels};
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR* out, CUarray handle) {
  static CallSite site{"cuArray3DGetDescriptor_v2"};
  return call(site, Needs::kContext, [&](Driver& driver, ContextId) {
    const Array* const array = driver.arrays->find(handle);
    if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = array->description;
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuArrayDestroy(CUarray handle) {
  static CallSite site{"cuArrayDestroy"};
  return call(site, Needs::kContext, [&](Driver& driver, ContextId context) {
    const Array* array = driver.arrays->find(handle);
    if (array == nullptr || array->is_level) return CUDA_ERROR_INVALID_HANDLE;
    if (const CUresult result = driver.engine.wait_context(context); result != CUDA_SUCCESS) return result;
    array = driver.arrays->find(handle);  // the wait may have let another thread in
    if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    forget(driver, site.symbol, *array);
    return driver.arrays->destroy(handle);
  });
}

CUDASIM_API cuMipmappedArrayCreate(CUmipmappedArray* out, const CUDA_ARRAY3D_DESCRIPTOR* description, unsigned levels) {
  static CallSite site{"cuMipmappedArrayCreate"};
  return call(site, Needs::kContext, [&](Driver& driver, ContextId context) {
    if (out == nullptr || description == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return driver.arrays->create_mipmapped(context, *description, levels, out);
  });
}

CUDASIM_API cuMipmappedArrayGetLevel(CUarray* out, CUmipmappedArray handle, unsigned level) {
  static CallSite site{"cuMipmappedArrayGetLevel"};
  return call(site, Needs::kContext, [&](Driver& driver, ContextId) {
    const MipmappedArray* const array = driver.arrays->find(handle);
    if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (out == nullptr || level >= array->levels.size()) return CUDA_ERROR_INVALID_VALUE;
    *out = reinterpret_cast<CUarray>(array->levels[level].get());
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuMipmappedArrayDestroy(CUmipmappedArray handle) {
  static CallSite site{"cuMipmappedArrayDestroy"};
  return call(site, Needs::kContext, [&](Driver& driver, ContextId context) {
    if (driver.arrays->find(handle) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (const CUresult result = driver.engine.wait_context(context); result != CUDA_SUCCESS) return result;
    const MipmappedArray* const array = driver.arrays->find(handle);  // the wait may have let another thread in
    if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    for (const auto& level : array->levels) forget(driver, site.symbol, *level);
    return driver.arrays->destroy(handle);
  });
}

CUDASIM_API cuMemcpyHtoA_v2(CUarray to, size_t offset, const void* from, size_t bytes) {
  static CallSite site{"cuMemcpyHtoA_v2"};
  return copy(site, in_array(to, offset), in_host(from), bytes, nullptr, true);
}
CUDASIM_API cuMemcpyAtoH_v2(void* to, CUarray from, size_t offset, size_t bytes) {
  static CallSite site{"cuMemcpyAtoH_v2"};
  return copy(site, in_host(to), in_array(from, offset), bytes, nullptr, true);
}
CUDASIM_API cuMemcpyHtoAAsync_v2(CUarray to, size_t offset, const void* from, size_t bytes, CUstream stream) {
  static CallSite site{"cuMemcpyHtoAAsync_v2"};
  return copy(site, in_array(to, offset), in_host(from), bytes, stream, false);
}
CUDASIM_API cuMemcpyAtoHAsync_v2(void* to, CUarray from, size_t offset, size_t bytes, CUstream stream) {
  static CallSite site{"cuMemcpyAtoHAsync_v2"};
  return copy(site, in_host(to), in_array(from, offset), bytes, stream, false);
}
CUDASIM_API cuMemcpyDtoA_v2(CUarray to, size_t offset, CUdeviceptr from, size_t bytes) {
  static CallSite site{"cuMemcpyDtoA_v2"};
  return copy(site, in_array(to, offset), in_device(from), bytes, nullptr, true);
}
CUDASIM_API cuMemcpyAtoD_v2(CUdeviceptr to, CUarray from, size_t offset, size_t bytes) {
  static CallSite site{"cuMemcpyAtoD_v2"};
  return copy(site, in_device(to), in_array(from, offset), bytes, nullptr, true);
}
CUDASIM_API cuMemcpyAtoA_v2(CUarray to, size_t to_offset, CUarray from, size_t from_offset, size_t bytes) {
  static CallSite site{"cuMemcpyAtoA_v2"};
  return copy(site, in_array(to, to_offset), in_array(from, from_offset), bytes, nullptr, true);
}
