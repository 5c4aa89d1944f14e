// Copies and sets: which bytes of blocks they write. What a launch finds written it reads.
#include <algorithm>

#include "instrument.h"
#include "scrub_stack.h"

using launch_effects::Instrument;

namespace {

void wrote(CUdeviceptr address, std::size_t size) {
  if (size == 0) return;
  if (Instrument* const instrument = Instrument::get()) instrument->wrote(address, size);
}

void copied(CUdeviceptr to, CUdeviceptr from, std::size_t size) {
  if (size == 0) return;
  if (Instrument* const instrument = Instrument::get()) instrument->copied(to, from, size);
}

void wrote_rows(CUdeviceptr address, std::size_t pitch, std::size_t width, std::size_t height) {
  for (std::size_t row = 0; row < height; ++row) wrote(address + row * pitch, width);
}

bool is_device(CUmemorytype type) { return type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_UNIFIED; }

template <typename Copy>
CUdeviceptr destination(const Copy& copy) {
  return copy.dstMemoryType == CU_MEMORYTYPE_UNIFIED && copy.dstDevice == 0
             ? reinterpret_cast<CUdeviceptr>(copy.dstHost)
             : copy.dstDevice;
}

template <typename Copy>
CUdeviceptr source(const Copy& copy) {
  return copy.srcMemoryType == CU_MEMORYTYPE_UNIFIED && copy.srcDevice == 0
             ? reinterpret_cast<CUdeviceptr>(copy.srcHost)
             : copy.srcDevice;
}

void copied_rows(CUdeviceptr to, std::size_t to_pitch, CUdeviceptr from, std::size_t from_pitch, bool from_device,
                 std::size_t width, std::size_t height) {
  for (std::size_t row = 0; row < height; ++row) {
    if (from_device) {
      copied(to + row * to_pitch, from + row * from_pitch, width);
    } else {
      wrote(to + row * to_pitch, width);
    }
  }
}

void copied(const CUDA_MEMCPY2D* copy) {
  if (copy == nullptr || !is_device(copy->dstMemoryType)) return;
  copied_rows(destination(*copy) + copy->dstY * copy->dstPitch + copy->dstXInBytes, copy->dstPitch,
              source(*copy) + copy->srcY * copy->srcPitch + copy->srcXInBytes, copy->srcPitch,
              is_device(copy->srcMemoryType), copy->WidthInBytes, copy->Height);
}

void copied(const CUDA_MEMCPY3D* copy) {
  if (copy == nullptr || !is_device(copy->dstMemoryType)) return;
  for (std::size_t plane = 0; plane < copy->Depth; ++plane) {
    const std::size_t to_row = (copy->dstZ + plane) * copy->dstHeight + copy->dstY;
    const std::size_t from_row = (copy->srcZ + plane) * copy->srcHeight + copy->srcY;
    copied_rows(destination(*copy) + to_row * copy->dstPitch + copy->dstXInBytes, copy->dstPitch,
                source(*copy) + from_row * copy->srcPitch + copy->srcXInBytes, copy->srcPitch,
                is_device(copy->srcMemoryType), copy->WidthInBytes, copy->Height);
  }
}

}  // namespace

#define LAUNCH_EFFECTS_NOTED(symbol, note, parameters, ...)           \
  LAUNCH_EFFECTS_EXPORT symbol parameters {                           \
    const CUresult result = LAUNCH_EFFECTS_NEXT(symbol, __VA_ARGS__); \
    if (result == CUDA_SUCCESS) note;                                 \
    launch_effects::scrub_stack();                                    \
    return result;                                                    \
  }

// Each twice: where stream 0 is the legacy stream, and where it is the thread's own.
#define LAUNCH_EFFECTS_COPY(symbol, suffix, note, parameters, ...) \
  LAUNCH_EFFECTS_NOTED(symbol, note, parameters, __VA_ARGS__)      \
  LAUNCH_EFFECTS_NOTED(symbol##suffix, note, parameters, __VA_ARGS__)

LAUNCH_EFFECTS_COPY(cuMemcpy, _ptds, copied(to, from, bytes), (CUdeviceptr to, CUdeviceptr from, size_t bytes), to,
                    from, bytes)
LAUNCH_EFFECTS_COPY(cuMemcpyAsync, _ptsz, copied(to, from, bytes),
                    (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream), to, from, bytes, stream)
LAUNCH_EFFECTS_COPY(cuMemcpyHtoD_v2, _ptds, wrote(to, bytes), (CUdeviceptr to, const void* from, size_t bytes), to,
                    from, bytes)
LAUNCH_EFFECTS_COPY(cuMemcpyHtoDAsync_v2, _ptsz, wrote(to, bytes),
                    (CUdeviceptr to, const void* from, size_t bytes, CUstream stream), to, from, bytes, stream)
LAUNCH_EFFECTS_COPY(cuMemcpyDtoD_v2, _ptds, copied(to, from, bytes), (CUdeviceptr to, CUdeviceptr from, size_t bytes),
                    to, from, bytes)
LAUNCH_EFFECTS_COPY(cuMemcpyDtoDAsync_v2, _ptsz, copied(to, from, bytes),
                    (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream), to, from, bytes, stream)
LAUNCH_EFFECTS_COPY(cuMemcpyPeer, _ptds, copied(to, from, bytes),
                    (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes), to,
                    to_context, from, from_context, bytes)
LAUNCH_EFFECTS_COPY(cuMemcpyPeerAsync, _ptsz, copied(to, from, bytes),
                    (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes,
                     CUstream stream),
                    to, to_context, from, from_context, bytes, stream)
LAUNCH_EFFECTS_COPY(cuMemcpy2D_v2, _ptds, copied(copy), (const CUDA_MEMCPY2D* copy), copy)
LAUNCH_EFFECTS_COPY(cuMemcpy2DUnaligned_v2, _ptds, copied(copy), (const CUDA_MEMCPY2D* copy), copy)
LAUNCH_EFFECTS_COPY(cuMemcpy2DAsync_v2, _ptsz, copied(copy), (const CUDA_MEMCPY2D* copy, CUstream stream), copy, stream)
LAUNCH_EFFECTS_COPY(cuMemcpy3D_v2, _ptds, copied(copy), (const CUDA_MEMCPY3D* copy), copy)
LAUNCH_EFFECTS_COPY(cuMemcpy3DAsync_v2, _ptsz, copied(copy), (const CUDA_MEMCPY3D* copy, CUstream stream), copy, stream)

#define LAUNCH_EFFECTS_SET(bits, type)                                                                              \
  LAUNCH_EFFECTS_COPY(cuMemsetD##bits##_v2, _ptds, wrote(to, count * sizeof(type)),                                 \
                      (CUdeviceptr to, type value, size_t count), to, value, count)                                 \
  LAUNCH_EFFECTS_COPY(cuMemsetD##bits##Async, _ptsz, wrote(to, count * sizeof(type)),                               \
                      (CUdeviceptr to, type value, size_t count, CUstream stream), to, value, count, stream)        \
  LAUNCH_EFFECTS_COPY(cuMemsetD2D##bits##_v2, _ptds, wrote_rows(to, pitch, width * sizeof(type), height),           \
                      (CUdeviceptr to, size_t pitch, type value, size_t width, size_t height), to, pitch, value,    \
                      width, height)                                                                                \
  LAUNCH_EFFECTS_COPY(cuMemsetD2D##bits##Async, _ptsz, wrote_rows(to, pitch, width * sizeof(type), height),         \
                      (CUdeviceptr to, size_t pitch, type value, size_t width, size_t height, CUstream stream), to, \
                      pitch, value, width, height, stream)

LAUNCH_EFFECTS_SET(8, unsigned char)
LAUNCH_EFFECTS_SET(16, unsigned short)
LAUNCH_EFFECTS_SET(32, unsigned int)
