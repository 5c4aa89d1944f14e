// From "these blocks are gone at the turn, and these come back together" to steps.
//
// A strategy says which blocks are gone at the turn, and what is made when a launch behind it misses one. Replays
// follow from that; drops follow from the replays: a value that is not read again before it is written anew is dropped
// at once, also of what the program keeps for longer, and of what a replay writes besides.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "planner/recompute/model/graph.h"
#include "planner/recompute/model/plan.h"
#include "planner/recompute/published/forward.h"

namespace memopt::recompute {

struct Replay {
  std::uint32_t before = 0, launch = 0;  // an operation; what is replayed
};

// What a strategy takes to be in memory. What it holds for there, though nothing reads it again, costs no memory.
class Remaking {
 public:
  Remaking(const swap::Problem& problem, const Graph& graph);

  bool is_there(std::uint32_t block) const {
    return graph_.can_be_made(block) && version_[block] == graph_.last_version(block);
  }
  void forget(std::uint32_t block) { version_[block] = 0; }
  // Makes the block, and before it whatever is missing for it. False: too many replays, or too late for one.
  bool fetch(std::uint32_t block);
  // Of what was made since the last time, all but what `keep` says.
  template <typename Keep>
  void forget_made(const Keep& keep) {
    for (const std::uint32_t b : made_) {
      if (!keep(b)) forget(b);
    }
    made_.clear();
  }

 private:
  friend class Following;

  bool replay(std::uint32_t launch);

  const Graph& graph_;
  const std::size_t most_;
  std::uint32_t before_ = 0;  // the operation ahead
  std::vector<std::uint32_t> version_, made_;
  std::vector<Replay> replays_;
};

class Strategy {
 public:
  virtual ~Strategy() = default;
  // Forgets what is gone from here on: of what may leave.
  virtual void turn(Remaking& remaking) = 0;
  // Some of what the launch reads is not there. False: there is no way.
  virtual bool provide(Remaking& remaking, std::uint32_t launch, const std::vector<std::uint32_t>& missing) = 0;
};

// Nothing: the strategy found no way. O(n + a + r) for r replays, beside the strategy.
std::optional<Steps> follow(const swap::Problem& problem, const Graph& graph, const Forward& forward,
                            Strategy& strategy);

// Those of the replays, in order of their operations, that are of use, and the drops that follow from them. Whether
// each replay finds what it reads is not looked at. O(n + a + r).
Steps with_drops(const swap::Problem& problem, const Graph& graph, const Forward& forward,
                 std::span<const Replay> replays);

}  // namespace memopt::recompute
