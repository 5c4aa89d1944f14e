// Floating-point formats smaller than f64, in software: exact values as doubles, and rounding of doubles to them.
#pragma once
#include <cstdint>

#include "ptx/front/opcodes.h"

namespace cudasim::ptx {

struct Format {
  int exponent_bits;
  int mantissa_bits;
  bool has_infinity;  // e4m3 has none, and one NaN of either sign
};
inline constexpr Format kF16{5, 10, true}, kBf16{8, 7, true}, kTf32{8, 10, true}, kE5m2{5, 2, true}, kE4m3{4, 3, false};

enum class Direction : std::uint8_t { kNearestEven, kNearestAway, kZero, kDown, kUp };

// Bits of the format. Over its largest value: infinity (or NaN without), or the largest where `saturate`.
std::uint32_t encode(double value, const Format& format, Direction direction = Direction::kNearestEven,
                     bool saturate = false);
double decode(std::uint32_t bits, const Format& format);

// a * b + c of values with at most 24 bits each, rounded so that rounding it again to a format of at most 24 bits gives
// what rounding the exact value gives ("round to odd": Boldo and Melquiond, 2008).
double fused_odd(double a, double b, double c);

// Of a type of 16 bits.
const Format& format_of(Type type);

}  // namespace cudasim::ptx
