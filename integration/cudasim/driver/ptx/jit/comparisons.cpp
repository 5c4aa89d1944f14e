// setp, selp, mov.
#include "ptx/jit/translator.h"

namespace cudasim::ptx::jit {
namespace {

struct Relation {
  Modifier modifier;
  LLVMIntPredicate of_unsigned, of_signed;
  LLVMRealPredicate of_floats;
};
constexpr Relation kRelations[] = {
    {Modifier::kEq, LLVMIntEQ, LLVMIntEQ, LLVMRealOEQ},    {Modifier::kEqu, LLVMIntEQ, LLVMIntEQ, LLVMRealUEQ},
    {Modifier::kNe, LLVMIntNE, LLVMIntNE, LLVMRealONE},    {Modifier::kNeu, LLVMIntNE, LLVMIntNE, LLVMRealUNE},
    {Modifier::kLt, LLVMIntULT, LLVMIntSLT, LLVMRealOLT},  {Modifier::kLtu, LLVMIntULT, LLVMIntSLT, LLVMRealULT},
    {Modifier::kLo, LLVMIntULT, LLVMIntSLT, LLVMRealOLT},  {Modifier::kLe, LLVMIntULE, LLVMIntSLE, LLVMRealOLE},
    {Modifier::kLeu, LLVMIntULE, LLVMIntSLE, LLVMRealULE}, {Modifier::kLs, LLVMIntULE, LLVMIntSLE, LLVMRealOLE},
    {Modifier::kGt, LLVMIntUGT, LLVMIntSGT, LLVMRealOGT},  {Modifier::kGtu, LLVMIntUGT, LLVMIntSGT, LLVMRealUGT},
    {Modifier::kHi, LLVMIntUGT, LLVMIntSGT, LLVMRealOGT},  {Modifier::kGe, LLVMIntUGE, LLVMIntSGE, LLVMRealOGE},
    {Modifier::kGeu, LLVMIntUGE, LLVMIntSGE, LLVMRealUGE}, {Modifier::kHs, LLVMIntUGE, LLVMIntSGE, LLVMRealOGE},
};

}  // namespace

bool Translator::compare_step(const Step& step) {
  const Instruction& i = *step.source;
  const Type t = i.type();
  const unsigned bits = 8 * bytes_of(t);
  if (i.op == Op::kSelp) {
    write(step.d, e_.select(e_.lanes(read_mask(step.c)), read(step.a, bits), read(step.b, bits)));
    return true;
  }
  if (i.op != Op::kSetp) return false;
  const bool floating = t == Type::kF32 || t == Type::kF64;
  if (!floating && (t < Type::kB8 || t > Type::kS64)) return false;
  Value found = nullptr;
  const auto operand = [&](Ref ref) {
    const Value v = read_floats(ref, bits);
    return i.has(Modifier::kFtz) && t == Type::kF32 ? flushed(v) : v;
  };
  if (floating && (i.has(Modifier::kNum) || i.has(Modifier::kNan))) {
    found = LLVMBuildFCmp(e_.builder, i.has(Modifier::kNum) ? LLVMRealORD : LLVMRealUNO, operand(step.a),
                          operand(step.b), "");
  }
  for (const Relation& r : kRelations) {
    if (found != nullptr || !i.has(r.modifier)) continue;
    found = floating ? LLVMBuildFCmp(e_.builder, r.of_floats, operand(step.a), operand(step.b), "")
                     : e_.is(is_signed(t) ? r.of_signed : r.of_unsigned, read(step.a, bits), read(step.b, bits));
  }
  if (found == nullptr) return false;
  const Value first = e_.mask(found);
  const Value q = step.c == kNoRef ? nullptr : read_mask(step.c);
  const auto combined = [&](Value value) {
    if (q == nullptr) return value;
    return i.has(Modifier::kAnd)  ? e_.both(value, q)
           : i.has(Modifier::kOr) ? e_.either(value, q)
                                  : e_.exclusive(value, q);
  };
  write_mask(step.d, combined(first));
  write_mask(step.pair, combined(e_.inverse(first)));
  return true;
}

bool Translator::move_step(const Step& step) {
  const Instruction& i = *step.source;
  if (i.op != Op::kMov) return false;
  const unsigned bits = 8 * bytes_of(i.type());
  const bool unpacks = i.operands[0].kind == Operand::Kind::kVector;
  if (unpacks || i.operands[1].kind == Operand::Kind::kVector) {
    const auto each = static_cast<unsigned>(step.value);
    Value whole = unpacks ? read(step.a, bits) : e_.all(bits, 0);
    for (std::uint32_t n = 0; n < step.count; ++n) {
      const Ref element = code_.refs[step.list + n];
      const Value by = e_.all(bits, std::uint64_t{n} * each);
      if (unpacks) {
        write(element, e_.resized(LLVMBuildLShr(e_.builder, whole, by, ""), each));
      } else {
        whole = e_.either(whole, LLVMBuildShl(e_.builder, e_.resized(read(element, each), bits), by, ""));
      }
    }
    if (!unpacks) write(step.d, whole);
    return true;
  }
  if (step.d == kNoRef) return true;
  if (i.type() == Type::kPred) {
    write_mask(step.d, read_mask(step.a));
    return true;
  }
  const auto known = is_frame(step.a) ? uniform_.find(row_of(step.a)) : uniform_.end();
  const Value same = known == uniform_.end() || guarded_ ? nullptr : known->second;
  write(step.d, read(step.a, bits));
  if (same != nullptr && bits == 64) uniform_[row_of(step.d)] = same;
  return true;
}

}  // namespace cudasim::ptx::jit
