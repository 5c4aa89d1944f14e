// One depth-first search for a placement within a capacity, which can be stopped and taken up again.
//
// Each buffer that has no place yet has a least offset. A node of the tree takes a buffer j below whose least offset
// nothing can come any more, and decides whether it lies exactly there. If so, all that overlap it in time lie above
// it. If not, it rests on a buffer that has no place yet, so that its least offset rises to the least top among those
// that overlap it (in a solution in which nothing can be moved down, which is all that has to be found). Unlike the
// order of MiniMalloc, which forbids to go back to a lower offset, this counts what a postponement costs, at once and
// in every section of time in which the buffer lives; and any such j will do, so that the choice is free.
//
// A subtree that was searched in vain proves that no placement has these least offsets; the proof depends on nothing
// else, which is what `Pruning::memory` lives on, and holds although dominance excludes placements: those have a
// counterpart in a subtree that was searched before.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "planner/layout/branch_and_bound.h"
#include "planner/layout/sections.h"

namespace memopt::layout {

// Which buffer a node takes.
enum class Choice {
  kLowest,    // of the least offset; the first by rank
  kTightest,  // of the least offset; the one in the section that has least to spare
  kScarcest,  // in the section that the fewest buffers could go on with
};

struct Strategy {
  Choice choice = Choice::kLowest;
  // Before anything else, the section in which the last placement failed is filled to its end: so that a failure is not
  // found again and again below decisions that have nothing to do with it (Lecoutre et al., "Reasoning from last
  // conflict(s) in constraint programming", 2009).
  bool conflicts_first = false;
  std::vector<std::int32_t> rank;  // of each buffer; the smaller goes first where the choice leaves it open
};

enum class Progress { kSolved, kRefuted, kUnfinished };

class PlacementTree {
 public:
  virtual ~PlacementTree() = default;

  // Goes on for about `nodes` more nodes, or until `stop` says so (asked every few microseconds).
  template <typename Stop>
  Progress run(std::uint64_t nodes, const Stop& stop) {
    constexpr std::uint64_t kBetweenQuestions = 64;
    const std::uint64_t end = this->nodes() + nodes;
    while (this->nodes() < end) {
      if (stop()) return Progress::kUnfinished;
      const Progress progress = go_on(std::min(kBetweenQuestions, end - this->nodes()));
      if (progress != Progress::kUnfinished) return progress;
    }
    return Progress::kUnfinished;
  }

  virtual std::uint64_t nodes() const = 0;
  // In units, by the numbers of Sections. Once solved.
  virtual std::vector<std::int64_t> offsets() const = 0;

 protected:
  virtual Progress go_on(std::uint64_t nodes) = 0;
};

// `sections` must outlive the tree.
std::unique_ptr<PlacementTree> make_placement_tree(const Sections& sections, std::int64_t capacity, Strategy strategy,
                                                   const Pruning& pruning);

}  // namespace memopt::layout
