// What the lanes of a warp do together.
#include "ptx/jit/translator.h"

namespace cudasim::ptx::jit {

bool Translator::warp_step(const Step& step) {
  const Instruction& i = *step.source;
  switch (i.op) {
    case Op::kActivemask:
      write(step.d, e_.spread(active_));
      return true;
    case Op::kVote: {
      // Masks that may be another one in each lane: groups.
      if (step.e != kNoRef && !is_constant(step.e)) return false;
      const Value yes = e_.both(read_mask(step.a), active_);
      if (i.has(Modifier::kBallot)) {
        write(step.d, e_.spread(yes));
        return true;
      }
      const Value all = e_.is(LLVMIntEQ, yes, active_), none = e_.is_zero(yes);
      const Value result = i.has(Modifier::kAll)   ? all
                           : i.has(Modifier::kAny) ? e_.inverse(none)
                                                   : e_.either(all, none);
      write_mask(step.d, e_.select(result, e_.constant(32, 0xffffffff), e_.constant(32, 0)));
      return true;
    }
    case Op::kShfl: {
      const Value values = read(step.a, 32), lane = e_.ramp(32, 0, 1);
      const Value by = e_.both(read(step.b, 32), e_.all(32, 31));
      const Value c = read(step.c, 32), clamp = e_.both(c, e_.all(32, 31));
      const Value segment = e_.both(LLVMBuildLShr(e_.builder, c, e_.all(32, 8), ""), e_.all(32, 31));
      const Value lowest = e_.both(lane, segment), highest = e_.either(lowest, e_.without(clamp, segment));
      Value from = nullptr;
      if (i.has(Modifier::kUp)) {
        from = e_.sub(lane, by);
      } else if (i.has(Modifier::kDown)) {
        from = e_.add(lane, by);
      } else if (i.has(Modifier::kBfly)) {
        from = e_.exclusive(lane, by);
      } else {
        from = e_.either(lowest, e_.without(by, segment));
      }
      const Value inside = e_.is(i.has(Modifier::kUp) ? LLVMIntSGE : LLVMIntSLE, from, highest);
      from = e_.select(inside, from, lane);
      // Through memory: LLVM has no shuffle by values.
      const Value memory = variable(e_.integers(32));
      LLVMBuildStore(e_.builder, values, memory);
      const Value base = LLVMBuildPtrToInt(e_.builder, memory, e_.integer(64), "");
      const Value at = e_.add(e_.spread(base), e_.mul(e_.resized(from, 64), e_.all(64, 4)));
      write(step.d, gathered(e_.integer(32), at, 4, e_.constant(32, 0xffffffff)));
      write_mask(step.pair, e_.mask(inside));
      return true;
    }
    default:
      return false;
  }
}

}  // namespace cudasim::ptx::jit
