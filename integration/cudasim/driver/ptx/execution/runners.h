// Runners from functions of single lanes.
#pragma once
#include "ptx/execution/warp.h"

namespace cudasim::ptx {

template <class D, class A, class F>
void run_unary(Warp& warp, const Step& step, Mask mask) {
  if (step.d == kNoRef) return;
  Row& d = warp.row(step.d);
  const Row& a = warp.source(step.a);
  for_lanes(mask, [&](int l) { d.lane[l] = slot_of<D>(F{}(value_of<A>(a.lane[l]))); });
}

template <class D, class A, class B, class F>
void run_binary(Warp& warp, const Step& step, Mask mask) {
  if (step.d == kNoRef) return;
  Row& d = warp.row(step.d);
  const Row &a = warp.source(step.a), &b = warp.source(step.b);
  for_lanes(mask, [&](int l) { d.lane[l] = slot_of<D>(F{}(value_of<A>(a.lane[l]), value_of<B>(b.lane[l]))); });
}

template <class D, class A, class B, class C, class F>
void run_ternary(Warp& warp, const Step& step, Mask mask) {
  if (step.d == kNoRef) return;
  Row& d = warp.row(step.d);
  const Row &a = warp.source(step.a), &b = warp.source(step.b), &c = warp.source(step.c);
  for_lanes(mask, [&](int l) {
    d.lane[l] = slot_of<D>(F{}(value_of<A>(a.lane[l]), value_of<B>(b.lane[l]), value_of<C>(c.lane[l])));
  });
}

// One of a family of runners by integer type: `Pick<T>::runner`.
template <template <class> class Pick>
Runner by_integer(Type type) {
  switch (type) {
    case Type::kU16:
    case Type::kB16:
      return Pick<std::uint16_t>::runner();
    case Type::kU32:
    case Type::kB32:
      return Pick<std::uint32_t>::runner();
    case Type::kU64:
    case Type::kB64:
      return Pick<std::uint64_t>::runner();
    case Type::kS16:
      return Pick<std::int16_t>::runner();
    case Type::kS32:
      return Pick<std::int32_t>::runner();
    case Type::kS64:
      return Pick<std::int64_t>::runner();
    default:
      return nullptr;
  }
}

// The same function of two or three lanes of one type for all integer types.
template <class F>
struct Unary {
  template <class T>
  struct Pick {
    static Runner runner() { return run_unary<T, T, F>; }
  };
  static Runner of(Type type) { return by_integer<Pick>(type); }
};
template <class F>
struct Binary {
  template <class T>
  struct Pick {
    static Runner runner() { return run_binary<T, T, T, F>; }
  };
  static Runner of(Type type) { return by_integer<Pick>(type); }
};
template <class F>
struct Ternary {
  template <class T>
  struct Pick {
    static Runner runner() { return run_ternary<T, T, T, T, F>; }
  };
  static Runner of(Type type) { return by_integer<Pick>(type); }
};

}  // namespace cudasim::ptx
