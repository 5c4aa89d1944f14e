// A path that runs in native code.
#include "ptx/execution/native.h"

#include <utility>

#include "ptx/execution/block_run.h"

namespace cudasim::ptx {
namespace {

// Jumps back before other paths of the warp get their turn.
constexpr std::uint32_t kNativeTurns = 1 << 16;
// The same where others are waited for in loops.
constexpr std::uint32_t kShortTurns = 64;

}  // namespace

std::uint32_t Warp::interpret_step(void* warp, std::uint32_t step, Mask mask) noexcept {
  auto& self = *static_cast<Warp*>(warp);
  const Step& s = self.code_->steps[step];
  // Clocks go by what is counted.
  ++self.block.counts.instructions;
  try {
    if (s.control == Control::kWarpOperation) {
      self.run_operation(s, mask);
    } else {
      s.run(self, s, mask);
    }
    return 0;
  } catch (...) {
    self.native_problem_ = std::current_exception();
    return 1;
  }
}

// True where the path goes on at once, in the interpreter.
bool Warp::run_native(std::uint32_t path, std::uint32_t entry) {
  const Native& native = *code_->native;
  if (ways_.size() < native.most_ways) ways_.resize(native.most_ways);
  NativeCall call{bases_[0],
                  bases_[1],
                  bases_[2],
                  block.shared.address(),
                  block.shared_bytes,
                  frame_address(0),
                  block.stack_bytes,
                  this,
                  interpret_step,
                  ways_.data(),
                  entry,
                  paths_[path].mask,
                  live,
                  block.short_turns() ? kShortTurns : kNativeTurns,
                  0,
                  0,
                  0};
  ++block.counts.instructions;
  if (native.run(&call) != 0) {
    if (native_problem_ == nullptr) throw Stopped{Stop::kInstruction, 0, nullptr, "brx.idx beyond its list"};
    std::rethrow_exception(std::exchange(native_problem_, nullptr));
  }
  Path& p = paths_[path];
  Mask ended = call.exited;
  if (p.frame == 0) {
    ended |= call.returned;
  } else {
    frames_[p.frame].returned |= call.returned;
  }
  live &= ~ended;
  block.thread_ended(static_cast<std::uint32_t>(std::popcount(ended)));
  std::vector<std::pair<Mask, std::uint32_t>> ways;
  for (std::uint32_t w = 0; w < call.way_count; ++w) {
    if (ways_[w].mask != 0) ways.emplace_back(ways_[w].mask, ways_[w].step);
  }
  p.mask = 0;
  for (const auto& way : ways) p.mask |= way.first;
  if (ways.empty()) {
    finish(path);
    return false;
  }
  if (ways.size() > 1) return part(path, kNoIndex, ways);
  p.pc = ways[0].second;
  return true;
}

}  // namespace cudasim::ptx
