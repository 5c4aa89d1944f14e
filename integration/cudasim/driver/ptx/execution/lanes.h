// Values of a warp: a row has one 64-bit slot per lane, in which a value lies in its low bits with zeros above. A
// predicate is one mask in the row's first slot, a bit per lane.
#pragma once
#include <bit>
#include <cstdint>
#include <type_traits>

namespace cudasim::ptx {

inline constexpr int kLanes = 32;
using Mask = std::uint32_t;
inline constexpr Mask kAllLanes = ~Mask{0};

struct alignas(64) Row {
  std::uint64_t lane[kLanes];
  Mask mask() const { return static_cast<Mask>(lane[0]); }
};

// As many bits as T has, unsigned.
template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 1, std::uint8_t,
                                  std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                                     std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;

template <class T>
inline T value_of(std::uint64_t slot) {
  return std::bit_cast<T>(static_cast<BitsOf<T>>(slot));
}
template <class T>
inline std::uint64_t slot_of(T value) {
  return std::bit_cast<BitsOf<T>>(value);
}

// `visit(lane)` for each lane of the mask, in their order.
template <class Visit>
inline void for_lanes(Mask mask, Visit visit) {
  if (mask == kAllLanes) {
    for (int lane = 0; lane < kLanes; ++lane) visit(lane);
  } else {
    for (; mask != 0; mask &= mask - 1) visit(std::countr_zero(mask));
  }
}

}  // namespace cudasim::ptx
