// Where the lanes of a warp part, and meet again.
#include "ptx/execution/block_run.h"
#include "ptx/execution/warp.h"

namespace cudasim::ptx {

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

}  // namespace cudasim::ptx
