// Which blocks are dropped in an iteration, which launches are replayed to make them again, and what that comes to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/recompute/model/graph.h"

namespace memopt::recompute {

// Before an operation: a launch is run once more, or a block's bytes are given up.
//
// A replay reads what its launch read, in the same versions. What it writes as its block's first version and is not in
// memory takes its bytes, also where the program has freed it; it is dropped again at the end of the iteration at the
// latest. What it changes in place gets its next version. What is there in the same version is written as it is. All
// else stays as it is, and as many bytes take what is written, for as long as the replay.
struct Step {
  enum class Kind : std::uint8_t { kReplay, kDrop };

  std::uint32_t before = 0;  // an operation, or their number: behind all
  Kind kind = Kind::kReplay;
  std::uint32_t what = 0;  // launch or block

  friend bool operator==(const Step&, const Step&) = default;
};

using Steps = std::vector<Step>;  // in order

struct Cost {
  std::optional<std::string> fault;  // nothing else holds if there is one
  std::uint64_t peak = 0;            // largest sum of what is in memory
  double added_ns = 0;               // of all replays
  std::uint64_t replays = 0, drops = 0;
};

// Goes over the iteration with the steps: whether each launch, and each replay, finds all of its blocks as they were.
// O(n + a + s).
Cost find_cost(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph, const Steps& steps);

}  // namespace memopt::recompute
