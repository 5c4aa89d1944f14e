// Arithmetic of integers. It wraps: all of it is done in unsigned numbers.
#include <algorithm>
#include <limits>

#include "ptx/execution/lowering.h"
#include "ptx/execution/runners.h"

namespace cudasim::ptx {
namespace {

template <class T>
using Unsigned = std::make_unsigned_t<T>;
template <class T>
using Double = std::conditional_t<
    sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, std::int32_t, std::uint32_t>,
    std::conditional_t<sizeof(T) == 4, std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>,
                       std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>>>;

// uint16_t arithmetic would be promoted to int, whose overflow is undefined: at least 32 unsigned bits.
template <class T>
using Wide = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

struct Add {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wide<T>>(a) + static_cast<Wide<T>>(b));
  }
};
struct Sub {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wide<T>>(a) - static_cast<Wide<T>>(b));
  }
};
struct AddSaturated {
  template <class T>
  T operator()(T a, T b) const {
    T sum;
    if (!__builtin_add_overflow(a, b, &sum)) return sum;
    return b < 0 ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
  }
};
struct SubSaturated {
  template <class T>
  T operator()(T a, T b) const {
    T difference;
    if (!__builtin_sub_overflow(a, b, &difference)) return difference;
    return b > 0 ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
  }
};
struct MulLo {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b));
  }
};
struct MulHi {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Double<T>>(a) * static_cast<Double<T>>(b) >> (8 * sizeof(T)));
  }
};
struct Sad {
  template <class T>
  T operator()(T a, T b, T c) const {
    const T difference = a < b ? Sub{}(b, a) : Sub{}(a, b);
    return Add{}(difference, c);
  }
};
// Division by zero gives all ones, as on hardware.
struct Div {
  template <class T>
  T operator()(T a, T b) const {
    if (b == 0) return static_cast<T>(-1);
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return Sub{}(T{0}, a);
    }
    return static_cast<T>(a / b);
  }
};
struct Rem {
  template <class T>
  T operator()(T a, T b) const {
    if (b == 0) return a;
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return 0;
    }
    return static_cast<T>(a % b);
  }
};
struct Min {
  template <class T>
  T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};
struct Max {
  template <class T>
  T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};
struct Abs {
  template <class T>
  T operator()(T a) const {
    return a < 0 ? Sub{}(T{0}, a) : a;
  }
};
struct Neg {
  template <class T>
  T operator()(T a) const {
    return Sub{}(T{0}, a);
  }
};
struct MadLo {
  template <class T>
  T operator()(T a, T b, T c) const {
    return Add{}(MulLo{}(a, b), c);
  }
};
struct MadHi {
  template <class T>
  T operator()(T a, T b, T c) const {
    return Add{}(MulHi{}(a, b), c);
  }
};
struct MadHiSaturated {
  template <class T>
  T operator()(T a, T b, T c) const {
    return AddSaturated{}(MulHi{}(a, b), c);
  }
};

template <class D>
struct MulWide {
  template <class T>
  D operator()(T a, T b) const {
    return static_cast<D>(static_cast<D>(a) * static_cast<D>(b));
  }
};
template <class D>
struct MadWide {
  template <class T>
  D operator()(T a, T b, D c) const {
    return Add{}(MulWide<D>{}(a, b), c);
  }
};

Runner wide_runner(Type type, bool add) {
  const auto pick = [&]<class D, class T>(D, T) -> Runner {
    return add ? run_ternary<D, T, T, D, MadWide<D>> : run_binary<D, T, T, MulWide<D>>;
  };
  switch (type) {
    case Type::kU16:
      return pick(std::uint32_t{}, std::uint16_t{});
    case Type::kS16:
      return pick(std::int32_t{}, std::int16_t{});
    case Type::kU32:
      return pick(std::uint64_t{}, std::uint32_t{});
    case Type::kS32:
      return pick(std::int64_t{}, std::int32_t{});
    default:
      return nullptr;
  }
}

// The low 24 bits of the operands.
template <class T, bool kHi>
struct Mul24 {
  T operator()(T a, T b) const {
    const auto low = [](T x) {
      return static_cast<Double<T>>(static_cast<T>(static_cast<std::uint32_t>(x) << 8) >> 8);
    };
    const auto product = low(a) * low(b);
    return static_cast<T>(kHi ? product >> 16 : product);
  }
};
template <class T, bool kHi, bool kSat>
struct Mad24 {
  T operator()(T a, T b, T c) const {
    const T product = Mul24<T, kHi>{}(a, b);
    if constexpr (kSat) return AddSaturated{}(product, c);
    return Add{}(product, c);
  }
};

// Two 16-bit numbers at a time.
template <class T, class F>
struct Pairs {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const {
    const auto half = [](std::uint32_t x, int at) { return static_cast<T>(x >> at); };
    const auto low = static_cast<std::uint16_t>(F{}(half(a, 0), half(b, 0)));
    const auto high = static_cast<std::uint16_t>(F{}(half(a, 16), half(b, 16)));
    return low | static_cast<std::uint32_t>(high) << 16;
  }
};
template <class F>
Runner pair_runner(Type type) {
  using U = std::uint32_t;
  if (type == Type::kU16x2) return run_binary<U, U, U, Pairs<std::uint16_t, F>>;
  if (type == Type::kS16x2) return run_binary<U, U, U, Pairs<std::int16_t, F>>;
  return nullptr;
}

// Sums of products of bytes, or of two halves with two bytes.
template <class A, class B>
struct Dp4a {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b, std::uint32_t c) const {
    for (int i = 0; i < 4; ++i) {
      c += static_cast<std::uint32_t>(static_cast<std::int32_t>(static_cast<A>(a >> 8 * i)) *
                                      static_cast<std::int32_t>(static_cast<B>(b >> 8 * i)));
    }
    return c;
  }
};
template <class A, class B, int kShift>
struct Dp2a {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b, std::uint32_t c) const {
    for (int i = 0; i < 2; ++i) {
      c += static_cast<std::uint32_t>(static_cast<std::int32_t>(static_cast<A>(a >> 16 * i)) *
                                      static_cast<std::int32_t>(static_cast<B>(b >> (8 * i + kShift))));
    }
    return c;
  }
};

template <template <class, class> class Sum, class U, class S>
Runner dot_runner(const Instruction& i) {
  using W = std::uint32_t;
  const bool a = i.types[0] == Type::kS32, b = i.types[1] == Type::kS32;
  if (a) return b ? run_ternary<W, W, W, W, Sum<S, std::int8_t>> : run_ternary<W, W, W, W, Sum<S, std::uint8_t>>;
  return b ? run_ternary<W, W, W, W, Sum<U, std::int8_t>> : run_ternary<W, W, W, W, Sum<U, std::uint8_t>>;
}
template <class A, class B>
using Dp2aLo = Dp2a<A, B, 0>;
template <class A, class B>
using Dp2aHi = Dp2a<A, B, 16>;

template <class T>
Runner runner_24(const Instruction& i) {
  const bool hi = i.has(Modifier::kHi);
  if (i.op == Op::kMul24) return hi ? run_binary<T, T, T, Mul24<T, true>> : run_binary<T, T, T, Mul24<T, false>>;
  if (i.has(Modifier::kSat)) return run_ternary<T, T, T, T, Mad24<T, true, true>>;
  return hi ? run_ternary<T, T, T, T, Mad24<T, true, false>> : run_ternary<T, T, T, T, Mad24<T, false, false>>;
}

// Carry: the row behind the frame's registers.
enum class Chain { kAdd, kSub, kMadLo, kMadHi };

template <class T, Chain kChain, bool kIn, bool kOut>
void run_carry(Warp& warp, const Step& step, Mask mask) {
  const Ref flags = ref_to(Base::kFrame, static_cast<std::uint32_t>(warp.code().function->registers.size()));
  Row& d = warp.row(step.d);
  const Row &a = warp.source(step.a), &b = warp.source(step.b);
  const Row& c = warp.source(step.c == kNoRef ? step.a : step.c);
  const Mask carries = warp.row(flags).mask();
  Mask out = 0;
  for_lanes(mask, [&](int l) {
    T x = value_of<T>(a.lane[l]), y = value_of<T>(b.lane[l]);
    const T in = kIn ? static_cast<T>(carries >> l & 1) : T{0};
    if constexpr (kChain == Chain::kMadLo || kChain == Chain::kMadHi) {
      const T product = kChain == Chain::kMadLo ? MulLo{}(x, y) : MulHi{}(x, y);
      x = product;
      y = value_of<T>(c.lane[l]);
    }
    using U = Unsigned<T>;
    U result;
    bool over;
    if constexpr (kChain == Chain::kSub) {
      over = __builtin_sub_overflow(static_cast<U>(x), static_cast<U>(y), &result);
      over |= __builtin_sub_overflow(result, static_cast<U>(in), &result);
    } else {
      over = __builtin_add_overflow(static_cast<U>(x), static_cast<U>(y), &result);
      over |= __builtin_add_overflow(result, static_cast<U>(in), &result);
    }
    d.lane[l] = slot_of<U>(result);
    out |= Mask{over} << l;
  });
  if (kOut) warp.set_mask(flags, mask, out);
}

template <class T, Chain kChain>
Runner chain_runner(bool in, bool out) {
  if (in) return out ? run_carry<T, kChain, true, true> : run_carry<T, kChain, true, false>;
  return out ? run_carry<T, kChain, false, true> : nullptr;
}

template <class T>
Runner chain_runner(const Instruction& i) {
  const bool out = i.has(Modifier::kCc);
  switch (i.op) {
    case Op::kAdd:
    case Op::kAddc:
      return chain_runner<T, Chain::kAdd>(i.op == Op::kAddc, out);
    case Op::kSub:
    case Op::kSubc:
      return chain_runner<T, Chain::kSub>(i.op == Op::kSubc, out);
    case Op::kMad:
    case Op::kMadc:
      return i.has(Modifier::kHi) ? chain_runner<T, Chain::kMadHi>(i.op == Op::kMadc, out)
                                  : chain_runner<T, Chain::kMadLo>(i.op == Op::kMadc, out);
    default:
      return nullptr;
  }
}

}  // namespace

Runner carry_runner(const Instruction& i) {
  if (!i.has(Modifier::kCc) && i.op != Op::kAddc && i.op != Op::kSubc && i.op != Op::kMadc) return nullptr;
  switch (i.type()) {
    case Type::kU32:
      return chain_runner<std::uint32_t>(i);
    case Type::kS32:
      return chain_runner<std::int32_t>(i);
    case Type::kU64:
      return chain_runner<std::uint64_t>(i);
    case Type::kS64:
      return chain_runner<std::int64_t>(i);
    default:
      return nullptr;
  }
}

Runner integer_runner(const Instruction& i) {
  const Type t = i.type();
  if (is_floating(t)) return nullptr;
  const bool sat = i.has(Modifier::kSat);
  const bool pair = t == Type::kU16x2 || t == Type::kS16x2;
  switch (i.op) {
    case Op::kAdd:
      if (sat) return t == Type::kS32 ? Binary<AddSaturated>::of(t) : nullptr;
      return pair ? pair_runner<Add>(t) : Binary<Add>::of(t);
    case Op::kSub:
      if (sat) return t == Type::kS32 ? Binary<SubSaturated>::of(t) : nullptr;
      return pair ? pair_runner<Sub>(t) : Binary<Sub>::of(t);
    case Op::kMul:
      if (i.has(Modifier::kWide)) return wide_runner(t, false);
      return i.has(Modifier::kHi) ? Binary<MulHi>::of(t) : Binary<MulLo>::of(t);
    case Op::kMad:
      if (i.has(Modifier::kWide)) return wide_runner(t, true);
      if (sat) return t == Type::kS32 && i.has(Modifier::kHi) ? Ternary<MadHiSaturated>::of(t) : nullptr;
      return i.has(Modifier::kHi) ? Ternary<MadHi>::of(t) : Ternary<MadLo>::of(t);
    case Op::kMul24:
    case Op::kMad24:
      return t == Type::kS32 ? runner_24<std::int32_t>(i) : runner_24<std::uint32_t>(i);
    case Op::kSad:
      return Ternary<Sad>::of(t);
    case Op::kDiv:
      return Binary<Div>::of(t);
    case Op::kRem:
      return Binary<Rem>::of(t);
    case Op::kMin:
      if (i.operands.size() != 3 || i.has(Modifier::kRelu)) return nullptr;
      return pair ? pair_runner<Min>(t) : Binary<Min>::of(t);
    case Op::kMax:
      if (i.operands.size() != 3 || i.has(Modifier::kRelu)) return nullptr;
      return pair ? pair_runner<Max>(t) : Binary<Max>::of(t);
    case Op::kAbs:
      return is_signed(t) ? Unary<Abs>::of(t) : nullptr;
    case Op::kNeg:
      return Unary<Neg>::of(t);
    case Op::kDp4a:
      return dot_runner<Dp4a, std::uint8_t, std::int8_t>(i);
    case Op::kDp2a:
      return i.has(Modifier::kHi) ? dot_runner<Dp2aHi, std::uint16_t, std::int16_t>(i)
                                  : dot_runner<Dp2aLo, std::uint16_t, std::int16_t>(i);
    default:
      return nullptr;
  }
}

}  // namespace cudasim::ptx
