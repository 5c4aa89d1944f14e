#include "ptx/execution/small_floats.h"

#include <bit>
#include <cmath>
#include <limits>

namespace cudasim::ptx {

const Format& format_of(Type type) {
  switch (type) {
    case Type::kF16:
    case Type::kF16x2:
      return kF16;
    case Type::kTf32:
      return kTf32;
    case Type::kE4m3x2:
    case Type::kE4m3:
      return kE4m3;
    case Type::kE5m2x2:
    case Type::kE5m2:
      return kE5m2;
    default:
      return kBf16;
  }
}

std::uint32_t encode(double value, const Format& f, Direction direction, bool saturate) {
  const int bias = (1 << (f.exponent_bits - 1)) - 1;
  const std::uint32_t all = (1u << f.exponent_bits) - 1;
  const std::uint32_t sign = std::signbit(value) ? 1u << (f.exponent_bits + f.mantissa_bits) : 0u;
  const std::uint32_t infinity = all << f.mantissa_bits;
  const std::uint32_t nan = f.has_infinity ? infinity | ((1u << f.mantissa_bits) - 1) : infinity | 7u;
  const std::uint32_t largest = f.has_infinity ? infinity - 1 : (infinity | 7u) - 1;
  if (value != value) return nan;
  const double magnitude = std::fabs(value);
  const auto over = [&](bool to_infinity) {
    if (saturate) return sign | largest;
    return sign | (!to_infinity ? largest : f.has_infinity ? infinity : nan);
  };
  if (std::isinf(value)) return over(true);
  if (magnitude == 0) return sign;
  int exponent;
  std::frexp(magnitude, &exponent);
  --exponent;  // magnitude = 1.x * 2^exponent
  const int lowest = 1 - bias;
  // The unit in the last place, and how many of them: exact, the magnitude has 53 bits.
  const int unit = (exponent < lowest ? lowest : exponent) - f.mantissa_bits;
  const double units = std::ldexp(magnitude, -unit);
  const double whole = std::floor(units);
  const double rest = units - whole;
  bool up = false;
  switch (direction) {
    case Direction::kNearestEven:
      up = rest > 0.5 || (rest == 0.5 && std::fmod(whole, 2) != 0);
      break;
    case Direction::kNearestAway:
      up = rest >= 0.5;
      break;
    case Direction::kZero:
      break;
    case Direction::kDown:
      up = rest > 0 && sign != 0;
      break;
    case Direction::kUp:
      up = rest > 0 && sign == 0;
      break;
  }
  const auto mantissa = static_cast<std::uint64_t>(whole) + (up ? 1 : 0);
  // Carries run into the exponent by themselves.
  const std::uint64_t bits = exponent < lowest ? mantissa
                                               : (static_cast<std::uint64_t>(exponent + bias) << f.mantissa_bits) +
                                                     (mantissa - (std::uint64_t{1} << f.mantissa_bits));
  if (bits > largest) {
    const bool to_infinity = direction == Direction::kNearestEven || direction == Direction::kNearestAway ||
                             (direction == Direction::kUp && sign == 0) || (direction == Direction::kDown && sign != 0);
    return over(to_infinity);
  }
  return sign | static_cast<std::uint32_t>(bits);
}

double decode(std::uint32_t bits, const Format& f) {
  const int bias = (1 << (f.exponent_bits - 1)) - 1;
  const std::uint32_t all = (1u << f.exponent_bits) - 1;
  const bool negative = (bits >> (f.exponent_bits + f.mantissa_bits) & 1) != 0;
  const std::uint32_t exponent = bits >> f.mantissa_bits & all;
  const std::uint32_t mantissa = bits & ((1u << f.mantissa_bits) - 1);
  double value;
  if (exponent == all && (f.has_infinity || mantissa == 7)) {
    value = mantissa == 0 && f.has_infinity ? std::numeric_limits<double>::infinity()
                                            : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<double>(mantissa), 1 - bias - f.mantissa_bits);
  } else {
    value = std::ldexp(static_cast<double>(mantissa | 1u << f.mantissa_bits),
                       static_cast<int>(exponent) - bias - f.mantissa_bits);
  }
  return negative ? -value : value;
}

double fused_odd(double a, double b, double c) {
  const double product = a * b;  // exact: 48 bits
  const double sum = product + c;
  if (!std::isfinite(sum)) return sum;
  // What the sum has lost (Knuth's two-sum).
  const double back = sum - product;
  const double lost = (product - (sum - back)) + (c - back);
  if (lost == 0 || (std::bit_cast<std::uint64_t>(sum) & 1) != 0) return sum;
  return std::nextafter(sum,
                        lost > 0 ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity());
}

}  // namespace cudasim::ptx
