// Internal to the room: the workhorse of the heuristics. The top of what is placed is a skyline over time; the lowest
// line is taken, and the buffer with the largest priority among those that fit into its time is put on it; if there is
// none, the line is lifted to its lower neighbour (offset lines: Sekiyama et al. 2018, section 3.3).
//
// Differences from the paper: any priority; and
// - time may be a circle (Timeline::circle), so that a buffer which is needed over the end of an iteration that repeats
//   is one arc like any other;
// - a buffer with several intervals goes where the line is flat over all its arc, but raises only what it needs: what
//   lies in between stays low;
// - what is placed already may float above the lines, and the room below is used;
// - given a height to stay below, a run ends as soon as what is still to come cannot fit above a line.
//
// O(n log^2 n) in practice: O(n) placements and lifts with a heap, each with a look into a k-d tree of those to come.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/layout/candidates.h"
#include "planner/layout/obstacles.h"
#include "planner/layout/problem.h"
#include "planner/layout/rest_load.h"
#include "planner/layout/timeline.h"
#include "planner/layout/watch.h"

namespace memopt::layout {

// A place to work in, for one thread; copies share nothing. Both arguments must outlive it.
class Skyline {
 public:
  // `places`: offsets of the buffers that are placed already, kAnywhere for the others; empty: the fixed ones.
  Skyline(const Problem& problem, const Timeline& timeline, std::span<const std::uint64_t> places = {});

  // What a run spends, about: placements and lifts.
  static std::uint64_t steps_of_a_run(const Problem& problem) { return 6 * (problem.buffers.size() + 1); }

  // Places all others. Priorities by buffer, at least 1. False, with no solution, if the height would not stay below
  // `below`, or if the allowance ended first.
  bool run(std::span<const std::uint32_t> priorities, std::uint64_t below, Allowance& allowance, Solution& solution);

  // Of a run that ended because of its height: the buffers that it had not placed yet in the section that was too high.
  // O(n).
  std::vector<std::uint32_t> left_over() const;

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  struct Segment {
    std::uint64_t height;
    std::uint32_t lo, length;  // lo below the number of sections; the end may lie beyond it on a circle
    std::uint32_t previous, next;
    std::uint32_t version;
  };
  struct Turn {  // in the heap; void once the segment has another version
    std::uint64_t height;
    std::uint32_t lo, segment, version;
    bool operator<(const Turn& other) const {  // the lowest first, then the earliest
      return height != other.height ? height > other.height : lo > other.lo;
    }
  };

  void start(std::span<const std::uint32_t> priorities, std::uint64_t below);
  std::uint32_t next_turn();
  bool whole_circle(const Segment& segment) const { return circle_ && segment.length == timeline_.count; }
  // The obstacle that is met first above the segment.
  std::uint32_t obstacle_above(const Segment& segment) const;
  bool fits_below_obstacles(std::uint32_t buffer, std::uint64_t top) const;
  std::uint32_t best_candidate(const Segment& segment, std::uint64_t ceiling, std::uint64_t& steps);
  void put(std::uint32_t buffer, std::uint32_t segment, std::uint64_t top);
  // Raises the part of the segment over `span`; returns what is left of it behind, or kNone.
  std::uint32_t raise(std::uint32_t segment, Span span, std::uint64_t height);
  bool lift(std::uint32_t segment, std::uint64_t ceiling, std::uint64_t below);

  std::uint32_t make_segment();
  void changed(std::uint32_t segment);
  void stays_lowest(std::uint32_t segment);
  void insert_behind(std::uint32_t segment, std::uint32_t added);
  void join_equal(std::uint32_t segment);
  void join(std::uint32_t left, std::uint32_t right);
  // Whether all that is still to come over the segment could stay below, were it at `height`.
  bool rest_fits(const Segment& segment, std::uint64_t height, std::uint64_t below);
  bool rest_fits(std::uint32_t lo, std::uint32_t hi, std::uint64_t height, std::uint64_t below);

  const Problem& problem_;
  const Timeline& timeline_;
  bool circle_;
  std::vector<std::uint64_t> places_;
  std::uint64_t least_height_ = 0;  // of what is placed already
  Candidates candidates_;
  Obstacles obstacles_;
  std::vector<std::uint64_t> load_;  // to be placed, by section
  RestLoad rest_;                    // of it, what is not placed yet; kept only where there is a height to stay below
  bool bounded_ = false;
  std::vector<std::uint64_t> offsets_;
  std::uint32_t too_high_ = 0;  // the section that ended the last run
  std::vector<Segment> segments_;
  std::vector<std::uint32_t> unused_;
  std::vector<Turn> turns_;   // a heap
  std::vector<Turn> lowest_;  // a stack: what is left of the lowest line; all come before those in the heap
};

}  // namespace memopt::layout
