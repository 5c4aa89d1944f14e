// cvt: between integers, floats, and the small formats.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ptx/execution/lowering.h"
#include "ptx/execution/rounding.h"
#include "ptx/execution/small_floats.h"
#include "ptx/execution/warp.h"

namespace cudasim::ptx {
namespace {

using Wide = __int128;  // holds every integer of 64 bits

bool is_integer(Type t) { return (t >= Type::kU8 && t <= Type::kS64); }
bool is_small(Type t) { return t == Type::kF16 || t == Type::kBf16 || t == Type::kTf32; }

int bits_of(Type t) { return static_cast<int>(8 * bytes_of(t)); }

Wide lowest(Type t) { return is_signed(t) ? -(Wide{1} << (bits_of(t) - 1)) : 0; }
Wide highest(Type t) { return (Wide{1} << (bits_of(t) - (is_signed(t) ? 1 : 0))) - 1; }

Wide integer_of_slot(std::uint64_t slot, Type t) {
  const int unused = 64 - bits_of(t);
  const std::uint64_t up = slot << unused;
  return is_signed(t) ? Wide{static_cast<std::int64_t>(up) >> unused} : Wide{up >> unused};
}

double float_of_slot(std::uint64_t slot, Type t, bool ftz) {
  if (t == Type::kF64) return value_of<double>(slot);
  if (t == Type::kF32) {
    const auto x = value_of<float>(slot);
    return ftz && std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0, x) : x;
  }
  return decode(static_cast<std::uint32_t>(slot & 0xffff), format_of(t));
}

Direction direction_of(const Instruction& i) {
  if (i.has(Modifier::kRna)) return Direction::kNearestAway;
  switch (rounding_of(i)) {
    case FE_TOWARDZERO:
      return Direction::kZero;
    case FE_DOWNWARD:
      return Direction::kDown;
    case FE_UPWARD:
      return Direction::kUp;
    default:
      return Direction::kNearestEven;
  }
}

// To a whole number, where an .rXi modifier says how.
double whole(double x, const Instruction& i) {
  if (i.has(Modifier::kRni)) return std::nearbyint(x);
  if (i.has(Modifier::kRzi)) return std::trunc(x);
  if (i.has(Modifier::kRmi)) return std::floor(x);
  return i.has(Modifier::kRpi) ? std::ceil(x) : x;
}

// Clamped; NaN is zero, or the highest bit alone where one side has 64 bits.
std::uint64_t to_integer(double x, Type from, Type to) {
  if (x != x) {
    const bool zero = from != Type::kF64 && bits_of(to) != 64;
    return zero ? 0 : std::uint64_t{1} << (bits_of(to) - 1);
  }
  x = std::trunc(x);
  if (x >= std::ldexp(1.0, bits_of(to) - (is_signed(to) ? 1 : 0))) return static_cast<std::uint64_t>(highest(to));
  if (x <= static_cast<double>(lowest(to))) return static_cast<std::uint64_t>(lowest(to));
  return static_cast<std::uint64_t>(static_cast<Wide>(x));
}

// An exact value of at most 64 significant bits.
std::uint64_t to_float(long double exact, Type to, const Instruction& i) {
  const bool sat = i.has(Modifier::kSat);
  if (sat) exact = exact > 0 ? std::min(exact, 1.0L) : 0.0L;
  if (i.has(Modifier::kRelu) && exact == exact && !(exact > 0)) exact = 0;
  const auto nearest = static_cast<double>(exact);
  if (to == Type::kF64) return slot_of<double>(nearest);
  if (to == Type::kF32) {
    auto x = static_cast<float>(exact);
    if (i.has(Modifier::kFtz) && std::fpclassify(x) == FP_SUBNORMAL) x = std::copysign(0.0f, x);
    return x == x ? slot_of<float>(x) : 0x7fffffffu;
  }
  // Integers of more than 53 bits are beyond f16; bf16 sees the first rounding only in ties of 2^53 and more.
  const std::uint32_t bits = encode(nearest, format_of(to), direction_of(i), i.has(Modifier::kSatfinite));
  return to == Type::kTf32 ? std::uint64_t{bits} << 13 : bits;
}

std::uint64_t converted(std::uint64_t slot, Type from, Type to, const Instruction& i) {
  if (is_integer(from)) {
    const Wide x = integer_of_slot(slot, from);
    if (!is_integer(to)) return to_float(static_cast<long double>(x), to, i);
    return static_cast<std::uint64_t>(i.has(Modifier::kSat) ? std::clamp(x, lowest(to), highest(to)) : x);
  }
  const double x = whole(float_of_slot(slot, from, i.has(Modifier::kFtz)), i);
  return is_integer(to) ? to_integer(x, from, to) : to_float(x, to, i);
}

// The result in the low bits of its type, extended over a wider register as the type's sign says.
std::uint64_t extended(std::uint64_t value, Type to, std::uint64_t register_bytes) {
  const int unused = 64 - bits_of(to);
  std::uint64_t result = value << unused;
  result = is_integer(to) && is_signed(to) ? static_cast<std::uint64_t>(static_cast<std::int64_t>(result) >> unused)
                                           : result >> unused;
  return register_bytes >= 8 ? result : result & ((std::uint64_t{1} << 8 * register_bytes) - 1);
}

void run_general(Warp& warp, const Step& step, Mask mask) {
  const Instruction& i = *step.source;
  const Type to = i.types[0], from = i.types[1];
  const RoundingMode mode(rounding_of(i));
  Row& d = warp.row(step.d);
  const Row& a = warp.source(step.a);
  for_lanes(mask, [&](int l) { d.lane[l] = extended(converted(a.lane[l], from, to, i), to, step.value); });
}

// Two values into one register: cvt.rn.f16x2.f32 d, a, b has a in the high half.
void run_to_pair(Warp& warp, const Step& step, Mask mask) {
  const Instruction& i = *step.source;
  const Type to = i.types[0];
  const Format& format = format_of(to);
  const auto width = static_cast<int>(1 + format.exponent_bits + format.mantissa_bits);
  const bool pair_source = i.operands.size() == 2;
  const bool saturate = i.has(Modifier::kSatfinite) || to == Type::kE4m3x2 || to == Type::kE5m2x2;
  Row& d = warp.row(step.d);
  const Row& a = warp.source(step.a);
  const Row& b = warp.source(pair_source ? step.a : step.b);
  const auto value = [&](std::uint64_t slot, int half) {
    double x = pair_source ? decode(slot >> half & 0xffff, kF16) : static_cast<double>(value_of<float>(slot));
    if (i.has(Modifier::kRelu) && x == x && !(x > 0)) x = 0;
    return encode(x, format, direction_of(i), saturate);
  };
  for_lanes(mask, [&](int l) {
    const std::uint32_t high = value(a.lane[l], 16), low = value(b.lane[l], 0);
    d.lane[l] = static_cast<std::uint64_t>(high) << width | low;
  });
}

// cvt.rn.f16x2.e4m3x2.
void run_from_small_pair(Warp& warp, const Step& step, Mask mask) {
  const Format& format = format_of(step.source->types[1]);
  Row& d = warp.row(step.d);
  const Row& a = warp.source(step.a);
  for_lanes(mask, [&](int l) {
    const auto half = [&](int shift) {
      return static_cast<std::uint64_t>(encode(decode(a.lane[l] >> shift & 0xff, format), kF16));
    };
    d.lane[l] = half(0) | half(8) << 16;
  });
}

// cvt.pack.sat.TO.FROM.b32 d, a, b, c: c moved up, a and b behind it, saturated.
void run_pack(Warp& warp, const Step& step, Mask mask) {
  const Instruction& i = *step.source;
  const Type to = i.types[0], from = i.types[1];
  Row& d = warp.row(step.d);
  const Row &a = warp.source(step.a), &b = warp.source(step.b);
  const Row* const c = step.c == kNoRef ? nullptr : &warp.source(step.c);
  const std::uint64_t bits = (std::uint64_t{1} << bits_of(to)) - 1;
  for_lanes(mask, [&](int l) {
    const auto packed = [&](const Row& row) {
      return static_cast<std::uint64_t>(std::clamp(integer_of_slot(row.lane[l], from), lowest(to), highest(to))) & bits;
    };
    const std::uint64_t two = packed(a) << bits_of(to) | packed(b);
    d.lane[l] = ((c == nullptr ? 0 : c->lane[l] << 2 * bits_of(to)) | two) & 0xffffffff;
  });
}

// The common ones without detours.
template <class From, class To>
void run_integers(Warp& warp, const Step& step, Mask mask) {
  Row& d = warp.row(step.d);
  const Row& a = warp.source(step.a);
  const std::uint64_t keep = step.value >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << 8 * step.value) - 1;
  for_lanes(mask, [&](int l) {
    const auto x = static_cast<To>(value_of<From>(a.lane[l]));
    d.lane[l] = static_cast<std::uint64_t>(static_cast<std::int64_t>(x)) & keep;
  });
}

Runner common_runner(const Instruction& i) {
  if (i.modifiers != Modifiers()) return nullptr;
  const Type to = i.types[0], from = i.types[1];
  if (from == Type::kU32 && to == Type::kU64) return run_integers<std::uint32_t, std::uint64_t>;
  if (from == Type::kS32 && to == Type::kS64) return run_integers<std::int32_t, std::int64_t>;
  if ((from == Type::kU64 || from == Type::kS64) && to == Type::kU32) return run_integers<std::uint64_t, std::uint32_t>;
  if (from == Type::kU16 && to == Type::kU32) return run_integers<std::uint16_t, std::uint32_t>;
  return nullptr;
}

}  // namespace

Runner convert_runner(const Instruction& i) {
  if (i.op != Op::kCvt) return nullptr;
  const Type to = i.types[0], from = i.types[1];
  if (i.has(Modifier::kPack)) return is_integer(to) && is_integer(from) ? run_pack : nullptr;
  if (i.types.size() != 2) return nullptr;
  if (const Runner runner = common_runner(i)) return runner;
  const bool to_pair = to == Type::kF16x2 || to == Type::kBf16x2 || to == Type::kE4m3x2 || to == Type::kE5m2x2;
  if (to_pair && from == Type::kF32 && i.operands.size() == 3) return run_to_pair;
  if ((to == Type::kE4m3x2 || to == Type::kE5m2x2) && from == Type::kF16x2) return run_to_pair;
  if (to == Type::kF16x2 && (from == Type::kE4m3x2 || from == Type::kE5m2x2)) return run_from_small_pair;
  const auto known = [](Type t) { return is_integer(t) || is_small(t) || t == Type::kF32 || t == Type::kF64; };
  return known(to) && known(from) && i.operands.size() == 2 ? run_general : nullptr;
}

}  // namespace cudasim::ptx
