// An iteration as launches that read and write blocks: what can be dropped, since it can be computed again.
//
// Each write gives a block its next version; a launch reads the versions that there were when it ran. A block's makers
// are the launches that write it in its life: the first does not read it, those behind change it. Replayed in order,
// they make it again. What lives on into the next iteration has none, and a launch that touches it is not replayed.
// What they read besides has to be as it was then: a block that can be made again itself, or one that nothing has
// changed or freed since. What is there all the time and is written without being read, such as a workspace, keeps no
// launch from being replayed: the replay writes to bytes of its own for as long as it runs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "planner/swap/model/liveness.h"
#include "planner/swap/model/model.h"

namespace memopt::recompute {

inline constexpr std::uint32_t kNone = ~std::uint32_t{0};

struct Use {
  std::uint32_t block = 0;
  std::uint32_t version = 0;  // that is read, or that is written; 0: what there was before the first write

  friend bool operator==(const Use&, const Use&) = default;
};

inline bool names(const std::vector<Use>& uses, std::uint32_t block) {
  return std::any_of(uses.begin(), uses.end(), [&](const Use& use) { return use.block == block; });
}

struct Launch {
  std::uint32_t first = 0, end = 0;  // its operations
  double ns = 0;
  std::vector<Use> reads, writes;  // of blocks with bytes, each once in each; one that it changes in place is in both
  // A replay is behind the launch, and before this operation, also of what has to be made again for it; 0: never.
  std::uint64_t valid_until = 0;
};

struct Graph {
  std::vector<Launch> launches;
  std::vector<std::uint32_t> launch_at;            // by operation: the launch that it is part of, or kNone
  std::vector<std::vector<std::uint32_t>> makers;  // by block, in order; none: it can't be made again
  std::vector<std::uint64_t> made_until;           // by block that can: before this operation, and not later
  std::vector<std::uint64_t> last_use;             // by block that can: the operation
  std::vector<std::uint64_t> last_need;            // the same, of all that is made of it, or of that, as well

  bool can_be_made(std::uint32_t block) const { return !makers[block].empty(); }
  // The operation is the first of a launch.
  bool begins(std::uint64_t operation) const {
    return launch_at[operation] != kNone && launches[launch_at[operation]].first == operation;
  }
  bool is_within_launch(std::uint64_t operation) const {
    return operation < launch_at.size() && launch_at[operation] != kNone && !begins(operation);
  }
  // The first operation of its launch, if it is in one.
  std::uint32_t launch_begin(std::uint64_t operation) const {
    return launch_at[operation] == kNone ? static_cast<std::uint32_t>(operation) : launches[launch_at[operation]].first;
  }
  // It can be made again up to its last use.
  bool lasts(std::uint32_t block) const { return can_be_made(block) && last_use[block] <= made_until[block]; }
  // Before this operation: whenever it is needed behind it, it can be made again.
  bool may_be_dropped(std::uint32_t block, std::uint64_t before) const {
    return can_be_made(block) && (last_need[block] < before || lasts(block));
  }
  // Of all of its makers, once.
  double make_ns(std::uint32_t block) const {
    double ns = 0;
    for (const std::uint32_t l : makers[block]) ns += launches[l].ns;
    return ns;
  }
  std::uint32_t last_version(std::uint32_t block) const { return static_cast<std::uint32_t>(makers[block].size()); }
};

// Operations belong together as Operation::continues says. The problem's accesses must be all that launches touch, and
// each write all that is written: of recordings, `observed` says what is known. O(n + a) for n operations and a
// accesses, and as many again for each block that launches read and others change later.
Graph make_graph(const swap::Problem& problem, const swap::Liveness& liveness);

}  // namespace memopt::recompute
