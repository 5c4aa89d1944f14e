// Loads and stores. At run time one comparison tells whether the lanes' addresses follow each other, or are one.
#include "ptx/jit/translator.h"

namespace cudasim::ptx::jit {
namespace {

std::uint32_t bytes_of_access(const Step& step) { return bytes_of(step.source->type()) * step.count; }

// Other threads of the process may write there, or see the order.
bool is_ordered(const Instruction& i) {
  for (const Modifier m :
       {Modifier::kVolatile, Modifier::kRelaxed, Modifier::kAcquire, Modifier::kRelease, Modifier::kMmio}) {
    if (i.has(m)) return true;
  }
  return false;
}

}  // namespace

Value Translator::variable(LlvmType type) const {
  const LLVMBasicBlockRef here = e_.here();
  const LLVMBasicBlockRef first = LLVMGetEntryBasicBlock(e_.function);
  LLVMPositionBuilderBefore(e_.builder, LLVMGetFirstInstruction(first));
  const Value result = LLVMBuildAlloca(e_.builder, type, "");
  e_.at(here);
  return result;
}

void Translator::each_lane(Value mask, const std::function<void(Value)>& body) {
  const Value left = variable(e_.integer(32));
  LLVMBuildStore(e_.builder, mask, left);
  const LLVMBasicBlockRef one = e_.block("lane"), over = e_.block("lanes");
  e_.branch(e_.is_zero(mask), over, one);
  e_.at(one);
  const Value now = LLVMBuildLoad2(e_.builder, e_.integer(32), left, "");
  body(e_.resized(e_.first_lane(now), 64));
  const Value rest = e_.both(now, e_.sub(now, e_.constant(32, 1)));
  LLVMBuildStore(e_.builder, rest, left);
  e_.branch(e_.is_zero(rest), over, one);
  e_.at(over);
}

Value Translator::kept_lanes(Value& array) {
  if (array == nullptr) array = variable(e_.integers(64));
  return LLVMBuildPtrToInt(e_.builder, array, e_.integer(64), "");
}

// By hardware where it can: AVX-512, and no element of less than 32 bits.
Value Translator::gathered(LlvmType element, Value addresses, unsigned bytes, Value mask) {
  if (has_gather_ && bytes >= 4) return e_.gather(element, addresses, bytes, mask);
  const LlvmType type = LLVMVectorType(element, 32);
  const Value from = kept_lanes(lane_addresses_), to = kept_lanes(lane_values_);
  e_.store(addresses, from, 8);
  e_.store(LLVMConstNull(type), to, bytes);
  each_lane(mask, [&](Value lane) {
    const Value at = e_.load(e_.integer(64), e_.add(from, e_.mul(lane, e_.constant(64, 8))), 8);
    e_.store(e_.load(element, at, bytes), e_.add(to, e_.mul(lane, e_.constant(64, bytes))), bytes);
  });
  return e_.load(type, to, bytes);
}

void Translator::scatter(Value values, Value addresses, unsigned bytes, Value mask) {
  if (has_gather_ && bytes >= 4) {
    e_.scatter(values, addresses, bytes, mask);
    return;
  }
  const Value to = kept_lanes(lane_addresses_), from = kept_lanes(lane_values_);
  e_.store(addresses, to, 8);
  e_.store(values, from, bytes);
  const LlvmType element = LLVMGetElementType(LLVMTypeOf(values));
  // Upwards, as the interpreter: of lanes with one address the last one's value stays.
  each_lane(mask, [&](Value lane) {
    const Value value = e_.load(element, e_.add(from, e_.mul(lane, e_.constant(64, bytes))), bytes);
    e_.store(value, e_.load(e_.integer(64), e_.add(to, e_.mul(lane, e_.constant(64, 8))), 8), bytes);
  });
}

// The interpreter says what is wrong.
void Translator::stop_unless(Value good, const Step& step) {
  const LLVMBasicBlockRef right = e_.block("right"), wrong = e_.block("wrong");
  e_.branch(good, right, wrong);
  e_.at(wrong);
  const std::uint32_t before = interpreted_steps_;
  const std::set<std::string> names = interpreted_;
  interpret(step);
  interpreted_steps_ = before;
  interpreted_ = names;
  e_.go(stopped_);
  e_.at(right);
}

Translator::Place Translator::place_of(const Step& step) {
  const std::uint32_t bytes = bytes_of_access(step);
  const Space space = step.source->space();
  Place place;
  if (is_frame(step.a) && space != Space::kShared) {
    if (const auto known = uniform_.find(row_of(step.a)); known != uniform_.end()) {
      place.same = e_.add(known->second, e_.constant(64, step.value));
      if (space != Space::kParam && bytes > 1)
        stop_unless(e_.is_zero(e_.both(place.same, e_.constant(64, bytes - 1))), step);
      return place;
    }
  }
  // The offset apart: what is found out of a register's lanes then serves all accesses by it.
  const unsigned width = space == Space::kShared ? 32 : 64;
  Value at = read(step.a, width);
  if (space == Space::kShared || (step.value & (bytes - 1)) != 0) {
    at = e_.add(at, e_.all(width, step.value));
  } else {
    place.offset = step.value;
  }
  Value wrong = nullptr;
  if (bytes > 1) wrong = e_.is(LLVMIntNE, e_.both(at, e_.all(width, bytes - 1)), e_.all(width, 0));
  if (space == Space::kShared) {
    const Value size = e_.resized(shared_bytes_, 32);
    const Value fits = e_.is(LLVMIntUGE, size, e_.constant(32, bytes));
    const Value last = e_.select(fits, e_.sub(size, e_.constant(32, bytes)), e_.constant(32, 0));
    const Value beyond = e_.is(LLVMIntUGT, at, e_.spread(last));
    wrong = wrong == nullptr ? beyond : e_.either(wrong, beyond);
    Value none = e_.is_zero(e_.both(e_.mask(wrong), active_));
    stop_unless(e_.both(none, fits), step);
    place.lanes = e_.add(e_.resized(at, 64), e_.spread(shared_address_));
    return place;
  }
  if (wrong != nullptr) stop_unless(e_.is_zero(e_.both(e_.mask(wrong), active_)), step);
  place.lanes = at;
  return place;
}

void Translator::load(const Step& step) {
  const Type type = step.source->type();
  const unsigned bits = 8 * bytes_of(type), bytes = bits / 8;
  const LlvmType element = e_.integer(bits);
  const Ref* const targets = code_.refs.data() + step.list;
  const auto extended = [&](Value value, Ref target) {
    const unsigned width = registers_[row_of(target)].bits;
    const bool has_sign = type == Type::kS8 || type == Type::kS16 || type == Type::kS32;
    return has_sign ? e_.extended(value, width) : e_.resized(value, width);
  };
  const Place place = place_of(step);
  if (place.same != nullptr) {
    std::vector<Value> values;
    for (std::uint32_t n = 0; n < step.count; ++n)
      values.push_back(e_.load(element, e_.add(place.same, e_.constant(64, std::uint64_t{n} * bytes)), bytes, false));
    for (std::uint32_t n = 0; n < step.count; ++n) {
      if (targets[n] == kNoRef) continue;
      write(targets[n], extended(e_.spread(values[n]), targets[n]));
      const bool whole = type != Type::kS8 && type != Type::kS16 && type != Type::kS32;
      if (whole && !guarded_) uniform_[row_of(targets[n])] = e_.resized(values[n], 64);
    }
    return;
  }
  std::vector<Value> results;
  for (std::uint32_t n = 0; n < step.count; ++n) results.push_back(variable(LLVMVectorType(element, 32)));
  const Value index = e_.resized(e_.first_lane(active_), 64);
  const Value first = e_.lane(place.lanes, index);
  const Value distance = e_.sub(place.lanes, e_.spread(first));
  const auto holds = [&](Value lanes) { return e_.is_zero(e_.without(active_, e_.mask(lanes))); };
  const LLVMBasicBlockRef joined = e_.block("loaded"), after = e_.block("after");
  const auto all_of = [&](Value address) {
    for (std::uint32_t n = 0; n < step.count; ++n) {
      const std::uint64_t offset = place.offset + std::uint64_t{n} * bytes;
      const Value value = e_.load(element, e_.add(address, e_.constant(64, offset)), bytes);
      LLVMBuildStore(e_.builder, e_.spread(value), results[n]);
    }
    e_.go(joined);
  };
  if (step.count == 1) {
    const LLVMBasicBlockRef yes = e_.block("row"), no = e_.block("scattered");
    const Value before = e_.mul(index, e_.constant(64, bytes));
    e_.branch(holds(e_.is(LLVMIntEQ, distance, e_.sub(e_.ramp(64, 0, bytes), e_.spread(before)))), yes, no);
    e_.at(yes);
    const Value from = e_.add(e_.sub(first, before), e_.constant(64, place.offset));
    LLVMBuildStore(e_.builder, e_.load_lanes(element, from, bytes, active_), results[0]);
    e_.go(joined);
    e_.at(no);
  }
  const LLVMBasicBlockRef one = e_.block("one"), many = e_.block("many");
  e_.branch(holds(e_.is_zero(distance)), one, many);
  e_.at(one);
  all_of(first);
  e_.at(many);
  for (std::uint32_t n = 0; n < step.count; ++n) {
    const Value at = e_.add(place.lanes, e_.all(64, place.offset + std::uint64_t{n} * bytes));
    LLVMBuildStore(e_.builder, gathered(element, at, bytes, active_), results[n]);
  }
  e_.go(joined);
  e_.at(joined);
  for (std::uint32_t n = 0; n < step.count; ++n) {
    if (targets[n] == kNoRef) continue;
    write(targets[n], extended(LLVMBuildLoad2(e_.builder, LLVMVectorType(element, 32), results[n], ""), targets[n]));
  }
  e_.go(after);
  e_.at(after);
}

void Translator::store(const Step& step) {
  const unsigned bits = 8 * bytes_of(step.source->type()), bytes = bits / 8;
  const Ref* const sources = code_.refs.data() + step.list;
  Place place = place_of(step);
  if (place.lanes == nullptr) place.lanes = e_.spread(place.same);
  const LLVMBasicBlockRef after = e_.block("stored");
  if (step.count == 1) {
    const Value index = e_.resized(e_.first_lane(active_), 64);
    const Value first = e_.lane(place.lanes, index), before = e_.mul(index, e_.constant(64, bytes));
    const Value base = e_.sub(first, before);
    const Value follows = e_.is(LLVMIntEQ, place.lanes, e_.add(e_.spread(base), e_.ramp(64, 0, bytes)));
    const LLVMBasicBlockRef yes = e_.block("row"), no = e_.block("scattered");
    e_.branch(e_.is_zero(e_.without(active_, e_.mask(follows))), yes, no);
    e_.at(yes);
    e_.store_lanes(read(sources[0], bits), e_.add(base, e_.constant(64, place.offset)), bytes, active_);
    e_.go(after);
    e_.at(no);
  }
  for (std::uint32_t n = 0; n < step.count; ++n) {
    const Value at = e_.add(place.lanes, e_.all(64, place.offset + std::uint64_t{n} * bytes));
    scatter(read(sources[n], bits), at, bytes, active_);
  }
  e_.go(after);
  e_.at(after);
}

bool Translator::memory_step(const Step& step) {
  const Instruction& i = *step.source;
  if ((i.op != Op::kLd && i.op != Op::kSt) || is_ordered(i) || i.type() == Type::kPred) return false;
  run_guarded([&] {
    if (i.op == Op::kLd) {
      load(step);
    } else {
      store(step);
    }
  });
  return true;
}

}  // namespace cudasim::ptx::jit
