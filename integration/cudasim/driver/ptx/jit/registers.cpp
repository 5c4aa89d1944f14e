// Registers as variables, rows of the frame, and single steps.
#include <algorithm>
#include <cstddef>

#include "ptx/jit/translator.h"

namespace cudasim::ptx::jit {
namespace {

// Its value in the interpreter's row, in lane order.
std::uint64_t row_offset(std::uint32_t row) { return std::uint64_t{row} * sizeof(Row); }

bool is_same_in_all_lanes(Special s) {
  return !(s <= Special::kTidZ || s == Special::kLaneid || (s >= Special::kLanemaskEq && s <= Special::kLanemaskGt));
}

}  // namespace

void Translator::make_registers() {
  registers_.resize(code_.rows);
  const std::size_t declared = code_.function->registers.size();
  for (std::uint32_t row = 0; row < code_.rows; ++row) {
    Register& r = registers_[row];
    if (row < declared) {
      const Type type = code_.function->registers[row].type;
      r.bits = type == Type::kPred ? 0 : 8 * bytes_of(type);
      if (r.bits > 64) throw Untranslated{"a register of 128 bits"};
    } else {
      r.bits = row == declared ? 0 : 64;  // carries; temporaries
    }
  }
  // A temporary that a step without an instruction makes of a register is that predicate, negated.
  for (const Step& s : code_.steps) {
    if (s.source == nullptr && s.control == Control::kNone && is_frame(s.a)) registers_[row_of(s.d)].bits = 0;
  }
  for (Register& r : registers_) {
    const LlvmType type = r.bits == 0 ? e_.integer(32) : e_.integers(r.bits);
    r.variable = LLVMBuildAlloca(e_.builder, type, "r");
    LLVMBuildStore(e_.builder, LLVMConstNull(type), r.variable);
  }
}

void Translator::load_row(std::uint32_t row, Value mask) {
  const Register& r = registers_[row];
  const Value from = e_.add(frame_, e_.constant(64, row_offset(row)));
  Value value =
      r.bits == 0 ? e_.load(e_.integer(32), from, 64) : e_.resized(e_.load(e_.integers(64), from, 64), r.bits);
  if (mask != nullptr) {
    const Value old = LLVMBuildLoad2(e_.builder, LLVMTypeOf(value), r.variable, "");
    value =
        r.bits == 0 ? e_.either(e_.both(value, mask), e_.without(old, mask)) : e_.select(e_.lanes(mask), value, old);
  }
  LLVMBuildStore(e_.builder, value, r.variable);
}

void Translator::store_row(std::uint32_t row, Value mask) {
  const Register& r = registers_[row];
  const Value to = e_.add(frame_, e_.constant(64, row_offset(row)));
  if (r.bits == 0) {
    const Value value = LLVMBuildLoad2(e_.builder, e_.integer(32), r.variable, "");
    const Value old = e_.load(e_.integer(32), to, 64);
    e_.store(e_.either(e_.both(value, mask), e_.without(old, mask)), to, 64);
  } else {
    const Value value = LLVMBuildLoad2(e_.builder, e_.integers(r.bits), r.variable, "");
    e_.store_lanes(e_.resized(value, 64), to, 64, mask);
  }
}

Value Translator::read(Ref ref, unsigned bits) {
  const std::uint32_t row = row_of(ref);
  switch (static_cast<Base>(ref >> 28)) {
    case Base::kFrame: {
      if (const auto known = uniform_.find(row); known != uniform_.end())
        return e_.spread(e_.resized(e_.resized(known->second, registers_[row].bits), bits));
      const Register& r = registers_[row];
      return e_.resized(LLVMBuildLoad2(e_.builder, e_.integers(r.bits), r.variable, ""), bits);
    }
    case Base::kConstants: {
      const std::uint64_t value = executable_.constants[row].lane[0];
      if (!may_be_address(value)) return e_.all(bits, value);
      return e_.spread(e_.load(e_.integer(bits), e_.add(constants_, e_.constant(64, row_offset(row))), 8, true));
    }
    default:
      break;
  }
  const Value from = e_.add(specials_, e_.constant(64, row_offset(row)));
  if (row == kParameterRow || is_same_in_all_lanes(static_cast<Special>(row)))
    return e_.spread(e_.resized(e_.load(e_.integer(64), from, 8, true), bits));
  return e_.resized(e_.load(e_.integers(64), from, 64, true), bits);
}

Value Translator::read_mask(Ref ref) {
  const std::uint32_t row = row_of(ref);
  if (is_frame(ref)) return LLVMBuildLoad2(e_.builder, e_.integer(32), registers_[row].variable, "");
  return e_.constant(32, static_cast<std::uint32_t>(executable_.constants[row].lane[0]));
}

void Translator::write(Ref ref, Value value) {
  if (ref == kNoRef) return;
  const std::uint32_t row = row_of(ref);
  const Register& r = registers_[row];
  uniform_.erase(row);
  value = e_.resized(value, r.bits);
  if (guarded_ || needed_elsewhere_[row])
    value = e_.select(e_.lanes(active_), value, LLVMBuildLoad2(e_.builder, e_.integers(r.bits), r.variable, ""));
  LLVMBuildStore(e_.builder, value, r.variable);
}

void Translator::write_mask(Ref ref, Value value) {
  if (ref == kNoRef) return;
  const std::uint32_t row = row_of(ref);
  const Value variable = registers_[row].variable;
  // Always: what is read as a mask of lanes that branch has no others in it.
  const Value old = LLVMBuildLoad2(e_.builder, e_.integer(32), variable, "");
  if (guarded_ || needed_elsewhere_[row]) value = e_.either(e_.both(value, active_), e_.without(old, active_));
  LLVMBuildStore(e_.builder, value, variable);
}

void Translator::run_step(std::uint32_t at) {
  const Step& step = code_.steps[at];
  active_ = mask_;
  guarded_ = step.guard != kNoRef;
  if (guarded_) {
    const Value guard = read_mask(step.guard);
    active_ = e_.both(mask_, step.guard_negated ? e_.inverse(guard) : guard);
  }
  if (step.control != Control::kNone) wait_for_lanes(step);
  if (step.control == Control::kWarpBarrier) return;
  if (step.source == nullptr) {
    if (!made_step(step)) interpret(step);
    return;
  }
  if (move_step(step) || integer_step(step) || bit_step(step) || compare_step(step) || floating_step(step) ||
      convert_step(step) || memory_step(step) || warp_step(step))
    return;
  switch (step.source->op) {
    case Op::kMembar:
    case Op::kFence:
      LLVMBuildFence(e_.builder, LLVMAtomicOrderingSequentiallyConsistent, 0, "");
      return;
    default:
      if (!is_hint(step.source->op)) interpret(step);
  }
}

void Translator::run_guarded(const std::function<void()>& body) {
  if (!guarded_) return body();
  const LLVMBasicBlockRef some = e_.block("guarded"), after = e_.block("after");
  e_.branch(e_.is_zero(active_), after, some);
  e_.at(some);
  body();
  e_.go(after);
  e_.at(after);
}

// By the interpreter's own function, on the frame's rows.
void Translator::interpret(const Step& step) {
  const auto at = static_cast<std::uint32_t>(&step - code_.steps.data());
  ++interpreted_steps_;
  interpreted_.insert(step.source == nullptr ? "%clock" : text_of(*step.source));
  const Touched rows = touched(code_, step);
  for (const std::uint32_t row : rows.writes) uniform_.erase(row);
  run_guarded([&] {
    for (const std::uint32_t row : rows.reads) store_row(row, active_);
    LlvmType types[] = {e_.integer(64), e_.integer(32), e_.integer(32)};
    Value arguments[] = {warp_, e_.constant(32, at), active_};
    const LlvmType type = LLVMFunctionType(e_.integer(32), types, 3, 0);
    const Value result = LLVMBuildCall2(e_.builder, type, e_.pointer(interpret_, type), arguments, 3, "");
    const LLVMBasicBlockRef done = e_.block("done");
    e_.branch(e_.is_zero(result), done, stopped_);
    e_.at(done);
    for (const std::uint32_t row : rows.writes) load_row(row, active_);
  });
}

// Operations of a warp: where lanes that take part are elsewhere, the warp brings them together.
void Translator::wait_for_lanes(const Step& step) {
  if (step.e == kNoRef) return;
  const auto ended = [&](Value variable) { return LLVMBuildLoad2(e_.builder, e_.integer(32), variable, ""); };
  const Value living = e_.without(live_, e_.either(ended(returned_), ended(exited_)));
  Value named = nullptr;
  if (is_constant(step.e)) {
    named = e_.lane(read(step.e, 32), e_.constant(32, 0));
  } else {
    const Value masks = e_.select(e_.lanes(active_), read(step.e, 32), e_.all(32, 0));
    named = e_.intrinsic("llvm.vector.reduce.or", {e_.integers(32)}, {masks});
  }
  const Value needed = e_.both(named, living);
  Value complete = e_.is_zero(e_.without(needed, active_));
  complete = e_.either(complete, e_.is(LLVMIntNE, active_, mask_));
  const LLVMBasicBlockRef all = e_.block("all"), some = e_.block("missing");
  e_.branch(complete, all, some);
  e_.at(some);
  leave_at(block_, mask_, flow_.blocks[block_].pending);
  e_.at(all);
}

bool Translator::made_step(const Step& step) {
  if (step.a == kNoRef) {
    if (step.weight != 0) return false;  // a clock
    // In the thread's frame.
    const Value lanes = e_.mul(e_.ramp(64, 0, 1), e_.spread(local_stride_));
    write(step.d, e_.add(e_.add(lanes, e_.spread(local_address_)), e_.all(64, step.value)));
    return true;
  }
  if (is_frame(step.a)) {
    write_mask(step.d, e_.inverse(read_mask(step.a)));
    return true;
  }
  // A parameter's address.
  const Value base = e_.load(e_.integer(64), e_.add(specials_, e_.constant(64, row_offset(kParameterRow))), 8, true);
  const Value address = e_.add(base, e_.constant(64, step.value));
  write(step.d, e_.spread(address));
  uniform_[row_of(step.d)] = address;
  return true;
}

}  // namespace cudasim::ptx::jit
