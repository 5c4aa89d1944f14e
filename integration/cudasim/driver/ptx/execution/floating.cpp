// Arithmetic of f32 and f64. Nothing is contracted: the build says -ffp-contract=off, and fma is the C library's.
#include <cmath>
#include <limits>

#include "ptx/execution/lowering.h"
#include "ptx/execution/rounding.h"
#include "ptx/execution/runners.h"

namespace cudasim::ptx {
namespace {

template <class T>
T flushed(T x) {
  return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(T{0}, x) : x;
}

// The device's f32 results have one NaN; those of f64 keep what they were.
template <class T>
T canonical(T x) {
  if constexpr (sizeof(T) == 4) return x == x ? x : std::bit_cast<float>(0x7fffffffu);
  return x;
}

template <class T>
T saturated(T x) {
  return x > T{0} ? (x < T{1} ? x : T{1}) : T{0};
}

struct Options {
  bool ftz, sat;
  explicit Options(const Instruction& i) : ftz(i.has(Modifier::kFtz)), sat(i.has(Modifier::kSat)) {}
  template <class T>
  T in(T x) const {
    return ftz ? flushed(x) : x;
  }
  template <class T>
  T out(T x) const {
    if (ftz) x = flushed(x);
    return canonical(sat ? saturated(x) : x);
  }
};

struct Add {
  template <class T>
  T operator()(T a, T b) const {
    return a + b;
  }
};
struct Sub {
  template <class T>
  T operator()(T a, T b) const {
    return a - b;
  }
};
struct Mul {
  template <class T>
  T operator()(T a, T b) const {
    return a * b;
  }
};
struct Div {
  template <class T>
  T operator()(T a, T b) const {
    return a / b;
  }
};
struct Fma {
  template <class T>
  T operator()(T a, T b, T c) const {
    return std::fma(a, b, c);
  }
};
struct Rcp {
  template <class T>
  T operator()(T a) const {
    return T{1} / a;
  }
};
struct Sqrt {
  template <class T>
  T operator()(T a) const {
    return std::sqrt(a);
  }
};

// Of both NaN is the one that is none; -0 is less than +0.
struct Min {
  template <class T>
  T operator()(T a, T b) const {
    if (a != a) return b;
    if (b != b) return a;
    if (a == b) return std::signbit(a) ? a : b;
    return a < b ? a : b;
  }
};
struct Max {
  template <class T>
  T operator()(T a, T b) const {
    if (a != a) return b;
    if (b != b) return a;
    if (a == b) return std::signbit(a) ? b : a;
    return a < b ? b : a;
  }
};

template <class T, class F, bool kPlain>
void run_float1(Warp& warp, const Step& step, Mask mask) {
  if (step.d == kNoRef) return;
  const Options options(*step.source);
  const RoundingMode mode(rounding_of(*step.source));
  Row& d = warp.row(step.d);
  const Row& a = warp.source(step.a);
  for_lanes(mask, [&](int l) { d.lane[l] = slot_of<T>(options.out(F{}(options.in(value_of<T>(a.lane[l]))))); });
}

template <class T, class F, bool kPlain>
void run_float2(Warp& warp, const Step& step, Mask mask) {
  if (step.d == kNoRef) return;
  Row& d = warp.row(step.d);
  const Row &a = warp.source(step.a), &b = warp.source(step.b);
  if constexpr (kPlain) {
    for_lanes(mask,
              [&](int l) { d.lane[l] = slot_of<T>(canonical(F{}(value_of<T>(a.lane[l]), value_of<T>(b.lane[l])))); });
  } else {
    const Options options(*step.source);
    const RoundingMode mode(rounding_of(*step.source));
    for_lanes(mask, [&](int l) {
      const T x = options.in(value_of<T>(a.lane[l])), y = options.in(value_of<T>(b.lane[l]));
      d.lane[l] = slot_of<T>(options.out(F{}(x, y)));
    });
  }
}

template <class T, class F, bool kPlain>
void run_float3(Warp& warp, const Step& step, Mask mask) {
  if (step.d == kNoRef) return;
  Row& d = warp.row(step.d);
  const Row &a = warp.source(step.a), &b = warp.source(step.b), &c = warp.source(step.c);
  if constexpr (kPlain) {
    for_lanes(mask, [&](int l) {
      const T x = value_of<T>(a.lane[l]), y = value_of<T>(b.lane[l]), z = value_of<T>(c.lane[l]);
      d.lane[l] = slot_of<T>(canonical(F{}(x, y, z)));
    });
  } else {
    const Options options(*step.source);
    const RoundingMode mode(rounding_of(*step.source));
    for_lanes(mask, [&](int l) {
      const T x = options.in(value_of<T>(a.lane[l])), y = options.in(value_of<T>(b.lane[l]));
      const T z = options.in(value_of<T>(c.lane[l]));
      d.lane[l] = slot_of<T>(options.out(F{}(x, y, z)));
    });
  }
}

// Two floats in 64 bits.
template <class F, bool kThree>
void run_float_pairs(Warp& warp, const Step& step, Mask mask) {
  const Options options(*step.source);
  const RoundingMode mode(rounding_of(*step.source));
  Row& d = warp.row(step.d);
  const Row &a = warp.source(step.a), &b = warp.source(step.b), &c = warp.source(kThree ? step.c : step.a);
  for_lanes(mask, [&](int l) {
    std::uint64_t both = 0;
    for (int half = 0; half < 64; half += 32) {
      const auto at = [&](const Row& r) { return options.in(value_of<float>(r.lane[l] >> half)); };
      float x;
      if constexpr (kThree) {
        x = F{}(at(a), at(b), at(c));
      } else {
        x = F{}(at(a), at(b));
      }
      both |= slot_of<float>(options.out(x)) << half;
    }
    d.lane[l] = both;
  });
}

template <class T, bool kMax>
void run_min_max(Warp& warp, const Step& step, Mask mask) {
  const Instruction& i = *step.source;
  const Options options(i);
  const bool nan = i.has(Modifier::kNaN), absolute = i.has(Modifier::kAbs), xorsign = i.has(Modifier::kXorsign);
  Row& d = warp.row(step.d);
  const bool three = i.operands.size() == 4;
  const Row &a = warp.source(step.a), &b = warp.source(step.b), &c = warp.source(three ? step.c : step.a);
  const auto of_two = [&](T x, T y) {
    const bool sign = std::signbit(x) != std::signbit(y);
    if (absolute) {
      x = std::fabs(x);
      y = std::fabs(y);
    }
    if (nan && (x != x || y != y)) return std::numeric_limits<T>::quiet_NaN();
    T result = kMax ? Max{}(x, y) : Min{}(x, y);
    if (xorsign) result = std::copysign(result, sign ? T{-1} : T{1});
    return result;
  };
  for_lanes(mask, [&](int l) {
    T x = of_two(options.in(value_of<T>(a.lane[l])), options.in(value_of<T>(b.lane[l])));
    if (three) x = of_two(x, options.in(value_of<T>(c.lane[l])));
    d.lane[l] = slot_of<T>(options.out(x));
  });
}

// Signs: bits alone change, but for what .ftz flushes.
template <class T, Op kOp>
void run_sign(Warp& warp, const Step& step, Mask mask) {
  constexpr BitsOf<T> kSign = BitsOf<T>{1} << (8 * sizeof(T) - 1);
  const Options options(*step.source);
  Row& d = warp.row(step.d);
  const Row &a = warp.source(step.a), &b = warp.source(kOp == Op::kCopysign ? step.b : step.a);
  for_lanes(mask, [&](int l) {
    auto bits = std::bit_cast<BitsOf<T>>(options.in(value_of<T>(a.lane[l])));
    if constexpr (kOp == Op::kAbs) bits &= ~kSign;
    if constexpr (kOp == Op::kNeg) bits ^= kSign;
    // copysign d, a, b: the sign of a, the rest of b.
    if constexpr (kOp == Op::kCopysign) bits = (bits & kSign) | (static_cast<BitsOf<T>>(b.lane[l]) & ~kSign);
    d.lane[l] = bits;
  });
}

template <class T>
void run_testp(Warp& warp, const Step& step, Mask mask) {
  const Instruction& i = *step.source;
  const Row& a = warp.source(step.a);
  Mask found = 0;
  for_lanes(mask, [&](int l) {
    const int kind = std::fpclassify(value_of<T>(a.lane[l]));
    const bool is = i.has(Modifier::kFinite)       ? kind != FP_NAN && kind != FP_INFINITE
                    : i.has(Modifier::kInfinite)   ? kind == FP_INFINITE
                    : i.has(Modifier::kNumber)     ? kind != FP_NAN
                    : i.has(Modifier::kNotanumber) ? kind == FP_NAN
                    : i.has(Modifier::kNormal)     ? kind == FP_NORMAL
                                                   : kind == FP_SUBNORMAL;
    found |= Mask{is} << l;
  });
  warp.set_mask(step.d, mask, found);
}

template <class T, bool kPlain>
Runner arithmetic(const Instruction& i) {
  switch (i.op) {
    case Op::kAdd:
      return run_float2<T, Add, kPlain>;
    case Op::kSub:
      return run_float2<T, Sub, kPlain>;
    case Op::kMul:
      return run_float2<T, Mul, kPlain>;
    case Op::kDiv:
      return run_float2<T, Div, kPlain>;
    case Op::kFma:
    case Op::kMad:
      return run_float3<T, Fma, kPlain>;
    case Op::kRcp:
      return run_float1<T, Rcp, kPlain>;
    case Op::kSqrt:
      return run_float1<T, Sqrt, kPlain>;
    default:
      return nullptr;
  }
}

template <class T>
Runner runner_of(const Instruction& i) {
  switch (i.op) {
    case Op::kMin:
      return run_min_max<T, false>;
    case Op::kMax:
      return run_min_max<T, true>;
    case Op::kAbs:
      return run_sign<T, Op::kAbs>;
    case Op::kNeg:
      return run_sign<T, Op::kNeg>;
    case Op::kCopysign:
      return run_sign<T, Op::kCopysign>;
    case Op::kTestp:
      return run_testp<T>;
    default:
      break;
  }
  if (i.has(Modifier::kRelu)) return nullptr;
  const bool plain = !i.has(Modifier::kFtz) && !i.has(Modifier::kSat) && rounding_of(i) == FE_TONEAREST;
  return plain ? arithmetic<T, true>(i) : arithmetic<T, false>(i);
}

Runner pairs_of(const Instruction& i) {
  switch (i.op) {
    case Op::kAdd:
      return run_float_pairs<Add, false>;
    case Op::kSub:
      return run_float_pairs<Sub, false>;
    case Op::kMul:
      return run_float_pairs<Mul, false>;
    case Op::kFma:
      return run_float_pairs<Fma, true>;
    default:
      return nullptr;
  }
}

}  // namespace

Runner floating_runner(const Instruction& i) {
  if (i.types.size() != 1) return nullptr;
  if (i.type() == Type::kF32) return runner_of<float>(i);
  if (i.type() == Type::kF64) return runner_of<double>(i);
  return i.type() == Type::kF32x2 ? pairs_of(i) : nullptr;
}

}  // namespace cudasim::ptx
