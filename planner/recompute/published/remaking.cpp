#include "planner/recompute/published/remaking.h"

#include <algorithm>

namespace memopt::recompute {
namespace {

using swap::Kind;

// Replays by launch, on average, beyond which a plan is worth nothing.
constexpr std::size_t kMostReplays = 64;

// The steps of an iteration with replays, from the end to the beginning: which values are read again.
class Drops {
 public:
  Drops(const Graph& graph, const Forward& forward) : graph_(graph), forward_(forward), needed_(graph.makers.size()) {}

  void launch(const Launch& launch) {
    for (const Use& write : launch.writes) {
      if (!graph_.can_be_made(write.block)) continue;
      std::uint32_t& needed = needed_[write.block];
      if (needed == 0) drop(write.block, launch.end);
      // Written in place, also where it isn't read: not all of it may be written.
      needed = write.version - 1;
    }
    read(launch, launch.end);
  }

  void replay(std::uint32_t l, std::uint32_t before) {
    const Launch& launch = graph_.launches[l];
    const bool useful = std::any_of(launch.writes.begin(), launch.writes.end(), [&](const Use& write) {
      return graph_.can_be_made(write.block) && needed_[write.block] == write.version;
    });
    if (!useful) return;
    for (const Use& write : launch.writes) {
      if (!graph_.can_be_made(write.block)) continue;
      std::uint32_t& needed = needed_[write.block];
      if (needed == write.version) {
        needed = write.version - 1;
      } else if (needed == 0 && write.version == 1) {
        drop(write.block, before);
      }
    }
    read(launch, before);
    steps_.push_back({before, Step::Kind::kReplay, l});
  }

  Steps take() {
    std::reverse(steps_.begin(), steps_.end());
    return std::move(steps_);
  }

 private:
  void read(const Launch& launch, std::uint32_t before) {
    for (const Use& read : launch.reads) {
      if (!graph_.can_be_made(read.block)) continue;
      std::uint32_t& needed = needed_[read.block];
      if (needed == 0) drop(read.block, before);
      needed = read.version;
    }
  }
  void drop(std::uint32_t block, std::uint32_t before) {
    if (!forward_.is_freed_at_once(block, before)) steps_.push_back({before, Step::Kind::kDrop, block});
  }

  const Graph& graph_;
  const Forward& forward_;
  std::vector<std::uint32_t> needed_;  // by block: the version that is read next, or 0
  Steps steps_;
};

}  // namespace

class Following {
 public:
  Following(const swap::Problem& problem, const Graph& graph, const Forward& forward, Strategy& strategy)
      : problem_(problem), graph_(graph), forward_(forward), strategy_(strategy), remaking_(problem, graph) {}

  std::optional<Steps> run() {
    for (std::uint32_t i = 0; i < problem_.operations.size(); ++i) {
      if (i == forward_.turn) strategy_.turn(remaking_);
      if (problem_.operations[i].kind == Kind::kFree) {
        if (graph_.can_be_made(problem_.operations[i].block)) remaking_.forget(problem_.operations[i].block);
      } else if (graph_.begins(i) && !launch(graph_.launch_at[i])) {
        return std::nullopt;
      }
    }
    return with_drops(problem_, graph_, forward_, remaking_.replays_);
  }

 private:
  bool launch(std::uint32_t l) {
    const Launch& launch = graph_.launches[l];
    remaking_.before_ = forward_.before[l];
    missing_.clear();
    for (const Use& read : launch.reads) {
      // In an earlier version it has never left.
      const bool whole = graph_.can_be_made(read.block) && read.version == graph_.last_version(read.block);
      if (whole && !remaking_.is_there(read.block)) missing_.push_back(read.block);
    }
    if (!missing_.empty() && !strategy_.provide(remaking_, l, missing_)) return false;
    for (const Use& write : launch.writes) remaking_.version_[write.block] = write.version;
    return true;
  }

  const swap::Problem& problem_;
  const Graph& graph_;
  const Forward& forward_;
  Strategy& strategy_;
  Remaking remaking_;
  std::vector<std::uint32_t> missing_;
};

Remaking::Remaking(const swap::Problem& problem, const Graph& graph)
    : graph_(graph), most_(kMostReplays * (graph.launches.size() + 1)), version_(problem.blocks.size()) {}

// Chains may be as long as the iteration: no recursion.
bool Remaking::fetch(std::uint32_t block) {
  std::vector<std::uint32_t> stack = {block};
  while (!stack.empty()) {
    const std::uint32_t top = stack.back();
    if (is_there(top)) {
      stack.pop_back();
      continue;
    }
    const std::uint32_t l = graph_.makers[top][version_[top]];
    const Launch& launch = graph_.launches[l];
    if (before_ < launch.end || before_ > launch.valid_until) return false;
    const std::size_t depth = stack.size();
    for (const Use& read : launch.reads) {
      const bool whole = graph_.can_be_made(read.block) && read.version == graph_.last_version(read.block);
      if (whole && read.block != top && !is_there(read.block)) stack.push_back(read.block);
    }
    if (stack.size() == depth && !replay(l)) return false;
  }
  return true;
}

bool Remaking::replay(std::uint32_t l) {
  if (replays_.size() >= most_) return false;
  replays_.push_back({before_, l});
  for (const Use& write : graph_.launches[l].writes) {
    if (!graph_.can_be_made(write.block) || version_[write.block] + 1 != write.version) continue;
    version_[write.block] = write.version;
    made_.push_back(write.block);
  }
  return true;
}

std::optional<Steps> follow(const swap::Problem& problem, const Graph& graph, const Forward& forward,
                            Strategy& strategy) {
  return Following(problem, graph, forward, strategy).run();
}

Steps with_drops(const swap::Problem& problem, const Graph& graph, const Forward& forward,
                 std::span<const Replay> replays) {
  Drops drops(graph, forward);
  std::size_t left = replays.size();
  for (auto i = static_cast<std::uint32_t>(problem.operations.size()); i-- > 0;) {
    if (graph.begins(i)) drops.launch(graph.launches[graph.launch_at[i]]);
    for (; left > 0 && replays[left - 1].before == i; --left) drops.replay(replays[left - 1].launch, i);
  }
  return drops.take();
}

}  // namespace memopt::recompute
