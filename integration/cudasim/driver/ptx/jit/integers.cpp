// Integers and bits. Everything wraps.
#include "ptx/jit/translator.h"

namespace cudasim::ptx::jit {
namespace {

unsigned width_of(Type type) { return 8 * bytes_of(type); }

}  // namespace

bool Translator::integer_step(const Step& step) {
  const Instruction& i = *step.source;
  const Type t = i.type();
  if (t < Type::kB8 || t > Type::kS64 || t == Type::kB128 || i.has(Modifier::kCc) || i.has(Modifier::kSat) ||
      i.has(Modifier::kRelu))
    return false;
  const unsigned bits = width_of(t);
  const bool has_sign = is_signed(t);
  const bool wide = i.has(Modifier::kWide), hi = i.has(Modifier::kHi);
  const auto a = [&] { return read(step.a, bits); };
  const auto b = [&] { return read(step.b, bits); };
  const auto longer = [&](Value v) { return has_sign ? e_.extended(v, 2 * bits) : e_.resized(v, 2 * bits); };
  const auto product = [&](Value x, Value y) {
    if (wide) return e_.mul(longer(x), longer(y));
    if (!hi) return e_.mul(x, y);
    return e_.resized(LLVMBuildLShr(e_.builder, e_.mul(longer(x), longer(y)), e_.all(2 * bits, bits), ""), bits);
  };
  const auto less = [&](Value x, Value y) { return e_.is(has_sign ? LLVMIntSLT : LLVMIntULT, x, y); };
  const auto zero = [&] { return e_.all(bits, 0); };
  switch (i.op) {
    case Op::kAdd:
      write(step.d, e_.add(a(), b()));
      return true;
    case Op::kSub:
      write(step.d, e_.sub(a(), b()));
      return true;
    case Op::kMul:
    case Op::kMad: {
      if (bits == 64 && hi) return false;
      Value result = product(a(), b());
      if (i.op == Op::kMad) result = e_.add(result, read(step.c, wide ? 2 * bits : bits));
      write(step.d, result);
      return true;
    }
    case Op::kMin:
    case Op::kMax: {
      if (i.operands.size() != 3) return false;
      const Value x = a(), y = b();
      write(step.d, e_.select(i.op == Op::kMin ? less(y, x) : less(x, y), y, x));
      return true;
    }
    case Op::kAbs: {
      const Value x = a();
      write(step.d, e_.select(less(x, zero()), e_.sub(zero(), x), x));
      return true;
    }
    case Op::kNeg:
      write(step.d, e_.sub(zero(), a()));
      return true;
    case Op::kSad: {
      const Value x = a(), y = b();
      write(step.d, e_.add(e_.select(less(x, y), e_.sub(y, x), e_.sub(x, y)), read(step.c, bits)));
      return true;
    }
    case Op::kDiv:
    case Op::kRem: {
      if (bits > 32) return false;
      // By doubles, which hold quotients of 32 bits exactly enough to be cut off.
      const auto full = [&](Value v) { return has_sign ? e_.extended(v, 32) : e_.resized(v, 32); };
      const Value x = full(a()), y = full(b()), none = e_.is_zero(y);
      const Value divisor = e_.select(none, e_.all(32, 1), y);
      const auto real = [&](Value v) {
        return has_sign ? LLVMBuildSIToFP(e_.builder, v, e_.floats(64), "")
                        : LLVMBuildUIToFP(e_.builder, v, e_.floats(64), "");
      };
      const Value ratio = LLVMBuildFDiv(e_.builder, real(x), real(divisor), "");
      const Value cut = has_sign ? LLVMBuildFPToSI(e_.builder, ratio, e_.integers(64), "")
                                 : LLVMBuildFPToUI(e_.builder, ratio, e_.integers(64), "");
      const Value quotient = e_.resized(cut, 32);
      write(step.d, i.op == Op::kDiv ? e_.select(none, e_.all(32, 0xffffffff), quotient)
                                     : e_.select(none, x, e_.sub(x, e_.mul(quotient, divisor))));
      return true;
    }
    default:
      return false;
  }
}

bool Translator::bit_step(const Step& step) {
  const Instruction& i = *step.source;
  const Type t = i.type();
  if (t == Type::kPred) {
    switch (i.op) {
      case Op::kAnd:
        write_mask(step.d, e_.both(read_mask(step.a), read_mask(step.b)));
        return true;
      case Op::kOr:
        write_mask(step.d, e_.either(read_mask(step.a), read_mask(step.b)));
        return true;
      case Op::kXor:
        write_mask(step.d, e_.exclusive(read_mask(step.a), read_mask(step.b)));
        return true;
      case Op::kNot:
        write_mask(step.d, e_.inverse(read_mask(step.a)));
        return true;
      default:
        return false;
    }
  }
  if (t < Type::kB8 || t > Type::kS64 || t == Type::kB128) return false;
  const unsigned bits = width_of(t);
  const auto a = [&] { return read(step.a, bits); };
  const auto b = [&] { return read(step.b, bits); };
  // Counts at or above the width.
  const auto shifted = [&](LLVMOpcode op, Value value, Value count) {
    const unsigned width = Emitter::bits_of(value);
    const Value far = e_.is(LLVMIntUGE, count, e_.all(32, width));
    const Value near = e_.resized(e_.select(far, e_.all(32, 0), count), width);
    const Value result = LLVMBuildBinOp(e_.builder, op, value, near, "");
    if (op == LLVMAShr) return e_.select(far, LLVMBuildAShr(e_.builder, value, e_.all(width, width - 1), ""), result);
    return e_.select(far, e_.all(width, 0), result);
  };
  const auto ones = [&](Value count) { return e_.sub(shifted(LLVMShl, e_.all(bits, 1), count), e_.all(bits, 1)); };
  switch (i.op) {
    case Op::kAnd:
      write(step.d, e_.both(a(), b()));
      return true;
    case Op::kOr:
      write(step.d, e_.either(a(), b()));
      return true;
    case Op::kXor:
      write(step.d, e_.exclusive(a(), b()));
      return true;
    case Op::kNot:
      write(step.d, e_.inverse(a()));
      return true;
    case Op::kCnot:
      write(step.d, e_.resized(e_.is_zero(a()), bits));
      return true;
    case Op::kShl:
      write(step.d, shifted(LLVMShl, a(), read(step.b, 32)));
      return true;
    case Op::kShr:
      write(step.d, shifted(is_signed(t) ? LLVMAShr : LLVMLShr, a(), read(step.b, 32)));
      return true;
    case Op::kShf: {
      const Value low = e_.resized(read(step.a, 32), 64), high = e_.resized(read(step.b, 32), 64);
      const Value both = e_.either(low, LLVMBuildShl(e_.builder, high, e_.all(64, 32), ""));
      Value count = read(step.c, 32);
      if (i.has(Modifier::kWrap)) {
        count = e_.both(count, e_.all(32, 31));
      } else {
        count = e_.select(e_.is(LLVMIntULT, count, e_.all(32, 32)), count, e_.all(32, 32));
      }
      count = e_.resized(count, 64);
      const Value result = i.has(Modifier::kLeft) ? LLVMBuildLShr(e_.builder, LLVMBuildShl(e_.builder, both, count, ""),
                                                                  e_.all(64, 32), "")
                                                  : LLVMBuildLShr(e_.builder, both, count, "");
      write(step.d, e_.resized(result, 32));
      return true;
    }
    case Op::kPopc:
      write(step.d, e_.resized(e_.intrinsic("llvm.ctpop", {e_.integers(bits)}, {a()}), 32));
      return true;
    case Op::kClz:
      write(step.d, e_.resized(e_.intrinsic("llvm.ctlz", {e_.integers(bits)}, {a(), e_.constant(1, 0)}), 32));
      return true;
    case Op::kBrev:
      write(step.d, e_.intrinsic("llvm.bitreverse", {e_.integers(bits)}, {a()}));
      return true;
    case Op::kBfe: {
      const Value x = a();
      const Value position = e_.both(read(step.b, 32), e_.all(32, 0xff)),
                  length = e_.both(read(step.c, 32), e_.all(32, 0xff));
      Value field = e_.both(shifted(LLVMLShr, x, position), ones(length));
      if (is_signed(t)) {
        const Value last = e_.all(32, bits - 1);
        const auto least = [&](Value m, Value n) { return e_.select(e_.is(LLVMIntULT, m, n), m, n); };
        const Value sign_at = least(e_.sub(e_.add(position, length), e_.all(32, 1)), last);
        const Value beyond = e_.is(LLVMIntUGE, position, e_.all(32, bits));
        const Value width = e_.select(beyond, e_.all(32, 0), least(length, e_.sub(e_.all(32, bits), position)));
        const Value sign = e_.is(LLVMIntNE, e_.both(shifted(LLVMLShr, x, sign_at), e_.all(bits, 1)), e_.all(bits, 0));
        const Value filled = e_.either(field, e_.inverse(ones(width)));
        field = e_.select(sign, filled, field);
        field = e_.select(e_.is_zero(length), e_.all(bits, 0), field);
      }
      write(step.d, field);
      return true;
    }
    case Op::kBfi: {
      const Value position = e_.both(read(step.c, 32), e_.all(32, 0xff)),
                  length = e_.both(read(step.e, 32), e_.all(32, 0xff));
      const Value field = shifted(LLVMShl, ones(length), position);
      write(step.d, e_.either(e_.without(b(), field), e_.both(shifted(LLVMShl, a(), position), field)));
      return true;
    }
    case Op::kLop3: {
      if (step.pair != kNoRef || !is_constant(step.e)) return false;
      const std::uint64_t table = executable_.constants[row_of(step.e)].lane[0];
      const Value x = a(), y = b(), z = read(step.c, bits);
      Value result = e_.all(bits, 0);
      for (unsigned row = 0; row < 8; ++row) {
        if ((table >> row & 1) == 0) continue;
        const Value term = e_.both((row & 4) != 0 ? x : e_.inverse(x), (row & 2) != 0 ? y : e_.inverse(y));
        result = e_.either(result, e_.both(term, (row & 1) != 0 ? z : e_.inverse(z)));
      }
      write(step.d, result);
      return true;
    }
    case Op::kPrmt: {
      if (!is_constant(step.c) || i.modifiers != Modifiers()) return false;
      const std::uint64_t selector = executable_.constants[row_of(step.c)].lane[0];
      if ((selector & 0x8888) != 0) return false;
      const LlvmType bytes = LLVMVectorType(e_.integer(8), 128);
      Value order[128];
      for (unsigned at = 0; at < 128; ++at) {
        const unsigned from = selector >> 4 * (at % 4) & 7;
        order[at] = e_.constant(32, (from < 4 ? 0 : 128 - 4) + at / 4 * 4 + from);
      }
      const auto as_bytes = [&](Value v) { return LLVMBuildBitCast(e_.builder, v, bytes, ""); };
      const Value result =
          LLVMBuildShuffleVector(e_.builder, as_bytes(a()), as_bytes(b()), LLVMConstVector(order, 128), "");
      write(step.d, LLVMBuildBitCast(e_.builder, result, e_.integers(32), ""));
      return true;
    }
    default:
      return false;
  }
}

}  // namespace cudasim::ptx::jit
