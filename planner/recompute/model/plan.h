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

// What a replay comes to for a block that its launch writes.
enum class Outcome : std::uint8_t {
  kMade,     // it takes its bytes, and is in this version
  kChanged,  // it was in the version before
  kThere,    // it is in this version already, and stays so
  kBesides,  // it stays as it is, or away; as many bytes are written besides, for as long as the replay
};

inline Outcome outcome(const Use& write, bool can_be_made, bool is_there, std::uint32_t version) {
  if (can_be_made && !is_there && write.version == 1) return Outcome::kMade;
  if (can_be_made && is_there && version + 1 == write.version) return Outcome::kChanged;
  return is_there && version == write.version ? Outcome::kThere : Outcome::kBesides;
}

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
