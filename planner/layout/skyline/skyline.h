// Internal to planner/layout: the skyline, on which most heuristics are built. The top of what is placed is a skyline
// over time; the lowest line is taken, and the buffer with the largest priority among those that fit into its time is
// placed on it; if there is none, the line is lifted to its lower neighbour (offset lines: Sekiyama et al. 2018,
// section 3.3; skylines of two-dimensional strip packing work the same way).
//
// Differences from the paper: any priority; and
// - time may be circular (Sections::circular), so that a buffer which is needed over the end of an iteration that
// repeats
//   is one arc like any other;
// - a buffer with several intervals is placed where the line is flat over its whole arc, but raises only the intervals:
//   what lies in between stays low;
// - buffers that are placed before a run may float above the lines, and the space below them is used;
// - given a height to stay below, a run ends as soon as the unplaced buffers cannot fit above a line.
//
// O(n log^2 n) in practice: O(n) placements and lifts with a heap, each with a query of a k-d tree of unplaced buffers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/layout/problem/limits.h"
#include "planner/layout/problem/problem.h"
#include "planner/layout/problem/sections.h"
#include "planner/layout/skyline/candidates.h"
#include "planner/layout/skyline/monotone_queue.h"
#include "planner/layout/skyline/obstacles.h"
#include "planner/layout/skyline/unplaced_load.h"

namespace memopt::layout {

// Working memory for runs of one thread; copies share nothing. Both arguments must outlive it.
class Skyline {
 public:
  // `places`: offsets of the buffers that are placed before a run, kAnywhere for the others; empty: the fixed ones.
  Skyline(const Problem& problem, const Sections& sections, std::span<const std::uint64_t> places = {});

  // About what a run spends: placements and lifts.
  static std::uint64_t steps_of_a_run(const Problem& problem) { return 6 * (problem.buffers.size() + 1); }

  // Places all others. Priorities by buffer, at least 1. False, with no solution, if the height would not stay below
  // `below`, or if the allowance ended before.
  bool run(std::span<const std::uint32_t> priorities, std::uint64_t below, Allowance& allowance, Solution& solution);

  // After a run that ended because of its height: the unplaced buffers of the section that was overfull. O(n).
  std::vector<std::uint32_t> blamed() const;

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  struct Segment {
    std::uint64_t height;
    std::uint32_t lo, length;  // lo is below the number of sections; the end may lie beyond it if time is circular
    std::uint32_t previous, next;
    std::uint32_t version;
  };
  using Entry = MonotoneQueue::Entry;  // void once the segment has another version

  void start(std::span<const std::uint32_t> priorities, std::uint64_t below);
  std::uint32_t lowest_segment();
  bool whole_cycle(const Segment& segment) const { return circular_ && segment.length == sections_.count; }
  // The lowest obstacle above the segment.
  std::uint32_t obstacle_above(const Segment& segment) const;
  bool fits_below_obstacles(std::uint32_t buffer, std::uint64_t top) const;
  std::uint32_t best_candidate(const Segment& segment, std::uint64_t ceiling, std::uint64_t& steps);
  void place(std::uint32_t buffer, std::uint32_t segment, std::uint64_t top);
  // Raises the part of the segment over `range`; returns the segment behind that part, or kNone.
  std::uint32_t raise(std::uint32_t segment, SectionRange range, std::uint64_t height);
  bool lift(std::uint32_t segment, std::uint64_t ceiling, std::uint64_t below);

  std::uint32_t make_segment();
  void push(std::uint32_t segment);
  void push_lowest(std::uint32_t segment);
  void insert_behind(std::uint32_t segment, std::uint32_t added);
  std::uint32_t join_equal(std::uint32_t segment);
  void join(std::uint32_t left, std::uint32_t right);
  // Whether all unplaced buffers over the segment could stay below `below` if it stood at `height`.
  bool unplaced_fits(const Segment& segment, std::uint64_t height, std::uint64_t below);
  bool unplaced_fits(std::uint32_t lo, std::uint32_t hi, std::uint64_t height, std::uint64_t below);

  const Problem& problem_;
  const Sections& sections_;
  bool circular_;
  std::vector<std::uint64_t> places_;
  std::uint64_t least_height_ = 0;  // of those placed before a run
  Candidates candidates_;
  Obstacles obstacles_;
  std::vector<std::uint64_t> load_;  // of those to be placed, by section
  UnplacedLoad unplaced_;            // kept only where there is a height to stay below
  bool bounded_ = false;
  std::vector<std::uint64_t> offsets_;
  std::uint32_t overfull_ = 0;  // the section that ended the last run because of its height
  std::vector<Segment> segments_;
  std::vector<std::uint32_t> unused_;
  MonotoneQueue queue_;
  std::vector<Entry> lowest_;  // a stack: the rest of the lowest line; they come before all in the queue
};

}  // namespace memopt::layout
