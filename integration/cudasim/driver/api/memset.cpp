// Sets of device memory: plain and 2D, of 8, 16 and 32 bits.
#define __CUDA_API_VERSION_INTERNAL
#include "api/copy_request.h"

using namespace cudasim;

namespace {

struct Pattern {
  std::uint32_t value;
  unsigned size;  // in bytes
};
Pattern pattern(unsigned char value) { return {value, 1}; }
Pattern pattern(unsigned short value) { return {value, 2}; }
Pattern pattern(unsigned int value) { return {value, 4}; }

struct How {
  StreamMode mode;
  CUstream stream;
  bool synchronous;
};
constexpr How kSync{StreamMode::kLegacy, nullptr, true};
constexpr How kSyncPerThread{StreamMode::kPerThread, nullptr, true};
How async(StreamMode mode, CUstream stream) { return {mode, stream, false}; }

// `width` in elements.
CUresult set_2d(CallSite& site, const How& how, CUdeviceptr to, std::uint64_t pitch, Pattern pattern,
                std::uint64_t width, std::uint64_t height) {
  return call(site, Needs::kContext, [&](Driver& driver, ContextId context) {
    SetRequest request;
    request.symbol = site.symbol;
    if (__builtin_mul_overflow(width, pattern.size, &request.shape.width)) return CUDA_ERROR_INVALID_VALUE;
    request.shape.height = height;
    if (height > 1 && width != 0 && pitch < request.shape.width) return CUDA_ERROR_INVALID_VALUE;
    request.to = {to, pitch, 0};
    request.pattern = pattern.value;
    request.pattern_size = pattern.size;
    request.stream = how.stream;
    request.mode = how.mode;
    request.synchronous = how.synchronous;
    return queue_set(driver, context, request);
  });
}

CUresult set(CallSite& site, const How& how, CUdeviceptr to, Pattern pattern, std::uint64_t count) {
  return set_2d(site, how, to, 0, pattern, count, 1);
}

}  // namespace

CUDASIM_API cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) {
  static CallSite site{"cuMemsetD8_v2"};
  return set(site, kSync, to, pattern(value), count);
}
CUDASIM_API cuMemsetD8_v2_ptds(CUdeviceptr to, unsigned char value, size_t count) {
  static CallSite site{"cuMemsetD8_v2_ptds"};
  return set(site, kSyncPerThread, to, pattern(value), count);
}
CUDASIM_API cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  static CallSite site{"cuMemsetD8Async"};
  return set(site, async(StreamMode::kLegacy, stream), to, pattern(value), count);
}
CUDASIM_API cuMemsetD8Async_ptsz(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  static CallSite site{"cuMemsetD8Async_ptsz"};
  return set(site, async(StreamMode::kPerThread, stream), to, pattern(value), count);
}
CUDASIM_API cuMemsetD8(CUdeviceptr_v1 to, unsigned char value, unsigned int count) {
  static CallSite site{"cuMemsetD8"};
  return set(site, kSync, to, pattern(value), count);
}
CUDASIM_API cuMemsetD2D8_v2(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height) {
  static CallSite site{"cuMemsetD2D8_v2"};
  return set_2d(site, kSync, to, pitch, pattern(value), width, height);
}
CUDASIM_API cuMemsetD2D8_v2_ptds(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height) {
  static CallSite site{"cuMemsetD2D8_v2_ptds"};
  return set_2d(site, kSyncPerThread, to, pitch, pattern(value), width, height);
}
CUDASIM_API cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height,
                              CUstream stream) {
  static CallSite site{"cuMemsetD2D8Async"};
  return set_2d(site, async(StreamMode::kLegacy, stream), to, pitch, pattern(value), width, height);
}
CUDASIM_API cuMemsetD2D8Async_ptsz(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height,
                                   CUstream stream) {
  static CallSite site{"cuMemsetD2D8Async_ptsz"};
  return set_2d(site, async(StreamMode::kPerThread, stream), to, pitch, pattern(value), width, height);
}
CUDASIM_API cuMemsetD2D8(CUdeviceptr_v1 to, unsigned int pitch, unsigned char value, unsigned int width,
                         unsigned int height) {
  static CallSite site{"cuMemsetD2D8"};
  return set_2d(site, kSync, to, pitch, pattern(value), width, height);
}

CUDASIM_API cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count) {
  static CallSite site{"cuMemsetD16_v2"};
  return set(site, kSync, to, pattern(value), count);
}
CUDASIM_API cuMemsetD16_v2_ptds(CUdeviceptr to, unsigned short value, size_t count) {
  static CallSite site{"cuMemsetD16_v2_ptds"};
  return set(site, kSyncPerThread, to, pattern(value), count);
}
CUDASIM_API cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
  static CallSite site{"cuMemsetD16Async"};
  return set(site, async(StreamMode::kLegacy, stream), to, pattern(value), count);
}
CUDASIM_API cuMemsetD16Async_ptsz(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
  static CallSite site{"cuMemsetD16Async_ptsz"};
  return set(site, async(StreamMode::kPerThread, stream), to, pattern(value), count);
}
CUDASIM_API cuMemsetD16(CUdeviceptr_v1 to, unsigned short value, unsigned int count) {
  static CallSite site{"cuMemsetD16"};
  return set(site, kSync, to, pattern(value), count);
}
CUDASIM_API cuMemsetD2D16_v2(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height) {
  static CallSite site{"cuMemsetD2D16_v2"};
  return set_2d(site, kSync, to, pitch, pattern(value), width, height);
}
CUDASIM_API cuMemsetD2D16_v2_ptds(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height) {
  static CallSite site{"cuMemsetD2D16_v2_ptds"};
  return set_2d(site, kSyncPerThread, to, pitch, pattern(value), width, height);
}
CUDASIM_API cuMemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height,
                               CUstream stream) {
  static CallSite site{"cuMemsetD2D16Async"};
  return set_2d(site, async(StreamMode::kLegacy, stream), to, pitch, pattern(value), width, height);
}
CUDASIM_API cuMemsetD2D16Async_ptsz(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height,
                                    CUstream stream) {
  static CallSite site{"cuMemsetD2D16Async_ptsz"};
  return set_2d(site, async(StreamMode::kPerThread, stream), to, pitch, pattern(value), width, height);
}
CUDASIM_API cuMemsetD2D16(CUdeviceptr_v1 to, unsigned int pitch, unsigned short value, unsigned int width,
                          unsigned int height) {
  static CallSite site{"cuMemsetD2D16"};
  return set_2d(site, kSync, to, pitch, pattern(value), width, height);
}

CUDASIM_API cuMemsetD32_v2(CUdeviceptr to, unsigned int value, size_t count) {
  static CallSite site{"cuMemsetD32_v2"};
  return set(site, kSync, to, pattern(value), count);
}
CUDASIM_API cuMemsetD32_v2_ptds(CUdeviceptr to, unsigned int value, size_t count) {
  static CallSite site{"cuMemsetD32_v2_ptds"};
  return set(site, kSyncPerThread, to, pattern(value), count);
}
CUDASIM_API cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream) {
  static CallSite site{"cuMemsetD32Async"};
  return set(site, async(StreamMode::kLegacy, stream), to, pattern(value), count);
}
CUDASIM_API cuMemsetD32Async_ptsz(CUdeviceptr to, unsigned int value, size_t count, CUstream stream) {
  static CallSite site{"cuMemsetD32Async_ptsz"};
  return set(site, async(StreamMode::kPerThread, stream), to, pattern(value), count);
}
CUDASIM_API cuMemsetD32(CUdeviceptr_v1 to, unsigned int value, unsigned int count) {
  static CallSite site{"cuMemsetD32"};
  return set(site, kSync, to, pattern(value), count);
}
CUDASIM_API cuMemsetD2D32_v2(CUdeviceptr to, size_t pitch, unsigned int value, size_t width, size_t height) {
  static CallSite site{"cuMemsetD2D32_v2"};
  return set_2d(site, kSync, to, pitch, pattern(value), width, height);
}
CUDASIM_API cuMemsetD2D32_v2_ptds(CUdeviceptr to, size_t pitch, unsigned int value, size_t width, size_t height) {
  static CallSite site{"cuMemsetD2D32_v2_ptds"};
  return set_2d(site, kSyncPerThread, to, pitch, pattern(value), width, height);
}
CUDASIM_API cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned int value, size_t width, size_t height,
                               CUstream stream) {
  static CallSite site{"cuMemsetD2D32Async"};
  return set_2d(site, async(StreamMode::kLegacy, stream), to, pitch, pattern(value), width, height);
}
CUDASIM_API cuMemsetD2D32Async_ptsz(CUdeviceptr to, size_t pitch, unsigned int value, size_t width, size_t height,
                                    CUstream stream) {
  static CallSite site{"cuMemsetD2D32Async_ptsz"};
  return set_2d(site, async(StreamMode::kPerThread, stream), to, pitch, pattern(value), width, height);
}
CUDASIM_API cuMemsetD2D32(CUdeviceptr_v1 to, unsigned int pitch, unsigned int value, unsigned int width,
                          unsigned int height) {
  static CallSite site{"cuMemsetD2D32"};
  return set_2d(site, kSync, to, pitch, pattern(value), width, height);
}
