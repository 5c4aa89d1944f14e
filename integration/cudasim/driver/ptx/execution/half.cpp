// Arithmetic of f16 and bf16, single and in pairs: exact in f64, rounded once.
#include <cmath>

#include "ptx/execution/lowering.h"
#include "ptx/execution/small_floats.h"
#include "ptx/execution/warp.h"

namespace cudasim::ptx {
namespace {

struct Half {
  const Format& format;
  bool ftz, sat, relu;
  std::uint32_t sign_bit = 0x8000;

  explicit Half(const Instruction& i)
      : format(format_of(i.type())),
        ftz(i.has(Modifier::kFtz)),
        sat(i.has(Modifier::kSat)),
        relu(i.has(Modifier::kRelu)) {}

  // Subnormal numbers to zero where asked for.
  std::uint32_t flushed(std::uint32_t bits) const {
    const std::uint32_t exponent = (bits & 0x7fff) >> format.mantissa_bits;
    return ftz && exponent == 0 ? bits & sign_bit : bits;
  }
  double in(std::uint64_t bits) const { return decode(flushed(static_cast<std::uint16_t>(bits)), format); }
  std::uint32_t out(double x) const {
    if (sat) x = x > 0 ? std::fmin(x, 1.0) : 0.0;  // NaN becomes zero
    if (relu && !(x > 0) && x == x) x = 0.0;
    return flushed(encode(x, format));
  }
};

double lesser(double a, double b) {
  if (a != a) return b;
  if (b != b) return a;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

template <Op kOp>
std::uint32_t computed(const Half& h, const Instruction& i, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  if constexpr (kOp == Op::kNeg) return (h.flushed(static_cast<std::uint16_t>(a))) ^ h.sign_bit;
  if constexpr (kOp == Op::kAbs) return h.flushed(static_cast<std::uint16_t>(a)) & ~h.sign_bit;
  double x = h.in(a), y = h.in(b);
  if constexpr (kOp == Op::kAdd) return h.out(fused_odd(x, 1.0, y));
  if constexpr (kOp == Op::kSub) return h.out(fused_odd(x, 1.0, -y));
  if constexpr (kOp == Op::kMul) return h.out(x * y);
  if constexpr (kOp == Op::kFma) return h.out(fused_odd(x, y, h.in(c)));
  if constexpr (kOp == Op::kMin || kOp == Op::kMax) {
    const bool sign = std::signbit(x) != std::signbit(y);
    if (i.has(Modifier::kAbs)) {
      x = std::fabs(x);
      y = std::fabs(y);
    }
    double result = kOp == Op::kMin ? lesser(x, y) : -lesser(-x, -y);
    if (i.has(Modifier::kNaN) && (x != x || y != y)) result = NAN;
    if (i.has(Modifier::kXorsign)) result = std::copysign(result, sign ? -1.0 : 1.0);
    return h.out(result);
  }
  if constexpr (kOp == Op::kEx2) return h.out(std::exp2(x));
  if constexpr (kOp == Op::kTanh) return h.out(std::tanh(x));
  return 0;
}

template <Op kOp>
void run_half(Warp& warp, const Step& step, Mask mask) {
  const Instruction& i = *step.source;
  const Half half(i);
  const bool pair = i.type() == Type::kF16x2 || i.type() == Type::kBf16x2;
  Row& d = warp.row(step.d);
  const Row& a = warp.source(step.a);
  const Row& b = warp.source(step.b == kNoRef ? step.a : step.b);
  const Row& c = warp.source(step.c == kNoRef ? step.a : step.c);
  for_lanes(mask, [&](int l) {
    std::uint64_t result = computed<kOp>(half, i, a.lane[l], b.lane[l], c.lane[l]);
    if (pair) {
      result |= static_cast<std::uint64_t>(computed<kOp>(half, i, a.lane[l] >> 16, b.lane[l] >> 16, c.lane[l] >> 16))
                << 16;
    }
    d.lane[l] = result;
  });
}

}  // namespace

Runner half_runner(const Instruction& i) {
  if (i.types.size() != 1) return nullptr;
  const Type t = i.type();
  if (t != Type::kF16 && t != Type::kF16x2 && t != Type::kBf16 && t != Type::kBf16x2) return nullptr;
  if (i.has(Modifier::kRz) || i.has(Modifier::kRm) || i.has(Modifier::kRp)) return nullptr;
  switch (i.op) {
    case Op::kAdd:
      return run_half<Op::kAdd>;
    case Op::kSub:
      return run_half<Op::kSub>;
    case Op::kMul:
      return run_half<Op::kMul>;
    case Op::kFma:
      return run_half<Op::kFma>;
    case Op::kNeg:
      return run_half<Op::kNeg>;
    case Op::kAbs:
      return run_half<Op::kAbs>;
    case Op::kMin:
      return i.operands.size() == 3 ? run_half<Op::kMin> : nullptr;
    case Op::kMax:
      return i.operands.size() == 3 ? run_half<Op::kMax> : nullptr;
    case Op::kEx2:
      return run_half<Op::kEx2>;
    case Op::kTanh:
      return run_half<Op::kTanh>;
    default:
      return nullptr;
  }
}

}  // namespace cudasim::ptx
