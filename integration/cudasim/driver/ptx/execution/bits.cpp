// Logic, shifts, fields of bits.
#include <algorithm>

#include "ptx/execution/lowering.h"
#include "ptx/execution/runners.h"

namespace cudasim::ptx {
namespace {

struct And {
  template <class T>
  T operator()(T a, T b) const {
    return a & b;
  }
};
struct Or {
  template <class T>
  T operator()(T a, T b) const {
    return a | b;
  }
};
struct Xor {
  template <class T>
  T operator()(T a, T b) const {
    return a ^ b;
  }
};
struct Not {
  template <class T>
  T operator()(T a) const {
    return static_cast<T>(~a);
  }
};
struct Cnot {
  template <class T>
  T operator()(T a) const {
    return a == 0 ? 1 : 0;
  }
};
struct Popc {
  template <class T>
  std::uint32_t operator()(T a) const {
    return static_cast<std::uint32_t>(std::popcount(a));
  }
};
struct Clz {
  template <class T>
  std::uint32_t operator()(T a) const {
    return static_cast<std::uint32_t>(std::countl_zero(a));
  }
};
struct Brev {
  template <class T>
  T operator()(T a) const {
    T result = 0;
    for (unsigned bit = 0; bit < 8 * sizeof(T); ++bit) result |= (a >> bit & 1) << (8 * sizeof(T) - 1 - bit);
    return result;
  }
};

// Shift counts are clamped to the width.
template <class T>
struct Shl {
  T operator()(T a, std::uint32_t n) const { return n >= 8 * sizeof(T) ? T{0} : static_cast<T>(a << n); }
};
template <class T>
struct Shr {
  T operator()(T a, std::uint32_t n) const {
    if constexpr (std::is_signed_v<T>) return static_cast<T>(a >> std::min<std::uint32_t>(n, 8 * sizeof(T) - 1));
    return n >= 8 * sizeof(T) ? T{0} : static_cast<T>(a >> n);
  }
};
template <class T>
struct PickShl {
  static Runner runner() { return run_binary<T, T, std::uint32_t, Shl<T>>; }
};
template <class T>
struct PickShr {
  static Runner runner() { return run_binary<T, T, std::uint32_t, Shr<T>>; }
};

template <bool kLeft, bool kWrap>
struct Shf {
  std::uint32_t operator()(std::uint32_t low, std::uint32_t high, std::uint32_t n) const {
    n = kWrap ? n & 31 : std::min(n, 32u);
    const std::uint64_t both = static_cast<std::uint64_t>(high) << 32 | low;
    return static_cast<std::uint32_t>(kLeft ? (both << n) >> 32 : both >> n);
  }
};

// The sign of a field that reaches over the end is the highest bit's.
template <class T>
struct Bfe {
  T operator()(T a, std::uint32_t position, std::uint32_t length) const {
    constexpr std::uint32_t kBits = 8 * sizeof(T);
    using U = std::make_unsigned_t<T>;
    position &= 0xff;
    length &= 0xff;
    const U u = static_cast<U>(a);
    U field = position >= kBits ? U{0} : static_cast<U>(u >> position);
    if (length == 0) return 0;
    if (length < kBits) field &= static_cast<U>((U{1} << length) - 1);
    if constexpr (std::is_signed_v<T>) {
      const std::uint32_t sign_at = std::min(position + length - 1, kBits - 1);
      const std::uint32_t width = position >= kBits ? 0 : std::min(length, kBits - position);
      if ((u >> sign_at & 1) != 0 && width < kBits) field |= static_cast<U>(~((U{1} << width) - 1));
    }
    return static_cast<T>(field);
  }
};
template <class T>
struct PickBfe {
  static Runner runner() { return run_ternary<T, T, std::uint32_t, std::uint32_t, Bfe<T>>; }
};

template <class T>
void run_bfi(Warp& warp, const Step& step, Mask mask) {
  constexpr std::uint32_t kBits = 8 * sizeof(T);
  Row& d = warp.row(step.d);
  const Row &a = warp.source(step.a), &b = warp.source(step.b), &c = warp.source(step.c), &e = warp.source(step.e);
  for_lanes(mask, [&](int l) {
    const std::uint32_t position = c.lane[l] & 0xff, length = e.lane[l] & 0xff;
    const T ones = length >= kBits ? static_cast<T>(~T{0}) : static_cast<T>((T{1} << length) - 1);
    const T field = position >= kBits ? T{0} : static_cast<T>(ones << position);
    const T moved = position >= kBits ? T{0} : static_cast<T>(static_cast<T>(a.lane[l]) << position);
    d.lane[l] = slot_of<T>(static_cast<T>((static_cast<T>(b.lane[l]) & ~field) | (moved & field)));
  });
}

template <class T, bool kShiftAmount>
struct Bfind {
  std::uint32_t operator()(T a) const {
    using U = std::make_unsigned_t<T>;
    U u = static_cast<U>(a);
    if (std::is_signed_v<T> && a < 0) u = static_cast<U>(~u);
    if (u == 0) return ~0u;
    const auto zeros = static_cast<std::uint32_t>(std::countl_zero(u));
    return kShiftAmount ? zeros : static_cast<std::uint32_t>(8 * sizeof(T) - 1) - zeros;
  }
};
template <class T>
Runner bfind_of(bool shift_amount) {
  return shift_amount ? run_unary<std::uint32_t, T, Bfind<T, true>> : run_unary<std::uint32_t, T, Bfind<T, false>>;
}

struct Fns {
  std::uint32_t operator()(std::uint32_t bits, std::uint32_t base, std::int32_t offset) const {
    if (offset == 0) return base < 32 && (bits >> base & 1) != 0 ? base : ~0u;
    std::int32_t left = offset < 0 ? -offset : offset;
    for (auto at = static_cast<std::int64_t>(base); at >= 0 && at < 32; at += offset < 0 ? -1 : 1) {
      if ((bits >> at & 1) != 0 && --left == 0) return static_cast<std::uint32_t>(at);
    }
    return ~0u;
  }
};

template <bool kWrap>
struct Bmsk {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const {
    if (kWrap) {
      a &= 31;
      b &= 31;
    }
    const std::uint64_t ones = b >= 32 ? 0xffffffff : (std::uint64_t{1} << b) - 1;
    return a >= 32 ? 0 : static_cast<std::uint32_t>(ones << a);
  }
};

template <class T, bool kWrap>
struct Szext {
  T operator()(T a, std::uint32_t n) const {
    if (kWrap) n &= 31;
    if (n >= 32) return a;
    if (n == 0) return 0;
    const auto u = static_cast<std::uint32_t>(a) << (32 - n);
    return static_cast<T>(static_cast<T>(u) >> (32 - n));
  }
};

std::uint32_t permuted(std::uint64_t both, std::uint32_t selector) {
  std::uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t s = selector >> 4 * i & 0xf;
    auto byte = static_cast<std::uint32_t>(both >> 8 * (s & 7) & 0xff);
    if ((s & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
    result |= byte << 8 * i;
  }
  return result;
}
struct Prmt {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b, std::uint32_t c) const {
    return permuted(static_cast<std::uint64_t>(b) << 32 | a, c & 0xffff);
  }
};
// The modes are tables of selectors by the control's two low bits.
template <int kMode>
struct PrmtMode {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b, std::uint32_t c) const {
    static constexpr std::uint32_t kSelectors[6][4] = {
        {0x3210, 0x4321, 0x5432, 0x6543}, {0x5670, 0x6701, 0x7012, 0x0123}, {0x0000, 0x1111, 0x2222, 0x3333},
        {0x3210, 0x3211, 0x3222, 0x3333}, {0x0000, 0x1110, 0x2210, 0x3210}, {0x1010, 0x3232, 0x1010, 0x3232}};
    return permuted(static_cast<std::uint64_t>(b) << 32 | a, kSelectors[kMode][c & 3]);
  }
};
Runner prmt_runner(const Instruction& i) {
  using W = std::uint32_t;
  if (i.has(Modifier::kF4e)) return run_ternary<W, W, W, W, PrmtMode<0>>;
  if (i.has(Modifier::kB4e)) return run_ternary<W, W, W, W, PrmtMode<1>>;
  if (i.has(Modifier::kRc8)) return run_ternary<W, W, W, W, PrmtMode<2>>;
  if (i.has(Modifier::kEcl)) return run_ternary<W, W, W, W, PrmtMode<3>>;
  if (i.has(Modifier::kEcr)) return run_ternary<W, W, W, W, PrmtMode<4>>;
  if (i.has(Modifier::kRc16)) return run_ternary<W, W, W, W, PrmtMode<5>>;
  return run_ternary<W, W, W, W, Prmt>;
}

// With .and or .or a predicate, too: (result != 0) combined with q.
void run_lop3(Warp& warp, const Step& step, Mask mask) {
  const Row &a = warp.source(step.a), &b = warp.source(step.b), &c = warp.source(step.c);
  const auto table = static_cast<std::uint32_t>(warp.source(step.e).lane[0]);
  Mask found = 0;
  for_lanes(mask, [&](int l) {
    const auto x = static_cast<std::uint32_t>(a.lane[l]), y = static_cast<std::uint32_t>(b.lane[l]),
               z = static_cast<std::uint32_t>(c.lane[l]);
    std::uint32_t result = 0;
    for (std::uint32_t row = 0; row < 8; ++row) {
      if ((table >> row & 1) == 0) continue;
      result |= ((row & 4) != 0 ? x : ~x) & ((row & 2) != 0 ? y : ~y) & ((row & 1) != 0 ? z : ~z);
    }
    if (step.d != kNoRef) warp.row(step.d).lane[l] = result;
    found |= Mask{result != 0} << l;
  });
  if (step.pair == kNoRef) return;
  const Mask q = warp.source(step.list).mask();
  warp.set_mask(step.pair, mask, step.source->has(Modifier::kAnd) ? found & q : found | q);
}

// Predicates are masks of the warp.
template <class F>
void run_predicates(Warp& warp, const Step& step, Mask mask) {
  const Mask b = step.b == kNoRef ? 0 : warp.source(step.b).mask();
  warp.set_mask(step.d, mask, F{}(warp.source(step.a).mask(), b));
}
struct NotFirst {
  Mask operator()(Mask a, Mask) const { return ~a; }
};

Runner predicate_runner(Op op) {
  switch (op) {
    case Op::kAnd:
      return run_predicates<And>;
    case Op::kOr:
      return run_predicates<Or>;
    case Op::kXor:
      return run_predicates<Xor>;
    case Op::kNot:
      return run_predicates<NotFirst>;
    default:
      return nullptr;
  }
}

}  // namespace

Runner bit_runner(const Instruction& i) {
  using U32 = std::uint32_t;
  using U64 = std::uint64_t;
  const Type t = i.type();
  if (t == Type::kPred) return predicate_runner(i.op);
  const bool wide = t == Type::kB64 || t == Type::kU64;
  switch (i.op) {
    case Op::kAnd:
      return Binary<And>::of(t);
    case Op::kOr:
      return Binary<Or>::of(t);
    case Op::kXor:
      return Binary<Xor>::of(t);
    case Op::kNot:
      return Unary<Not>::of(t);
    case Op::kCnot:
      return Unary<Cnot>::of(t);
    case Op::kPopc:
      return wide ? run_unary<U32, U64, Popc> : run_unary<U32, U32, Popc>;
    case Op::kClz:
      return wide ? run_unary<U32, U64, Clz> : run_unary<U32, U32, Clz>;
    case Op::kBrev:
      return wide ? run_unary<U64, U64, Brev> : run_unary<U32, U32, Brev>;
    case Op::kShl:
      return by_integer<PickShl>(t);
    case Op::kShr:
      return by_integer<PickShr>(t);
    case Op::kShf:
      if (i.has(Modifier::kLeft))
        return i.has(Modifier::kWrap) ? run_ternary<U32, U32, U32, U32, Shf<true, true>>
                                      : run_ternary<U32, U32, U32, U32, Shf<true, false>>;
      return i.has(Modifier::kWrap) ? run_ternary<U32, U32, U32, U32, Shf<false, true>>
                                    : run_ternary<U32, U32, U32, U32, Shf<false, false>>;
    case Op::kBfe:
      return by_integer<PickBfe>(t);
    case Op::kBfi:
      return wide ? run_bfi<U64> : run_bfi<U32>;
    case Op::kBfind: {
      const bool amount = i.has(Modifier::kShiftamt);
      if (t == Type::kU32) return bfind_of<std::uint32_t>(amount);
      if (t == Type::kS32) return bfind_of<std::int32_t>(amount);
      return t == Type::kU64 ? bfind_of<std::uint64_t>(amount) : bfind_of<std::int64_t>(amount);
    }
    case Op::kFns:
      return run_ternary<U32, U32, U32, std::int32_t, Fns>;
    case Op::kBmsk:
      return i.has(Modifier::kWrap) ? run_binary<U32, U32, U32, Bmsk<true>> : run_binary<U32, U32, U32, Bmsk<false>>;
    case Op::kSzext:
      if (t == Type::kS32)
        return i.has(Modifier::kWrap) ? run_binary<std::int32_t, std::int32_t, U32, Szext<std::int32_t, true>>
                                      : run_binary<std::int32_t, std::int32_t, U32, Szext<std::int32_t, false>>;
      return i.has(Modifier::kWrap) ? run_binary<U32, U32, U32, Szext<U32, true>>
                                    : run_binary<U32, U32, U32, Szext<U32, false>>;
    case Op::kPrmt:
      return prmt_runner(i);
    case Op::kLop3:
      return run_lop3;
    default:
      return nullptr;
  }
}

}  // namespace cudasim::ptx
