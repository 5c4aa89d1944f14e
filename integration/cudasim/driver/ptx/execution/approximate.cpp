// Functions that the device approximates: computed in f64 and rounded once, which is within every tolerance that the
// ISA gives. Division, reciprocal and square root with .approx are the exact ones.
#include <cmath>

#include "ptx/execution/lowering.h"
#include "ptx/execution/warp.h"

namespace cudasim::ptx {
namespace {

struct Sin {
  double operator()(double x) const { return std::sin(x); }
};
struct Cos {
  double operator()(double x) const { return std::cos(x); }
};
struct Ex2 {
  double operator()(double x) const { return std::exp2(x); }
};
struct Lg2 {
  double operator()(double x) const { return std::log2(x); }
};
struct Tanh {
  double operator()(double x) const { return std::tanh(x); }
};
struct Rsqrt {
  double operator()(double x) const { return 1.0 / std::sqrt(x); }
};

float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }

template <class F>
void run_single(Warp& warp, const Step& step, Mask mask) {
  const bool ftz = step.source->has(Modifier::kFtz);
  Row& d = warp.row(step.d);
  const Row& a = warp.source(step.a);
  for_lanes(mask, [&](int l) {
    const auto x = value_of<float>(a.lane[l]);
    auto result = static_cast<float>(F{}(ftz ? flushed(x) : x));
    if (ftz) result = flushed(result);
    d.lane[l] = result == result ? slot_of<float>(result) : 0x7fffffffu;
  });
}

void run_rsqrt_double(Warp& warp, const Step& step, Mask mask) {
  Row& d = warp.row(step.d);
  const Row& a = warp.source(step.a);
  for_lanes(mask, [&](int l) { d.lane[l] = slot_of<double>(Rsqrt{}(value_of<double>(a.lane[l]))); });
}

}  // namespace

Runner approximate_runner(const Instruction& i) {
  if (i.op == Op::kRsqrt && i.type() == Type::kF64) return run_rsqrt_double;
  if (i.type() != Type::kF32) return nullptr;
  switch (i.op) {
    case Op::kSin:
      return run_single<Sin>;
    case Op::kCos:
      return run_single<Cos>;
    case Op::kEx2:
      return run_single<Ex2>;
    case Op::kLg2:
      return run_single<Lg2>;
    case Op::kTanh:
      return run_single<Tanh>;
    case Op::kRsqrt:
      return run_single<Rsqrt>;
    default:
      return nullptr;
  }
}

}  // namespace cudasim::ptx
