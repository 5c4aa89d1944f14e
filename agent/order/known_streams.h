// Streams that the program made and has not destroyed, as far as is known: a handle that is none of them is asked of
// the driver before anything is noted about it. A program that uses a stream after its end, or invents one, is answered
// by the driver; nothing of ours is to believe that work was queued.
//
// Not thread-safe: guarded by the arena's lock. One probe of a small table for streams that are in use.
#pragma once

#include <cuda.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "agent/order/streams.h"
#include "agent/process/driver.h"

namespace memopt::agent {

class KnownStreams {
 public:
  constexpr explicit KnownStreams(const Driver& driver) : driver_(driver) {}
  KnownStreams(const KnownStreams&) = delete;
  KnownStreams& operator=(const KnownStreams&) = delete;

  // CUDA_SUCCESS, or what the driver says of the handle. The default streams always exist.
  CUresult check(CUstream stream) noexcept {
    if (is_default(stream) || known_[place_of(stream)] == stream) [[likely]]
      return CUDA_SUCCESS;
    return ask(stream);
  }

  void created(CUstream stream) noexcept {
    if (!is_default(stream)) known_[place_of(stream)] = stream;
  }
  void destroyed(CUstream stream) noexcept {
    if (CUstream& place = known_[place_of(stream)]; place == stream) place = nullptr;
  }

 private:
  static constexpr std::size_t kPlaces = 256;  // one of two streams that share a place is asked of the driver each time

  static bool is_default(CUstream stream) noexcept {
    return stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
  }
  static std::size_t place_of(CUstream stream) noexcept {
    return static_cast<std::size_t>((reinterpret_cast<std::uintptr_t>(stream) * 0x9e3779b97f4a7c15u) >> 56);
  }
  static_assert(kPlaces == 1 << 8);

  CUresult ask(CUstream stream) noexcept;

  const Driver& driver_;
  std::array<CUstream, kPlaces> known_{};
};

}  // namespace memopt::agent
