// One depth-first search for a placement within a capacity. It can be interrupted and resumed.
//
// Each unplaced buffer has a least offset. A node of the tree takes a buffer j below whose least offset no other can
// come any more, and decides whether j lies exactly there. If so, all that overlap it in time lie above it. If not, j
// rests on a buffer that is still unplaced, so that its least offset rises to the least top among those that overlap it
// (in a canonical solution, one in which nothing can be moved down; MiniMalloc, too, searches only these). Where this
// differs from MiniMalloc's monotonic floor, which never goes back to a lower offset: what a postponement costs is
// counted at once and in every section in which the buffer lives; and any such j is correct, so that the branching
// heuristic is free.
//
// A subtree that was searched in vain proves that no placement has these least offsets. The proof depends on nothing
// else, so that it can be kept as a nogood (`Pruning::nogoods`); and it holds although dominance excludes placements,
// since each of those has a counterpart in a subtree that was searched before.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "planner/layout/exact/branch_and_bound.h"
#include "planner/layout/exact/prepared_problem.h"

namespace memopt::layout {

// Branching heuristics: which buffer a node takes.
enum class Branching {
  kLeastOffset,       // one with the least offset; the first by rank
  kLeastSlack,        // of those with the least offset, the one in the section with the least slack
  kFewestCandidates,  // in the section that has the fewest buffers that could come next (fail first)
};

struct Strategy {
  Branching branching = Branching::kLeastOffset;
  // Before anything else, branches in the section in which the last placement failed, until it is full: so that a
  // failure is not found again and again below decisions that have nothing to do with it (Lecoutre, Sais, Tabary,
  // Vidal, "Reasoning from last conflict(s) in constraint programming", Artificial Intelligence 173, 2009).
  bool last_conflict_first = false;
  std::vector<std::int32_t> rank;  // of each buffer; breaks ties, the smaller first
};

enum class Progress { kSolved, kInfeasible, kUnfinished };

class PlacementTree {
 public:
  virtual ~PlacementTree() = default;

  // Searches for about `nodes` more nodes, or until `stop` returns true (it is called every few microseconds).
  template <typename Stop>
  Progress run(std::uint64_t nodes, const Stop& stop) {
    constexpr std::uint64_t kNodesBetweenStops = 64;
    const std::uint64_t end = this->nodes() + nodes;
    while (this->nodes() < end) {
      if (stop()) return Progress::kUnfinished;
      const Progress progress = advance(std::min(kNodesBetweenStops, end - this->nodes()));
      if (progress != Progress::kUnfinished) return progress;
    }
    return Progress::kUnfinished;
  }

  virtual std::uint64_t nodes() const = 0;
  // In units, in the order of the prepared problem. Once solved.
  virtual std::vector<std::int64_t> offsets() const = 0;

 protected:
  virtual Progress advance(std::uint64_t nodes) = 0;
};

// `prepared` must outlive the tree.
std::unique_ptr<PlacementTree> make_placement_tree(const PreparedProblem& prepared, std::int64_t capacity,
                                                   Strategy strategy, const Pruning& pruning);

}  // namespace memopt::layout
