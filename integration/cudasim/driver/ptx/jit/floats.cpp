// f32 and f64. Nothing is contracted or reordered: no fast-math flag is set anywhere.
#include "ptx/jit/translator.h"

namespace cudasim::ptx::jit {
namespace {

constexpr std::uint64_t kNaN = 0x7fffffff, kSign = 0x80000000, kExponent = 0x7f800000;

bool is_rounded_otherwise(const Instruction& i) {
  return i.has(Modifier::kRz) || i.has(Modifier::kRm) || i.has(Modifier::kRp) || i.has(Modifier::kRelu);
}

}  // namespace

// Subnormal f32 to zero of the same sign.
Value Translator::flushed(Value floats) const {
  const Value bits = e_.as_integers(floats, 32);
  const Value small = e_.is_zero(e_.both(bits, e_.all(32, kExponent)));
  return e_.as_floats(e_.select(small, e_.both(bits, e_.all(32, kSign)), bits), 32);
}

// f32 has one NaN.
Value Translator::canonical(Value floats, unsigned bits) const {
  if (bits != 32) return floats;
  const Value number = LLVMBuildFCmp(e_.builder, LLVMRealORD, floats, floats, "");
  return e_.as_floats(e_.select(number, e_.as_integers(floats, 32), e_.all(32, kNaN)), 32);
}

bool Translator::floating_step(const Step& step) {
  const Instruction& i = *step.source;
  const Type t = i.type();
  if ((t != Type::kF32 && t != Type::kF64) || i.types.size() != 1 || is_rounded_otherwise(i)) return false;
  const unsigned bits = t == Type::kF32 ? 32 : 64;
  const bool ftz = i.has(Modifier::kFtz) && bits == 32;
  const LlvmType type = e_.floats(bits);
  const auto operand = [&](Ref ref) { return ftz ? flushed(read_floats(ref, bits)) : read_floats(ref, bits); };
  const auto number = [&](double value) { return e_.spread(LLVMConstReal(e_.floating(bits), value)); };
  const auto result = [&](Value value) {
    if (ftz) value = flushed(value);
    if (i.has(Modifier::kSat)) {
      // NaN becomes zero.
      const Value below_one = e_.select(LLVMBuildFCmp(e_.builder, LLVMRealOLT, value, number(1), ""), value, number(1));
      value = e_.select(LLVMBuildFCmp(e_.builder, LLVMRealOGT, value, number(0), ""), below_one, number(0));
    }
    write_floats(step.d, canonical(value, bits), bits);
    return true;
  };
  if (i.has(Modifier::kFtz) && bits == 64) return false;
  switch (i.op) {
    case Op::kAdd:
      return result(LLVMBuildFAdd(e_.builder, operand(step.a), operand(step.b), ""));
    case Op::kSub:
      return result(LLVMBuildFSub(e_.builder, operand(step.a), operand(step.b), ""));
    case Op::kMul:
      return result(LLVMBuildFMul(e_.builder, operand(step.a), operand(step.b), ""));
    case Op::kDiv:
      return result(LLVMBuildFDiv(e_.builder, operand(step.a), operand(step.b), ""));
    case Op::kFma:
    case Op::kMad:
      return result(e_.intrinsic("llvm.fma", {type}, {operand(step.a), operand(step.b), operand(step.c)}));
    case Op::kRcp:
      return result(LLVMBuildFDiv(e_.builder, number(1), operand(step.a), ""));
    case Op::kSqrt:
      return result(e_.intrinsic("llvm.sqrt", {type}, {operand(step.a)}));
    case Op::kAbs:
    case Op::kNeg: {
      const std::uint64_t sign = std::uint64_t{1} << (bits - 1);
      const Value x = e_.as_integers(operand(step.a), bits);
      write(step.d, i.op == Op::kAbs ? e_.both(x, e_.all(bits, sign - 1)) : e_.exclusive(x, e_.all(bits, sign)));
      return true;
    }
    case Op::kMin:
    case Op::kMax: {
      if (i.operands.size() != 3 || i.has(Modifier::kNaN) || i.has(Modifier::kXorsign) || i.has(Modifier::kAbs))
        return false;
      const Value a = operand(step.a), b = operand(step.b);
      const auto is = [&](LLVMRealPredicate p, Value x, Value y) { return LLVMBuildFCmp(e_.builder, p, x, y, ""); };
      // Of equals (zeros) the one that has, or has not, the sign; of a number and NaN the number.
      const Value negative = e_.is(LLVMIntSLT, e_.as_integers(a, bits), e_.all(bits, 0));
      const bool is_min = i.op == Op::kMin;
      const Value of_equals = is_min ? e_.select(negative, a, b) : e_.select(negative, b, a);
      Value value = e_.select(is(is_min ? LLVMRealOLT : LLVMRealOGT, a, b), a, b);
      value = e_.select(is(LLVMRealOEQ, a, b), of_equals, value);
      value = e_.select(is(LLVMRealUNO, b, b), a, value);
      value = e_.select(is(LLVMRealUNO, a, a), b, value);
      return result(value);
    }
    default:
      return false;
  }
}

}  // namespace cudasim::ptx::jit
