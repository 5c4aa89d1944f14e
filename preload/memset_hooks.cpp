// Hooks of memory fills: what is filled, on which stream.
#include "agent/operations/operations.h"
#include "preload/typed_hooks.h"

namespace memopt::preload::hooks {
namespace {

template <Hook hook, typename... Arguments>
CUresult fill(CUdeviceptr address, std::size_t bytes, agent::StreamName stream, Arguments... arguments) noexcept {
  const agent::QueuedAtEnd scope;
  agent::before_memset({address, bytes, stream});
  return scope.made([&] { return real<hook>()(arguments...); });
}

// One word in each row may be half of an address.
template <Hook hook, typename... Arguments>
CUresult fill_words(unsigned int value, std::size_t in_a_row, CUdeviceptr address, std::size_t bytes,
                    agent::StreamName stream, Arguments... arguments) noexcept {
  const agent::QueuedAtEnd scope;
  agent::before_memset({address, bytes, stream, in_a_row == 1 ? value : 0});
  return scope.made([&] { return real<hook>()(arguments...); });
}

// From the first to the last byte of `height` rows.
std::size_t extent(std::size_t pitch, std::size_t row_bytes, std::size_t height) noexcept {
  return height == 0 || row_bytes == 0 ? 0 : pitch * (height - 1) + row_bytes;
}

// The stream of a call that names none.
constexpr agent::StreamName kLegacy{nullptr, false};
constexpr agent::StreamName kPerThread{nullptr, true};

}  // namespace

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) noexcept {
  return fill<Hook::cuMemsetD8_v2>(to, count, kLegacy, to, value, count);
}

CUresult cuMemsetD8_v2_ptds(CUdeviceptr to, unsigned char value, size_t count) noexcept {
  return fill<Hook::cuMemsetD8_v2_ptds>(to, count, kPerThread, to, value, count);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) noexcept {
  return fill<Hook::cuMemsetD8Async>(to, count, agent::StreamName{stream, false}, to, value, count, stream);
}

CUresult cuMemsetD8Async_ptsz(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) noexcept {
  return fill<Hook::cuMemsetD8Async_ptsz>(to, count, agent::StreamName{stream, true}, to, value, count, stream);
}

CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count) noexcept {
  return fill<Hook::cuMemsetD16_v2>(to, count * sizeof(value), kLegacy, to, value, count);
}

CUresult cuMemsetD16_v2_ptds(CUdeviceptr to, unsigned short value, size_t count) noexcept {
  return fill<Hook::cuMemsetD16_v2_ptds>(to, count * sizeof(value), kPerThread, to, value, count);
}

CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) noexcept {
  return fill<Hook::cuMemsetD16Async>(to, count * sizeof(value), agent::StreamName{stream, false}, to, value, count,
                                      stream);
}

CUresult cuMemsetD16Async_ptsz(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) noexcept {
  return fill<Hook::cuMemsetD16Async_ptsz>(to, count * sizeof(value), agent::StreamName{stream, true}, to, value, count,
                                           stream);
}

CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned int value, size_t count) noexcept {
  return fill_words<Hook::cuMemsetD32_v2>(value, count, to, count * sizeof(value), kLegacy, to, value, count);
}

CUresult cuMemsetD32_v2_ptds(CUdeviceptr to, unsigned int value, size_t count) noexcept {
  return fill_words<Hook::cuMemsetD32_v2_ptds>(value, count, to, count * sizeof(value), kPerThread, to, value, count);
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream) noexcept {
  return fill_words<Hook::cuMemsetD32Async>(value, count, to, count * sizeof(value), agent::StreamName{stream, false},
                                            to, value, count, stream);
}

CUresult cuMemsetD32Async_ptsz(CUdeviceptr to, unsigned int value, size_t count, CUstream stream) noexcept {
  return fill_words<Hook::cuMemsetD32Async_ptsz>(value, count, to, count * sizeof(value),
                                                 agent::StreamName{stream, true}, to, value, count, stream);
}

CUresult cuMemsetD2D8_v2(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height) noexcept {
  return fill<Hook::cuMemsetD2D8_v2>(to, extent(pitch, width, height), kLegacy, to, pitch, value, width, height);
}

CUresult cuMemsetD2D8_v2_ptds(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height) noexcept {
  return fill<Hook::cuMemsetD2D8_v2_ptds>(to, extent(pitch, width, height), kPerThread, to, pitch, value, width,
                                          height);
}

CUresult cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height,
                           CUstream stream) noexcept {
  return fill<Hook::cuMemsetD2D8Async>(to, extent(pitch, width, height), agent::StreamName{stream, false}, to, pitch,
                                       value, width, height, stream);
}

CUresult cuMemsetD2D8Async_ptsz(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height,
                                CUstream stream) noexcept {
  return fill<Hook::cuMemsetD2D8Async_ptsz>(to, extent(pitch, width, height), agent::StreamName{stream, true}, to,
                                            pitch, value, width, height, stream);
}

CUresult cuMemsetD2D16_v2(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height) noexcept {
  return fill<Hook::cuMemsetD2D16_v2>(to, extent(pitch, width * sizeof(value), height), kLegacy, to, pitch, value,
                                      width, height);
}

CUresult cuMemsetD2D16_v2_ptds(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                               size_t height) noexcept {
  return fill<Hook::cuMemsetD2D16_v2_ptds>(to, extent(pitch, width * sizeof(value), height), kPerThread, to, pitch,
                                           value, width, height);
}

CUresult cuMemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height,
                            CUstream stream) noexcept {
  return fill<Hook::cuMemsetD2D16Async>(to, extent(pitch, width * sizeof(value), height),
                                        agent::StreamName{stream, false}, to, pitch, value, width, height, stream);
}

CUresult cuMemsetD2D16Async_ptsz(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height,
                                 CUstream stream) noexcept {
  return fill<Hook::cuMemsetD2D16Async_ptsz>(to, extent(pitch, width * sizeof(value), height),
                                             agent::StreamName{stream, true}, to, pitch, value, width, height, stream);
}

CUresult cuMemsetD2D32_v2(CUdeviceptr to, size_t pitch, unsigned int value, size_t width, size_t height) noexcept {
  return fill_words<Hook::cuMemsetD2D32_v2>(value, width, to, extent(pitch, width * sizeof(value), height), kLegacy, to,
                                            pitch, value, width, height);
}

CUresult cuMemsetD2D32_v2_ptds(CUdeviceptr to, size_t pitch, unsigned int value, size_t width, size_t height) noexcept {
  return fill_words<Hook::cuMemsetD2D32_v2_ptds>(value, width, to, extent(pitch, width * sizeof(value), height),
                                                 kPerThread, to, pitch, value, width, height);
}

CUresult cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned int value, size_t width, size_t height,
                            CUstream stream) noexcept {
  return fill_words<Hook::cuMemsetD2D32Async>(value, width, to, extent(pitch, width * sizeof(value), height),
                                              agent::StreamName{stream, false}, to, pitch, value, width, height,
                                              stream);
}

CUresult cuMemsetD2D32Async_ptsz(CUdeviceptr to, size_t pitch, unsigned int value, size_t width, size_t height,
                                 CUstream stream) noexcept {
  return fill_words<Hook::cuMemsetD2D32Async_ptsz>(value, width, to, extent(pitch, width * sizeof(value), height),
                                                   agent::StreamName{stream, true}, to, pitch, value, width, height,
                                                   stream);
}

}  // namespace memopt::preload::hooks
