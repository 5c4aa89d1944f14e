#include "ptx/execution/warp.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "ptx/execution/block_run.h"

namespace cudasim::ptx {
namespace {

// Steps that jump back before another path gets its turn.
constexpr std::uint32_t kTurn = 1 << 15;
constexpr std::size_t kMostFrames = 1 << 12;

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
  const std::uint32_t first = index * kLanes;
  set(Special::kTidX, [&](std::uint32_t l) { return (first + l) % s.block[0]; });
  set(Special::kTidY, [&](std::uint32_t l) { return (first + l) / s.block[0] % s.block[1]; });
  set(Special::kTidZ, [&](std::uint32_t l) { return (first + l) / s.block[0] / s.block[1]; });
  for (std::uint32_t axis = 0; axis < 3; ++axis) {
    const auto at = [&](Special x) { return static_cast<Special>(static_cast<std::uint32_t>(x) + axis); };
    all(at(Special::kNtidX), s.block[axis]);
    all(at(Special::kCtaidX), block.index[axis]);
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
  if (step.control == Control::kWarpOperation) step.run(*this, step, together);
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
    const Step& step = code_->steps[p.pc];
    Mask mask = p.mask;
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
    if (++turn >= kTurn) {
      turn = 0;
      release_arrived();
      if (!runnable_.empty()) {
        runnable_.insert(runnable_.begin(), path);
        return;
      }
    }
  }
}

bool Warp::go(std::uint32_t path, std::uint32_t target) {
  Path& p = paths_[path];
  p.pc = target;
  if (target != p.join) return true;
  paths_[p.parent].arrived |= p.mask;
  p.mask = 0;
  finish(path);
  return false;
}

bool Warp::branch(std::uint32_t path, const Step& step, Mask taken, std::uint32_t target) {
  Path& p = paths_[path];
  const Mask others = p.mask & ~taken;
  if (others == 0) return go(path, target);
  if (taken == 0) return go(path, p.pc + 1);
  return part(path, step.join, {{taken, target}, {others, p.pc + 1}});
}

bool Warp::part(std::uint32_t path, std::uint32_t join, const std::vector<std::pair<Mask, std::uint32_t>>& ways) {
  // Lanes that leave a loop to where this path ends anyway need no path of their own.
  if (join != kNoIndex && join == paths_[path].join) {
    Path& p = paths_[path];
    std::uint32_t staying = 0;
    const std::pair<Mask, std::uint32_t>* rest = nullptr;
    for (const auto& way : ways) {
      if (way.second != join) {
        ++staying;
        rest = &way;
      }
    }
    if (staying == 1) {
      paths_[p.parent].arrived |= p.mask & ~rest->first;
      p.mask = rest->first;
      p.pc = rest->second;
      return true;
    }
  }
  paths_[path].state = State::kWaiting;
  paths_[path].arrived = 0;
  const std::uint32_t frame = paths_[path].frame;
  std::uint32_t children = 0;
  Mask arrived = 0;
  for (auto way = ways.rbegin(); way != ways.rend(); ++way) {
    if (way->second == join) {
      arrived |= way->first;
      continue;
    }
    Path child;
    child.state = State::kRunnable;
    child.mask = way->first;
    child.pc = way->second;
    child.join = join;
    child.parent = path;
    child.frame = frame;
    ++children;
    runnable_.push_back(add_path(child));
  }
  paths_[path].pc = join;
  paths_[path].arrived = arrived;
  paths_[path].children = children;
  return false;
}

bool Warp::switch_to(std::uint32_t path, const Step& step, Mask mask) {
  const Row& value = source(step.a);
  std::vector<std::pair<Mask, std::uint32_t>> ways;
  const auto add = [&](int lane, std::uint32_t target) {
    for (auto& way : ways) {
      if (way.second == target) {
        way.first |= Mask{1} << lane;
        return;
      }
    }
    ways.emplace_back(Mask{1} << lane, target);
  };
  for_lanes(paths_[path].mask & ~mask, [&](int lane) { add(lane, paths_[path].pc + 1); });
  for_lanes(mask, [&](int lane) {
    const auto at = static_cast<std::uint32_t>(value.lane[lane]);
    if (at >= step.count) throw Stopped{Stop::kInstruction, at, step.source, "brx.idx beyond its list"};
    add(lane, code_->refs[step.list + at]);
  });
  if (ways.size() == 1) return go(path, ways[0].second);
  return part(path, step.join, ways);
}

bool Warp::call(std::uint32_t path, const Step& step, Mask mask) {
  const CallSite& site = code_->calls[step.list];
  if (site.callee != kNoIndex) {
    call_function(path, site, site.callee, mask);
    return false;
  }
  const int lane = std::countr_zero(mask);
  const std::uint64_t address = source(step.a).lane[lane];
  const std::uint64_t number = address & ~kFunctionTag;
  const auto& codes = block.executable.codes;
  if ((address & kFunctionTag) != kFunctionTag || number >= codes.size() || codes[number].steps.empty())
    throw Stopped{Stop::kInstruction, address, step.source, "a call through a pointer to no function"};
  Mask same = 0;
  for_lanes(mask, [&](int l) { same |= Mask{source(step.a).lane[l] == address} << l; });
  // Lanes with another function, or that the guard leaves out, get paths that come to this step, or past it.
  if (same != paths_[path].mask) {
    const std::uint32_t pc = paths_[path].pc;
    std::vector<std::pair<Mask, std::uint32_t>> ways{{same, pc}};
    if (mask != same) ways.emplace_back(mask & ~same, pc);
    if (paths_[path].mask != mask) ways.emplace_back(paths_[path].mask & ~mask, pc + 1);
    return part(path, pc + 1, ways);
  }
  call_function(path, site, static_cast<std::uint32_t>(number), mask);
  return false;
}

void Warp::call_function(std::uint32_t path, const CallSite& site, std::uint32_t callee, Mask mask) {
  if (frames_.size() > kMostFrames) throw Stopped{Stop::kAddress, 0, nullptr, "calls are nested too deeply"};
  const Program& program = *block.executable.program;
  const Code& code = block.executable.codes[callee];
  const std::uint32_t caller = paths_[path].frame;
  Frame frame{&code, 0, 0, 0, &site};
  frame.first_row = frames_[caller].first_row + frames_[caller].code->rows;
  // Other paths may be in calls of their own, behind the caller's rows too.
  for (const Frame& other : frames_) {
    if (other.code != nullptr) frame.first_row = std::max(frame.first_row, other.first_row + other.code->rows);
  }
  frame.local = frames_[caller].local + frames_[caller].code->frame_bytes;
  if (frame.local + code.frame_bytes > block.stack_bytes)
    throw Stopped{Stop::kAddress, 0, nullptr, "the stack of a thread is used up by nested calls"};
  if (rows_.size() < frame.first_row + code.rows) rows_.resize(frame.first_row + code.rows);
  const Function& f = *code.function;
  const std::size_t count = std::min(site.arguments.size(), f.parameters.size());
  for (std::size_t i = 0; i < count; ++i) {
    const Variable& from = program.variables[site.arguments[i].index];
    const Variable& to = program.variables[f.parameters[i]];
    for_lanes(mask, [&](int lane) {
      const std::uint64_t stack = block.stack_of(index, lane);
      std::memcpy(reinterpret_cast<void*>(stack + frame.local + to.offset),
                  reinterpret_cast<const void*>(stack + frames_[caller].local + from.offset),
                  std::min(from.size, to.size));
    });
  }
  std::uint32_t slot = 0;
  while (slot < frames_.size() && frames_[slot].code != nullptr) ++slot;
  if (slot == frames_.size()) {
    frames_.push_back(frame);
  } else {
    frames_[slot] = frame;
  }
  Path& p = paths_[path];
  p.state = State::kWaiting;
  p.arrived = p.mask & ~mask;  // those that the guard leaves out
  p.children = 1;
  ++p.pc;
  Path child;
  child.state = State::kRunnable;
  child.mask = mask;
  child.parent = path;
  child.frame = slot;
  child.frame_root = true;
  runnable_.push_back(add_path(child));
}

void Warp::copy_results(const Frame& frame, Mask lanes) {
  const Program& program = *block.executable.program;
  const Function& f = *frame.code->function;
  const std::size_t count = std::min(frame.site->results.size(), f.results.size());
  for (std::size_t i = 0; i < count; ++i) {
    const Variable& to = program.variables[frame.site->results[i].index];
    const Variable& from = program.variables[f.results[i]];
    for_lanes(lanes, [&](int lane) {
      const std::uint64_t stack = block.stack_of(index, lane);
      std::memcpy(reinterpret_cast<void*>(stack + frame_local_ + to.offset),
                  reinterpret_cast<const void*>(stack + frame.local + from.offset), std::min(from.size, to.size));
    });
  }
}

bool Warp::leave(std::uint32_t path, Mask mask, bool exits) {
  Path& p = paths_[path];
  if (exits || p.frame == 0) {
    live &= ~mask;
    block.thread_ended(static_cast<std::uint32_t>(std::popcount(mask)));
  } else {
    frames_[p.frame].returned |= mask;
  }
  p.mask &= ~mask;
  if (p.mask != 0) return go(path, p.pc + 1);
  finish(path);
  return false;
}

// Lanes that wait at a join may be what a path spins on (one that took a lock, say): they go on by themselves, and meet
// the others at the next join, or not at all.
void Warp::release_arrived() {
  for (std::uint32_t at = 0; at < paths_.size(); ++at) {
    if (paths_[at].state != State::kWaiting || paths_[at].arrived == 0 || paths_[at].pc == kNoIndex) continue;
    Path path;
    path.state = State::kRunnable;
    path.mask = paths_[at].arrived;
    path.pc = paths_[at].pc;
    path.frame = paths_[at].frame;
    paths_[at].arrived = 0;
    // Beside the one that waits; below it where it is the first of a call, which must end last.
    path.parent = paths_[at].frame_root ? at : paths_[at].parent;
    path.join = paths_[at].frame_root ? kNoIndex : paths_[at].join;
    ++paths_[path.parent].children;
    if (path.pc == path.join) {
      paths_[path.parent].arrived |= path.mask;
      --paths_[path.parent].children;
      continue;
    }
    runnable_.push_back(add_path(path));
  }
}

// The path has no lanes any more. What waits for it may go on.
void Warp::finish(std::uint32_t path) {
  while (true) {
    Path& p = paths_[path];
    const std::uint32_t parent = p.parent;
    if (p.frame_root && parent != kNoIndex) {
      // The last of a call: those that have returned go on in the caller.
      Frame& frame = frames_[p.frame];
      enter(parent);
      copy_results(frame, frame.returned);
      paths_[parent].arrived |= frame.returned;
      frame = {};
    }
    p = {};
    free_paths_.push_back(path);
    if (parent == kNoIndex) return;
    Path& q = paths_[parent];
    if (--q.children != 0) return;
    q.mask = q.arrived;
    q.arrived = 0;
    if (q.mask != 0) {
      q.state = State::kRunnable;
      // After a call the path may stand at its end.
      if (q.pc == q.join) {
        paths_[q.parent].arrived |= q.mask;
        q.mask = 0;
      } else {
        runnable_.push_back(parent);
        return;
      }
    }
    path = parent;
  }
}

// At once where all lanes that it is for are here, else when nothing else of the warp can run.
bool Warp::meet(std::uint32_t path, const Step& step, Mask mask) {
  Path& p = paths_[path];
  Mask needed = step.e == kNoRef ? mask : static_cast<Mask>(source(step.e).lane[std::countr_zero(mask)]);
  needed &= live;
  if ((needed & ~mask) == 0 || mask != p.mask) {
    if (step.control == Control::kWarpOperation) step.run(*this, step, mask);
    ++p.pc;
    return true;
  }
  p.state = State::kAtWarpSync;
  p.needed = needed;
  return false;
}

}  // namespace cudasim::ptx
