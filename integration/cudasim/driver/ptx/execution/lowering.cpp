#include "ptx/execution/lowering.h"

#include <algorithm>

#include "ptx/execution/block_run.h"

namespace cudasim::ptx {
namespace {

// Of a frame that lies `value` bytes into the lane's stack.
void run_local_address(Warp& warp, const Step& step, Mask mask) {
  Row& d = warp.row(step.d);
  for_lanes(mask, [&](int lane) { d.lane[lane] = warp.frame_address(lane) + step.value; });
}

void run_parameter_address(Warp& warp, const Step& step, Mask mask) {
  Row& d = warp.row(step.d);
  const Row& a = warp.source(step.a);
  for_lanes(mask, [&](int lane) { d.lane[lane] = a.lane[lane] + step.value; });
}

void run_not_predicate(Warp& warp, const Step& step, Mask mask) {
  warp.set_mask(step.d, mask, ~warp.source(step.a).mask());
}

// Clocks count what has been executed, so that runs repeat.
void run_clock(Warp& warp, const Step& step, Mask mask) {
  const std::uint64_t now = warp.block.counts.instructions;
  const auto special = static_cast<Special>(step.value);
  const std::uint64_t value = special == Special::kClockHi || special == Special::kGlobaltimerHi ? now >> 32 : now;
  Row& d = warp.row(step.d);
  for_lanes(mask, [&](int lane) { d.lane[lane] = value; });
}

void run_nothing(Warp&, const Step&, Mask) {}

void run_trap(Warp&, const Step& step, Mask) {
  throw Stopped{Stop::kTrap, 0, step.source, "it executed " + text_of(*step.source)};
}

bool is_clock(Special s) { return s >= Special::kClock && s <= Special::kGlobaltimerHi; }

}  // namespace

Lowering::Lowering(Executable& executable, const AddressOf& address_of,
                   std::unordered_map<std::uint64_t, std::uint32_t>& constants, const Function& function)
    : executable_(executable), address_of_(address_of), constants_(constants), function_(function) {
  code_.function = &function;
  // The carry flag is the row behind the registers.
  code_.rows = static_cast<std::uint32_t>(function.registers.size()) + 1;
  code_.frame_bytes = (function.frame_bytes + 15) / 16 * 16;
}

Ref Lowering::constant(std::uint64_t value) {
  const auto [at, is_new] = constants_.try_emplace(value, static_cast<std::uint32_t>(executable_.constants.size()));
  if (is_new) std::ranges::fill(executable_.constants.emplace_back().lane, value);
  return ref_to(Base::kConstants, at->second);
}

Ref Lowering::temporary() { return ref_to(Base::kFrame, code_.rows++); }

void Lowering::emit(Step step) { code_.steps.push_back(step); }

Ref Lowering::variable_address(const Operand& operand) {
  const Variable& v = executable_.program->variables[operand.index];
  switch (v.space) {
    case Space::kShared:
      for (const SharedPlace& place : executable_.kernel->shared) {
        if (place.variable == operand.index) return constant(place.offset + operand.value);
      }
      throw Missing{"shared variable " + v.name + " has no place"};
    case Space::kLocal:
    case Space::kParam:
      break;
    default: {
      const std::uint64_t address = address_of_(v);
      if (address == 0) throw Missing{"variable " + v.name + " is not in the module"};
      return constant(address + operand.value);
    }
  }
  const bool is_formal = std::ranges::find(function_.parameters, operand.index) != function_.parameters.end();
  Step step;
  step.d = temporary();
  step.value = v.offset + operand.value;
  if (function_.is_kernel && is_formal) {
    step.run = run_parameter_address;
    step.a = ref_to(Base::kSpecials, kParameterRow);
  } else {
    step.run = run_local_address;
  }
  step.weight = 0;
  emit(step);
  return step.d;
}

Ref Lowering::source(const Operand& operand, Type type) {
  Ref ref = kNoRef;
  switch (operand.kind) {
    case Operand::Kind::kRegister:
      ref = ref_to(Base::kFrame, operand.index);
      break;
    case Operand::Kind::kImmediate:
      return constant(type == Type::kPred ? (operand.value != 0 ? kAllLanes : 0) : operand.value);
    case Operand::Kind::kSpecial:
      if (!is_clock(operand.special)) return ref_to(Base::kSpecials, static_cast<std::uint32_t>(operand.special));
      {
        Step step;
        step.run = run_clock;
        step.d = temporary();
        step.value = static_cast<std::uint64_t>(operand.special);
        emit(step);
        return step.d;
      }
    case Operand::Kind::kVariable:
      return variable_address(operand);
    case Operand::Kind::kFunction:
      return constant(kFunctionTag | operand.index);
    default:
      throw Missing{"an operand of this kind"};
  }
  if (operand.negated) {
    Step step;
    step.run = run_not_predicate;
    step.a = ref;
    step.d = ref = temporary();
    emit(step);
  }
  return ref;
}

Ref Lowering::destination(const Operand& operand) const {
  return operand.kind == Operand::Kind::kRegister ? ref_to(Base::kFrame, operand.index) : kNoRef;
}

Ref Lowering::pair(const Operand& operand) const {
  return operand.pair == kNoIndex ? kNoRef : ref_to(Base::kFrame, operand.pair);
}

std::uint32_t Lowering::width_of_register(const Operand& operand) const {
  return operand.kind == Operand::Kind::kRegister ? bytes_of(function_.registers[operand.index].type) : 8;
}

void Lowering::vector(const Operand& operand, Type type, bool is_destination, Step& step) {
  std::vector<Ref> refs;
  const auto add = [&](const Operand& element) {
    refs.push_back(is_destination ? destination(element) : source(element, type));
  };
  if (operand.kind == Operand::Kind::kVector) {
    std::ranges::for_each(operand.elements, add);
  } else {
    add(operand);
  }
  step.list = static_cast<std::uint32_t>(code_.refs.size());
  step.count = static_cast<std::uint8_t>(refs.size());
  code_.refs.insert(code_.refs.end(), refs.begin(), refs.end());
}

void Lowering::lists(const std::vector<Ref>& destinations, const std::vector<Ref>& sources, Step& step) {
  step.list = static_cast<std::uint32_t>(code_.refs.size());
  step.count = static_cast<std::uint8_t>(destinations.size());
  step.aux = sources.size();
  code_.refs.insert(code_.refs.end(), destinations.begin(), destinations.end());
  code_.refs.insert(code_.refs.end(), sources.begin(), sources.end());
}

void Lowering::address(const Operand& operand, Step& step) {
  step.value = operand.value;
  if (operand.kind == Operand::Kind::kAddress) {
    step.a = operand.index == kNoIndex ? constant(0) : ref_to(Base::kFrame, operand.index);
    return;
  }
  step.a = variable_address(operand);
  step.value = 0;
}

void Lowering::lower_call(const Instruction& i, Step step) {
  const Operand& callee = i.operands[1];
  CallSite site;
  site.results = i.operands[0].elements;
  site.arguments = i.operands[2].elements;
  step.control = Control::kCall;
  if (callee.kind == Operand::Kind::kFunction) {
    const Function& f = executable_.program->functions[callee.index];
    site.callee = callee.index;
    if (!f.is_defined) {
      step.run = builtin_runner(f.name);
      if (step.run == nullptr) throw Missing{"call of " + f.name + ", which the module does not define"};
      step.control = Control::kNone;
      // Rows with the addresses of results, then of arguments.
      Operand all;
      all.kind = Operand::Kind::kVector;
      all.elements = site.results;
      all.elements.insert(all.elements.end(), site.arguments.begin(), site.arguments.end());
      if (!all.elements.empty()) vector(all, Type::kB64, false, step);
      step.value = site.results.size();
      return emit(step);
    }
  } else {
    step.a = source(callee, Type::kB64);
  }
  step.list = static_cast<std::uint32_t>(code_.calls.size());
  code_.calls.push_back(std::move(site));
  emit(step);
}

void Lowering::lower_control(const Instruction& i, Step step) {
  const std::uint32_t post_dominator = function_.blocks[block_].post_dominator;
  step.join = post_dominator;  // a block; a step when all are known
  switch (i.op) {
    case Op::kBra:
      step.control = i.guard == kNoIndex ? Control::kGoto : Control::kBranch;
      step.target = i.operands[0].index;
      break;
    case Op::kBrx: {
      step.a = source(i.operands[0], Type::kU32);
      step.control = Control::kSwitch;
      step.list = static_cast<std::uint32_t>(code_.refs.size());
      if (i.operands[1].elements.size() > 255) throw Missing{"brx.idx with more than 255 targets"};
      step.count = static_cast<std::uint8_t>(i.operands[1].elements.size());
      for (const Operand& target : i.operands[1].elements) code_.refs.push_back(target.index);
      break;
    }
    case Op::kRet:
      step.control = Control::kReturn;
      break;
    case Op::kExit:
      step.control = Control::kExit;
      break;
    default:
      step.run = run_trap;
  }
  emit(step);
}

void Lowering::lower(const Instruction& i) {
  Step step;
  step.source = &i;
  if (i.guard != kNoIndex) {
    step.guard = ref_to(Base::kFrame, i.guard);
    step.guard_negated = i.guard_negated;
  }
  if (is_hint(i.op)) {
    step.run = run_nothing;
    return emit(step);
  }
  switch (i.op) {
    case Op::kBra:
    case Op::kBrx:
    case Op::kRet:
    case Op::kExit:
    case Op::kTrap:
    case Op::kBrkpt:
      return lower_control(i, step);
    case Op::kCall:
      return lower_call(i, step);
    case Op::kMembar:
    case Op::kFence:
      step.run = run_nothing;
      return emit(step);
    case Op::kBar: {
      if (i.has(Modifier::kWarp)) {
        step.control = Control::kWarpBarrier;
        step.e = source(i.operands.at(0), Type::kB32);
        return emit(step);
      }
      step.control = Control::kBarrier;
      std::vector<Operand> operands = i.operands;
      if (i.has(Modifier::kRed)) {
        step.d = destination(operands.at(0));
        const Operand& predicate = operands.back();
        step.c = source(predicate, Type::kPred);
        operands.pop_back();
        operands.erase(operands.begin());
      }
      if (!operands.empty()) step.a = source(operands[0], Type::kU32);
      if (operands.size() > 1) step.b = source(operands[1], Type::kU32);
      return emit(step);
    }
    default:
      break;
  }
  if (lower_move(*this, i, step) || lower_mbarrier(*this, i, step) || lower_memory(*this, i, step) ||
      lower_atomic(*this, i, step) || lower_matrix(*this, i, step) || lower_wmma(*this, i, step) ||
      lower_texture(*this, i, step))
    return;
  // d, then up to four sources.
  Ref Step::*const sources[] = {&Step::a, &Step::b, &Step::c, &Step::e};
  if (i.operands.empty() || i.operands.size() > 6) throw Missing{text_of(i)};
  step.d = destination(i.operands[0]);
  step.pair = pair(i.operands[0]);
  step.value = width_of_register(i.operands[0]);
  for (std::size_t at = 1; at < i.operands.size(); ++at) {
    const bool predicate = i.type() == Type::kPred || (i.op == Op::kSelp && at == 3) ||
                           ((i.op == Op::kSetp || i.op == Op::kSet) && at == 3) || (i.op == Op::kVote && at == 1) ||
                           (i.op == Op::kLop3 && at == 5);
    const Ref ref = source(i.operands[at], predicate ? Type::kPred : i.type());
    if (at <= 4) {
      step.*sources[at - 1] = ref;
    } else {
      step.list = ref;
    }
  }
  if (i.op == Op::kVote || i.op == Op::kShfl || i.op == Op::kMatch || i.op == Op::kRedux || i.op == Op::kElect) {
    step.run = warp_runner(i);
    step.control = Control::kWarpOperation;
    // The mask of the lanes that take part.
    step.e = i.has(Modifier::kSync) ? source(i.operands.back(), Type::kB32) : kNoRef;
    if (step.run == nullptr) throw Missing{text_of(i)};
    return emit(step);
  }
  for (const auto find : {carry_runner, integer_runner, bit_runner, half_runner, floating_runner, approximate_runner,
                          compare_runner, convert_runner, warp_runner}) {
    if (step.run == nullptr) step.run = find(i);
  }
  if (step.run == nullptr) throw Missing{text_of(i)};
  emit(step);
}

Code Lowering::run() {
  std::vector<std::uint32_t> begin(function_.blocks.size());
  for (block_ = 0; block_ < function_.blocks.size(); ++block_) {
    const Block& block = function_.blocks[block_];
    begin[block_] = static_cast<std::uint32_t>(code_.steps.size());
    for (std::uint32_t at = block.first; at < block.last; ++at) {
      try {
        lower(function_.instructions[at]);
      } catch (const Missing& missing) {
        throw Missing{"line " + std::to_string(function_.instructions[at].line) + ": " + missing.what};
      }
    }
    const Op last = function_.instructions[block.last - 1].op;
    const bool falls = last != Op::kBra && last != Op::kBrx && last != Op::kRet && last != Op::kExit;
    if (falls && block_ + 1 < function_.blocks.size()) {
      Step step;
      step.control = Control::kGoto;
      step.target = block_ + 1;
      step.weight = 0;
      emit(step);
    }
  }
  for (Step& step : code_.steps) {
    if (step.control == Control::kGoto || step.control == Control::kBranch) step.target = begin[step.target];
    if (step.control == Control::kSwitch) {
      for (std::uint32_t t = 0; t < step.count; ++t) code_.refs[step.list + t] = begin[code_.refs[step.list + t]];
    }
    const bool parts = step.control == Control::kBranch || step.control == Control::kSwitch;
    step.join = parts && step.join != kNoIndex ? begin[step.join] : kNoIndex;
  }
  return std::move(code_);
}

namespace {

// Bytes of all frames from `function` on; nothing where calls may recurse.
std::optional<std::uint64_t> stack_of(const Executable& executable, std::uint32_t function, std::vector<int>& state,
                                      std::vector<std::uint64_t>& known) {
  if (state[function] == 1) return std::nullopt;
  if (state[function] == 2) return known[function];
  state[function] = 1;
  const Function& f = executable.program->functions[function];
  if (f.calls_pointers) return std::nullopt;
  std::uint64_t below = 0;
  for (const std::uint32_t callee : f.callees) {
    const auto bytes = stack_of(executable, callee, state, known);
    if (!bytes) return std::nullopt;
    below = std::max(below, *bytes);
  }
  state[function] = 2;
  return known[function] = executable.codes[function].frame_bytes + below;
}

}  // namespace

std::shared_ptr<const Executable> Executable::make(std::shared_ptr<const Program> program, const Function& kernel,
                                                   const AddressOf& address_of, std::string& problem) {
  // Where calls recurse, or go through pointers.
  constexpr std::uint64_t kStackBytes = 16 << 10;
  problem = program->problem_of(kernel);
  if (!problem.empty()) return nullptr;
  auto executable = std::make_shared<Executable>();
  executable->program = program;
  executable->kernel = &kernel;
  executable->codes.resize(program->functions.size());
  std::unordered_map<std::uint64_t, std::uint32_t> constants;
  std::uint64_t frames = 0;
  try {
    for (const std::uint32_t f : program->closure_of(kernel)) {
      if (!program->functions[f].is_defined) continue;
      executable->waits |= std::ranges::any_of(program->functions[f].instructions, [](const Instruction& i) {
        return i.has(Modifier::kTestWait) || i.has(Modifier::kTryWait) || i.op == Op::kNanosleep;
      });
      executable->codes[f] = Lowering(*executable, address_of, constants, program->functions[f]).run();
      frames = std::max(frames, executable->codes[f].frame_bytes);
    }
  } catch (const Missing& missing) {
    problem = missing.what;
    return nullptr;
  }
  std::vector<int> state(program->functions.size());
  std::vector<std::uint64_t> known(program->functions.size());
  const auto kernel_index = static_cast<std::uint32_t>(&kernel - program->functions.data());
  executable->stack_bytes = stack_of(*executable, kernel_index, state, known)
                                .value_or(executable->codes[kernel_index].frame_bytes + frames + kStackBytes);
  if (executable->constants.empty()) executable->constants.emplace_back();
  return executable;
}

}  // namespace cudasim::ptx
