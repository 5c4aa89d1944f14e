// Control flow: where lanes wait, and which go on.
#include "ptx/jit/translator.h"

#include <algorithm>
#include <cstddef>

namespace cudasim::ptx::jit {
namespace {

constexpr std::uint64_t kMostBlocks = 2000, kMostSteps = 20000;

}  // namespace

Translator::Translator(const Executable& executable, const Code& code, const Flow& flow, LLVMModuleRef module,
                       bool has_gather)
    : executable_(executable), code_(code), flow_(flow), e_(module), has_gather_(has_gather) {}

void Translator::run(const char* name) {
  if (flow_.blocks.size() > kMostBlocks || code_.steps.size() > kMostSteps)
    throw Untranslated{"it has more than " + std::to_string(kMostBlocks) + " blocks or " + std::to_string(kMostSteps) +
                       " instructions"};
  open_function(name);
  make_registers();
  for (std::size_t b = 0; b < flow_.blocks.size(); ++b) {
    bodies_.push_back(e_.block("block"));
    waiting_.push_back(LLVMBuildAlloca(e_.builder, e_.integer(32), "waiting"));
    LLVMBuildStore(e_.builder, e_.constant(32, 0), waiting_.back());
  }
  turned_.resize(flow_.blocks.size());
  open_entries();
  for (std::uint32_t b = 0; b < flow_.blocks.size(); ++b) run_block(b);
  // Loops that have had their turns.
  for (std::uint32_t b = 0; b < flow_.blocks.size(); ++b) {
    if (turned_[b] == nullptr) continue;
    e_.at(turned_[b]);
    const Value turns = e_.sub(LLVMBuildLoad2(e_.builder, e_.integer(32), turns_, ""), e_.constant(32, 1));
    LLVMBuildStore(e_.builder, turns, turns_);
    const LLVMBasicBlockRef over = e_.block("over");
    e_.branch(e_.is_zero(turns), over, bodies_[b]);
    e_.at(over);
    leave_at(b, LLVMBuildLoad2(e_.builder, e_.integer(32), waiting_[b], ""), flow_.blocks[b].pending);
  }
  e_.at(stopped_);
  LLVMBuildRet(e_.builder, e_.constant(32, 1));
}

Value Translator::field(std::size_t offset, unsigned bits) {
  return e_.load(e_.integer(bits), e_.add(call_, e_.constant(64, offset)), bits / 8);
}

void Translator::open_function(const char* name) {
  LlvmType i64 = e_.integer(64);
  const LlvmType type = LLVMFunctionType(e_.integer(32), &i64, 1, 0);
  e_.function = LLVMAddFunction(e_.module, name, type);
  for (const auto& [key, value] : {std::pair{"prefer-vector-width", "512"}, {"min-legal-vector-width", "512"}}) {
    LLVMAddAttributeAtIndex(
        e_.function, static_cast<LLVMAttributeIndex>(LLVMAttributeFunctionIndex),
        LLVMCreateStringAttribute(e_.context, key, static_cast<unsigned>(std::char_traits<char>::length(key)), value,
                                  static_cast<unsigned>(std::char_traits<char>::length(value))));
  }
  // No tables for unwinding: nothing is thrown through it.
  const unsigned nounwind = LLVMGetEnumAttributeKindForName("nounwind", 8);
  LLVMAddAttributeAtIndex(e_.function, static_cast<LLVMAttributeIndex>(LLVMAttributeFunctionIndex),
                          LLVMCreateEnumAttribute(e_.context, nounwind, 0));
  call_ = LLVMGetParam(e_.function, 0);
  stopped_ = e_.block("stopped");
  const LLVMBasicBlockRef begin = e_.block("begin");
  LLVMMoveBasicBlockBefore(begin, stopped_);
  e_.at(begin);
  frame_ = field(offsetof(NativeCall, frame), 64);
  constants_ = field(offsetof(NativeCall, constants), 64);
  specials_ = field(offsetof(NativeCall, specials), 64);
  shared_address_ = field(offsetof(NativeCall, shared_address), 64);
  shared_bytes_ = field(offsetof(NativeCall, shared_bytes), 64);
  local_address_ = field(offsetof(NativeCall, local_address), 64);
  local_stride_ = field(offsetof(NativeCall, local_stride), 64);
  warp_ = field(offsetof(NativeCall, warp), 64);
  interpret_ = field(offsetof(NativeCall, interpret), 64);
  live_ = field(offsetof(NativeCall, live), 32);
  turns_ = LLVMBuildAlloca(e_.builder, e_.integer(32), "turns");
  returned_ = LLVMBuildAlloca(e_.builder, e_.integer(32), "returned");
  exited_ = LLVMBuildAlloca(e_.builder, e_.integer(32), "exited");
  LLVMBuildStore(e_.builder, field(offsetof(NativeCall, turns), 32), turns_);
  LLVMBuildStore(e_.builder, e_.constant(32, 0), returned_);
  LLVMBuildStore(e_.builder, e_.constant(32, 0), exited_);
}

void Translator::open_entries() {
  const Value entry = field(offsetof(NativeCall, entry), 32), mask = field(offsetof(NativeCall, mask), 32);
  std::vector<LLVMBasicBlockRef> blocks;
  for (std::size_t n = 0; n < flow_.entries.size(); ++n) blocks.push_back(e_.block("entry"));
  const Value choice = LLVMBuildSwitch(e_.builder, entry, blocks[0], static_cast<unsigned>(blocks.size()));
  for (std::size_t n = 0; n < blocks.size(); ++n) {
    const std::uint32_t b = flow_.entries[n];
    if (n != 0) LLVMAddCase(choice, e_.constant(32, n), blocks[n]);
    e_.at(blocks[n]);
    for (std::uint32_t row = 0; row < code_.rows; ++row) {
      if (flow_.blocks[b].live[row]) load_row(row, nullptr);
    }
    LLVMBuildStore(e_.builder, mask, waiting_[b]);
    e_.go(bodies_[b]);
  }
}

void Translator::wait_at(std::uint32_t block, Value mask) {
  const Value before = LLVMBuildLoad2(e_.builder, e_.integer(32), waiting_[block], "");
  LLVMBuildStore(e_.builder, e_.either(before, mask), waiting_[block]);
}

void Translator::run_block(std::uint32_t b) {
  const FlowBlock& block = flow_.blocks[b];
  block_ = b;
  uniform_.clear();
  needed_elsewhere_.assign(code_.rows, false);
  for (const std::uint32_t other : block.pending) {
    for (std::uint32_t row = 0; row < code_.rows; ++row)
      needed_elsewhere_[row] = needed_elsewhere_[row] || flow_.blocks[other].live[row];
  }
  e_.at(bodies_[b]);
  mask_ = active_ = LLVMBuildLoad2(e_.builder, e_.integer(32), waiting_[b], "");
  LLVMBuildStore(e_.builder, e_.constant(32, 0), waiting_[b]);
  if (block.ending == Ending::kLeaves) return leave_at(b, mask_, block.pending);
  for (std::uint32_t at = block.first; at < block.last; ++at) {
    const Control control = code_.steps[at].control;
    if (control == Control::kNone || control == Control::kWarpOperation || control == Control::kWarpBarrier)
      run_step(at);
  }
  end_block(block);
}

void Translator::end_block(const FlowBlock& block) {
  std::vector<std::uint32_t> targets = block.pending;
  const Step& step = code_.steps[block.last - 1];
  Value active = mask_;
  if (step.guard != kNoRef && block.ending != Ending::kFalls) {
    const Value guard = read_mask(step.guard);
    active = e_.both(mask_, step.guard_negated ? e_.inverse(guard) : guard);
  }
  switch (block.ending) {
    case Ending::kFalls:
    case Ending::kGoto:
      if (block.successors.empty()) break;
      wait_at(block.successors[0], mask_);
      return go_to(block.successors[0]);
    case Ending::kBranch:
      wait_at(block.successors[0], active);
      wait_at(block.successors.back(), e_.without(mask_, active));
      if (block.successors.size() == 1) return go_to(block.successors[0]);
      break;
    case Ending::kSwitch: {
      const Value value = read(step.a, 32);
      Value rest = active;
      for (std::uint32_t t = 0; t < step.count; ++t) {
        const Value here = e_.both(active, e_.mask(e_.is(LLVMIntEQ, value, e_.all(32, t))));
        wait_at(block.successors[t], here);
        rest = e_.without(rest, here);
      }
      // A value beyond the list: the interpreter says so.
      const LLVMBasicBlockRef wrong = e_.block("beyond"), right = e_.block("switch");
      e_.branch(e_.is_zero(rest), right, wrong);
      e_.at(wrong);
      e_.go(stopped_);
      e_.at(right);
      if (step.guard != kNoRef) wait_at(block.successors.back(), e_.without(mask_, active));
      break;
    }
    case Ending::kReturn: {
      const Value variable = step.control == Control::kExit ? exited_ : returned_;
      LLVMBuildStore(e_.builder, e_.either(LLVMBuildLoad2(e_.builder, e_.integer(32), variable, ""), active), variable);
      if (step.guard != kNoRef && !block.successors.empty())
        wait_at(block.successors.back(), e_.without(mask_, active));
      break;
    }
    case Ending::kLeaves:
      return;
  }
  targets.insert(targets.end(), block.successors.begin(), block.successors.end());
  dispatch(std::move(targets));
}

void Translator::dispatch(std::vector<std::uint32_t> targets) {
  std::ranges::sort(targets);
  targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
  for (const std::uint32_t target : targets) {
    const LLVMBasicBlockRef some = e_.block("some"), none = e_.block("none");
    e_.branch(e_.is_zero(LLVMBuildLoad2(e_.builder, e_.integer(32), waiting_[target], "")), none, some);
    e_.at(some);
    if (target <= block_) {
      if (turned_[target] == nullptr) turned_[target] = e_.block("turn");
      e_.go(turned_[target]);
    } else {
      e_.go(bodies_[target]);
    }
    e_.at(none);
  }
  // None: all have ended.
  e_.store(e_.constant(32, 0), e_.add(call_, e_.constant(64, offsetof(NativeCall, way_count))), 4);
  leave();
}

// All lanes of the block go there: only what waits in between comes first.
void Translator::go_to(std::uint32_t target) {
  if (target > block_) {
    for (const std::uint32_t other : flow_.blocks[block_].pending) {
      if (other >= target) break;
      const LLVMBasicBlockRef none = e_.block("none");
      e_.branch(e_.is_zero(LLVMBuildLoad2(e_.builder, e_.integer(32), waiting_[other], "")), none, bodies_[other]);
      e_.at(none);
    }
    e_.go(bodies_[target]);
    return;
  }
  if (turned_[target] == nullptr) turned_[target] = e_.block("turn");
  e_.go(turned_[target]);
}

// Back to the warp, with `mask` at the beginning of the block and what else waits.
void Translator::leave_at(std::uint32_t b, Value mask, const std::vector<std::uint32_t>& pending) {
  const Value lanes = field(offsetof(NativeCall, mask), 32);
  std::vector<bool> needed = flow_.blocks[b].live;
  for (const std::uint32_t other : pending) {
    for (std::uint32_t row = 0; row < code_.rows; ++row) needed[row] = needed[row] || flow_.blocks[other].live[row];
  }
  for (std::uint32_t row = 0; row < code_.rows; ++row) {
    if (needed[row]) store_row(row, lanes);
  }
  const Value ways = field(offsetof(NativeCall, ways), 64);
  std::uint32_t count = 0;
  const auto add = [&](Value way, std::uint32_t block) {
    const Value at = e_.add(ways, e_.constant(64, count++ * sizeof(Way)));
    e_.store(way, at, 4);
    e_.store(e_.constant(32, flow_.blocks[block].first), e_.add(at, e_.constant(64, offsetof(Way, step))), 4);
  };
  add(mask, b);
  for (const std::uint32_t other : pending) {
    if (other != b) add(LLVMBuildLoad2(e_.builder, e_.integer(32), waiting_[other], ""), other);
  }
  most_ways_ = std::max(most_ways_, count);
  e_.store(e_.constant(32, count), e_.add(call_, e_.constant(64, offsetof(NativeCall, way_count))), 4);
  leave();
}

void Translator::leave() {
  for (const auto& [variable, offset] :
       {std::pair{returned_, offsetof(NativeCall, returned)}, {exited_, offsetof(NativeCall, exited)}})
    e_.store(LLVMBuildLoad2(e_.builder, e_.integer(32), variable, ""), e_.add(call_, e_.constant(64, offset)), 4);
  LLVMBuildRet(e_.builder, e_.constant(32, 0));
}

}  // namespace cudasim::ptx::jit
