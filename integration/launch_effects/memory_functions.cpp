// Allocation and free, by every interface that has addresses. A free is noted before the driver is told, an allocation
// after it has answered: so that no other thread's block of the same address is taken for this one.
#include "fresh_memory.h"
#include "instrument.h"
#include "scrub_stack.h"

using launch_effects::FreshMemory;
using launch_effects::Instrument;

namespace {

template <typename Forward>
CUresult allocate(CUdeviceptr* address, std::size_t size, const Forward& forward) {
  FreshMemory* const fresh = FreshMemory::get();
  const CUresult result =
      fresh != nullptr && address != nullptr && size != 0 ? fresh->allocate(address, size) : forward();
  Instrument* const instrument = Instrument::get();
  if (instrument != nullptr && result == CUDA_SUCCESS && address != nullptr && size != 0)
    instrument->allocated(*address, size);
  launch_effects::scrub_stack();
  return result;
}

template <typename Forward>
CUresult release(CUdeviceptr address, const Forward& forward) {
  if (address == 0) return forward();
  if (Instrument* const instrument = Instrument::get()) instrument->freed(address);
  FreshMemory* const fresh = FreshMemory::get();
  const CUresult result = fresh != nullptr && fresh->owns(address) ? fresh->free(address) : forward();
  launch_effects::scrub_stack();
  return result;
}

// Memory that is the driver's own in every run.
CUresult note(CUdeviceptr address, std::size_t size) {
  if (Instrument* const instrument = Instrument::get()) instrument->allocated(address, size);
  return CUDA_SUCCESS;
}

}  // namespace

LAUNCH_EFFECTS_EXPORT cuMemAlloc_v2(CUdeviceptr* address, size_t size) {
  return allocate(address, size, [&] { return LAUNCH_EFFECTS_NEXT(cuMemAlloc_v2, address, size); });
}

LAUNCH_EFFECTS_EXPORT cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width, size_t height,
                                         unsigned int element) {
  const CUresult result = LAUNCH_EFFECTS_NEXT(cuMemAllocPitch_v2, address, pitch, width, height, element);
  return result != CUDA_SUCCESS ? result : note(*address, *pitch * height);
}

LAUNCH_EFFECTS_EXPORT cuMemFree_v2(CUdeviceptr address) {
  return release(address, [&] { return LAUNCH_EFFECTS_NEXT(cuMemFree_v2, address); });
}

#define LAUNCH_EFFECTS_STREAM_ORDERED(suffix)                                                                 \
  LAUNCH_EFFECTS_EXPORT cuMemAllocAsync##suffix(CUdeviceptr* address, size_t size, CUstream stream) {         \
    return allocate(address, size,                                                                            \
                    [&] { return LAUNCH_EFFECTS_NEXT(cuMemAllocAsync##suffix, address, size, stream); });     \
  }                                                                                                           \
  LAUNCH_EFFECTS_EXPORT cuMemAllocFromPoolAsync##suffix(CUdeviceptr* address, size_t size, CUmemoryPool pool, \
                                                        CUstream stream) {                                    \
    return allocate(address, size, [&] {                                                                      \
      return LAUNCH_EFFECTS_NEXT(cuMemAllocFromPoolAsync##suffix, address, size, pool, stream);               \
    });                                                                                                       \
  }                                                                                                           \
  LAUNCH_EFFECTS_EXPORT cuMemFreeAsync##suffix(CUdeviceptr address, CUstream stream) {                        \
    return release(address, [&] { return LAUNCH_EFFECTS_NEXT(cuMemFreeAsync##suffix, address, stream); });    \
  }

LAUNCH_EFFECTS_STREAM_ORDERED()
LAUNCH_EFFECTS_STREAM_ORDERED(_ptsz)

// A program that maps memory itself: each mapping is a block.
LAUNCH_EFFECTS_EXPORT cuMemMap(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                               unsigned long long flags) {
  const CUresult result = LAUNCH_EFFECTS_NEXT(cuMemMap, address, size, offset, handle, flags);
  return result != CUDA_SUCCESS ? result : note(address, size);
}

LAUNCH_EFFECTS_EXPORT cuMemUnmap(CUdeviceptr address, size_t size) {
  if (Instrument* const instrument = Instrument::get()) instrument->freed_range(address, size);
  return LAUNCH_EFFECTS_NEXT(cuMemUnmap, address, size);
}

LAUNCH_EFFECTS_EXPORT cuDevicePrimaryCtxReset_v2(CUdevice device) {
  if (Instrument* const instrument = Instrument::get()) instrument->context_is_gone();
  return LAUNCH_EFFECTS_NEXT(cuDevicePrimaryCtxReset_v2, device);
}
