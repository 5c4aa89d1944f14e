#include "ptx/execution/warp.h"

#include <algorithm>

#include "ptx/execution/block_run.h"

namespace cudasim::ptx {
namespace {

// Steps that jump back before another path gets its turn.
constexpr std::uint32_t kTurn = 1 << 15;
// The same where others are waited for in loops.
constexpr std::uint32_t kShortTurn = 64;

}  // namespace

void Warp::begin(std::uint32_t lanes) {
  exists = live = lanes == kLanes ? kAllLanes : (Mask{1} << lanes) - 1;
  paths_.clear();
  free_paths_.clear();
  runnable_.clear();
  frames_.clear();
  const Executable& executable = block.executable;
  const Code& code =
      executable.codes[static_cast<std::size_t>(executable.kernel - executable.program->functions.data())];
  if (rows_.size() < code.rows) rows_.resize(code.rows);
  frames_.push_back({&code, 0, 0, 0, nullptr});
  bases_[1] = const_cast<Row*>(executable.constants.data());
  bases_[2] = specials_.data();
  fill_specials();
  Path path;
  path.state = State::kRunnable;
  path.mask = live;
  path.frame_root = true;
  runnable_.push_back(add_path(path));
}

void Warp::fill_specials() {
  const auto set = [&](Special special, auto value_of_lane) {
    Row& r = specials_[static_cast<std::size_t>(special)];
    for (int lane = 0; lane < kLanes; ++lane) r.lane[lane] = value_of_lane(static_cast<std::uint32_t>(lane));
  };
  const auto all = [&](Special special, std::uint64_t value) { set(special, [&](std::uint32_t) { return value; }); };
  const Shape& s = block.shape;
  for (std::uint32_t axis = 0; axis < 3; ++axis)
    all(static_cast<Special>(static_cast<std::uint32_t>(Special::kCtaidX) + axis), block.index[axis]);
  // The rest is the same in every block.
  if (filled_for_ == index) return;
  filled_for_ = index;
  const std::uint32_t first = index * kLanes;
  set(Special::kTidX, [&](std::uint32_t l) { return (first + l) % s.block[0]; });
  set(Special::kTidY, [&](std::uint32_t l) { return (first + l) / s.block[0] % s.block[1]; });
  set(Special::kTidZ, [&](std::uint32_t l) { return (first + l) / s.block[0] / s.block[1]; });
  for (std::uint32_t axis = 0; axis < 3; ++axis) {
    const auto at = [&](Special x) { return static_cast<Special>(static_cast<std::uint32_t>(x) + axis); };
    all(at(Special::kNtidX), s.block[axis]);
    all(at(Special::kNctaidX), s.grid[axis]);
  }
  set(Special::kLaneid, [&](std::uint32_t l) { return l; });
  all(Special::kWarpid, index);
  all(Special::kNwarpid, (block.threads + kLanes - 1) / kLanes);
  all(Special::kSmid, 0);
  all(Special::kNsmid, 1);
  all(Special::kGridid, 1);
  set(Special::kLanemaskEq, [&](std::uint32_t l) { return Mask{1} << l; });
  set(Special::kLanemaskLt, [&](std::uint32_t l) { return (Mask{1} << l) - 1; });
  set(Special::kLanemaskLe, [&](std::uint32_t l) { return (Mask{2} << l) - 1; });
  set(Special::kLanemaskGe, [&](std::uint32_t l) { return ~((Mask{1} << l) - 1); });
  set(Special::kLanemaskGt, [&](std::uint32_t l) { return ~((Mask{2} << l) - 1); });
  all(Special::kDynamicSmemSize, s.dynamic_shared_bytes);
  all(Special::kTotalSmemSize, block.shared_bytes);
  all(Special::kEnvreg1, block.workspace >> 32);
  all(Special::kEnvreg2, block.workspace & 0xffffffff);
  all(Special::kZero, 0);
  all(Special::kOne, 1);
  for (std::uint64_t& slot : specials_[kParameterRow].lane) slot = reinterpret_cast<std::uint64_t>(block.parameters);
}

std::uint64_t Warp::frame_address(int lane) const { return block.stack_of(index, lane) + frame_local_; }

std::uint32_t Warp::add_path(const Path& path) {
  if (free_paths_.empty()) {
    paths_.push_back(path);
    return static_cast<std::uint32_t>(paths_.size() - 1);
  }
  const std::uint32_t at = free_paths_.back();
  free_paths_.pop_back();
  paths_[at] = path;
  return at;
}

void Warp::enter(std::uint32_t path) {
  const Frame& frame = frames_[paths_[path].frame];
  code_ = frame.code;
  bases_[0] = rows_.data() + frame.first_row;
  frame_local_ = frame.local;
}

void Warp::run() {
  while (true) {
    while (!runnable_.empty()) {
      if (block.counts.instructions >= block.most_instructions) return;
      const std::uint32_t path = runnable_.back();
      runnable_.pop_back();
      run_path(path);
      if (gave_way_) {
        gave_way_ = false;
        return;
      }
    }
    if (!release_warp_waits()) return;
  }
}

// Those that wait for lanes of other paths: together where all have come, else as far as they have.
bool Warp::release_warp_waits() {
  std::vector<std::uint32_t> waiting;
  for (std::uint32_t p = 0; p < paths_.size(); ++p) {
    if (paths_[p].state == State::kAtWarpSync) waiting.push_back(p);
  }
  if (waiting.empty()) return false;
  // One place in the program at a time, so that an operation sees all that have come to it; one where all have, if any.
  Mask together = 0;
  std::vector<std::uint32_t> same;
  for (const std::uint32_t leader : waiting) {
    together = 0;
    same.clear();
    for (const std::uint32_t p : waiting) {
      if (paths_[p].frame != paths_[leader].frame || paths_[p].pc != paths_[leader].pc) continue;
      same.push_back(p);
      together |= paths_[p].mask;
    }
    if ((paths_[leader].needed & live & ~together) == 0) break;
  }
  const std::uint32_t pc = paths_[same[0]].pc;
  enter(same[0]);
  const Step& step = code_->steps[pc];
  if (step.control == Control::kWarpOperation) run_operation(step, together);
  for (const std::uint32_t p : same) {
    ++paths_[p].pc;
    paths_[p].state = State::kRunnable;
    runnable_.push_back(p);
  }
  return true;
}

void Warp::run_path(std::uint32_t path) {
  enter(path);
  std::uint32_t turn = 0;
  while (true) {
    Path& p = paths_[path];
    // Native code neither reports nor counts, and does not know where a path has to end.
    if (code_->native != nullptr && p.join == kNoIndex && !block.sampling && block.observer.touched == nullptr) {
      if (const std::uint32_t entry = code_->native->entry_of_step[p.pc]; entry != kNoIndex) {
        if (!run_native(path, entry)) return;
        // A loop that has had its turns is at an entry again.
        if (code_->native->entry_of_step[paths_[path].pc] != kNoIndex) return give_way(path);
      }
    }
    const Step& step = code_->steps[paths_[path].pc];
    Mask mask = paths_[path].mask;
    if (step.guard != kNoRef) {
      const Mask guard = source(step.guard).mask();
      mask &= step.guard_negated ? ~guard : guard;
      if (mask == 0 && step.control != Control::kBranch) {
        ++p.pc;
        continue;
      }
    }
    ++block.counts.instructions;
    block.counts.operations += static_cast<std::uint64_t>(std::popcount(mask)) * step.weight;
    bool here = true;  // false: the path waits or has ended
    switch (step.control) {
      case Control::kNone:
        step.run(*this, step, mask);
        ++p.pc;
        continue;
      case Control::kGoto:
        here = go(path, step.target);
        break;
      case Control::kBranch:
        here = branch(path, step, mask, step.target);
        break;
      case Control::kSwitch:
        here = switch_to(path, step, mask);
        break;
      case Control::kCall:
        here = call(path, step, mask);
        break;
      case Control::kReturn:
        here = leave(path, mask, false);
        break;
      case Control::kExit:
        here = leave(path, mask, true);
        break;
      case Control::kWarpOperation:
      case Control::kWarpBarrier:
        here = meet(path, step, mask);
        break;
      case Control::kBarrier: {
        // A guarded barrier is one for its lanes; the others go past it, on a path of their own.
        if (mask != p.mask) {
          const std::uint32_t pc = p.pc;
          std::vector<std::pair<Mask, std::uint32_t>> ways{{mask, pc}, {p.mask & ~mask, pc + 1}};
          part(path, kNoIndex, ways);
          return;
        }
        const std::uint32_t number =
            step.a == kNoRef ? 0 : static_cast<std::uint32_t>(source(step.a).lane[std::countr_zero(mask)]);
        const std::uint32_t wanted =
            step.b == kNoRef ? 0 : static_cast<std::uint32_t>(source(step.b).lane[std::countr_zero(mask)]);
        // Counted in warps, where a number is given: the lanes that have ended count along.
        const std::uint32_t lanes =
            wanted != 0 && mask == live ? kLanes : static_cast<std::uint32_t>(std::popcount(mask));
        block.arrive(number, wanted, lanes, step, mask, step.c == kNoRef ? nullptr : &source(step.c));
        if (step.source->has(Modifier::kArrive)) {
          ++p.pc;
          continue;
        }
        p.state = State::kAtBarrier;
        p.barrier = number % 16;
        return;
      }
    }
    if (!here) return;
    if (block.counts.instructions >= block.most_instructions) {
      runnable_.push_back(path);
      return;
    }
    if (++turn >= (block.short_turns() ? kShortTurn : kTurn)) {
      turn = 0;
      release_arrived();
      return give_way(path);
    }
  }
}

// After its turn: to other paths of the warp, which may wait for it, and to other warps.
void Warp::give_way(std::uint32_t path) {
  runnable_.insert(runnable_.begin(), path);
  gave_way_ = true;
}

// Lanes that name different masks at one place do it in groups of their own. What shfl reads is named by lanes.
void Warp::run_operation(const Step& step, Mask mask) {
  if (step.e == kNoRef || step.source->op == Op::kShfl) return step.run(*this, step, mask);
  const Row& masks = source(step.e);
  while (mask != 0) {
    const auto named = static_cast<Mask>(masks.lane[std::countr_zero(mask)]);
    Mask group = 0;
    for_lanes(mask, [&](int l) { group |= Mask{static_cast<Mask>(masks.lane[l]) == named} << l; });
    step.run(*this, step, group);
    mask &= ~group;
  }
}

// At once where all lanes that it is for are here, else when nothing else of the warp can run.
bool Warp::meet(std::uint32_t path, const Step& step, Mask mask) {
  Path& p = paths_[path];
  Mask needed = step.e == kNoRef ? mask : 0;
  if (step.e != kNoRef) for_lanes(mask, [&](int l) { needed |= static_cast<Mask>(source(step.e).lane[l]); });
  needed &= live;
  if ((needed & ~mask) == 0 || mask != p.mask) {
    if (step.control == Control::kWarpOperation) run_operation(step, mask);
    ++p.pc;
    return true;
  }
  p.state = State::kAtWarpSync;
  p.needed = needed;
  return false;
}

}  // namespace cudasim::ptx
