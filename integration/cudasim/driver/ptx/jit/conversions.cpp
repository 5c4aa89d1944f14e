// cvt, of what compilers use all the time.
#include <algorithm>

#include "ptx/jit/translator.h"

namespace cudasim::ptx::jit {
namespace {

bool is_integer(Type t) { return t >= Type::kU8 && t <= Type::kS64; }
bool is_float(Type t) { return t == Type::kF32 || t == Type::kF64; }
unsigned bits_of(Type t) { return 8 * bytes_of(t); }

const char* rounding_to_whole(const Instruction& i) {
  return i.has(Modifier::kRni)   ? "llvm.nearbyint"
         : i.has(Modifier::kRzi) ? "llvm.trunc"
         : i.has(Modifier::kRmi) ? "llvm.floor"
         : i.has(Modifier::kRpi) ? "llvm.ceil"
                                 : nullptr;
}

}  // namespace

bool Translator::convert_step(const Step& step) {
  const Instruction& i = *step.source;
  if (i.op == Op::kCvta) {
    if (step.d == kNoRef) return true;
    const auto known = is_frame(step.a) ? uniform_.find(row_of(step.a)) : uniform_.end();
    Value same = known == uniform_.end() || guarded_ ? nullptr : known->second;
    Value value = read(step.a, 64);
    if (i.space() == Space::kShared) {
      const Value base = e_.spread(shared_address_);
      value = i.has(Modifier::kTo) ? e_.sub(value, base) : e_.add(value, base);
      same = nullptr;
    }
    write(step.d, value);
    if (same != nullptr && registers_[row_of(step.d)].bits == 64) uniform_[row_of(step.d)] = same;
    return true;
  }
  if (i.op != Op::kCvt || i.types.size() != 2 || i.operands.size() != 2 || step.d == kNoRef) return false;
  const Type to = i.types[0], from = i.types[1];
  for (const Modifier m : {Modifier::kPack, Modifier::kRz, Modifier::kRm, Modifier::kRp, Modifier::kRna,
                           Modifier::kRelu, Modifier::kSatfinite}) {
    if (i.has(m)) return false;
  }
  const bool sat = i.has(Modifier::kSat), ftz = i.has(Modifier::kFtz);
  const unsigned width = registers_[row_of(step.d)].bits, to_bits = bits_of(to), from_bits = bits_of(from);
  const auto write_integer = [&](Value value) {
    value = e_.resized(value, to_bits);
    write(step.d, is_signed(to) ? e_.extended(value, width) : e_.resized(value, width));
    return true;
  };
  if (is_integer(from)) {
    const Value x = read(step.a, from_bits);
    if (is_integer(to)) {
      if (sat) return false;
      return write_integer(is_signed(from) ? e_.extended(x, 64) : e_.resized(x, 64));
    }
    if (!is_float(to) || sat) return false;
    const LlvmType type = e_.floats(to_bits);
    const Value wide =
        is_signed(from) ? e_.extended(x, std::max(32u, from_bits)) : e_.resized(x, std::max(32u, from_bits));
    write_floats(
        step.d,
        is_signed(from) ? LLVMBuildSIToFP(e_.builder, wide, type, "") : LLVMBuildUIToFP(e_.builder, wide, type, ""),
        to_bits);
    return true;
  }
  if (!is_float(from)) return false;
  Value x = read_floats(step.a, from_bits);
  if (ftz && from == Type::kF32) x = flushed(x);
  const char* const whole = rounding_to_whole(i);
  if (is_integer(to)) {
    if (to_bits < 32 || sat) return false;
    const Value number = LLVMBuildFCmp(e_.builder, LLVMRealORD, x, x, "");
    if (whole != nullptr && !i.has(Modifier::kRzi)) x = e_.intrinsic(whole, {LLVMTypeOf(x)}, {x});
    Value value =
        e_.intrinsic(is_signed(to) ? "llvm.fptosi.sat" : "llvm.fptoui.sat", {e_.integers(to_bits), LLVMTypeOf(x)}, {x});
    const std::uint64_t nan = from_bits != 64 && to_bits != 64 ? 0 : std::uint64_t{1} << (to_bits - 1);
    value = e_.select(number, value, e_.all(to_bits, nan));
    return write_integer(value);
  }
  if (!is_float(to) || sat) return false;
  if (whole != nullptr) x = e_.intrinsic(whole, {LLVMTypeOf(x)}, {x});
  if (to_bits > from_bits) x = LLVMBuildFPExt(e_.builder, x, e_.floats(64), "");
  if (to_bits < from_bits) x = LLVMBuildFPTrunc(e_.builder, x, e_.floats(32), "");
  if (to == Type::kF32 && ftz) x = flushed(x);
  write_floats(step.d, canonical(x, to_bits), to_bits);
  return true;
}

}  // namespace cudasim::ptx::jit
