// Internal to the room: swaps after which no operation finds more than so much on the device, whatever they cost. The
// search has something to hold within a limit then, where waits are many: by annealing alone such plans are found late,
// or never, as each of very many evictions is of no use without the others.
//
// Greedy weighted covering (Chvátal, Math. Oper. Res. 4, 1979): the eviction that takes most of what is too much, for
// the time that its copies take and lack, one after the other; then those are left out, the last one first, without
// which it holds, too. By operations alone: copies under way are what the simulator makes operations wait for.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "planner/swap/evaluation/eviction_candidates.h"
#include "planner/swap/model/liveness.h"
#include "planner/swap/model/model.h"

namespace memopt::swap {

// Not thread-safe. Problem and liveness must outlive it.
class Covering {
 public:
  Covering(const Problem& problem, const Liveness& liveness);

  const EvictionCandidates& candidates() const { return candidates_; }
  // By eviction: is it used? None at the beginning.
  const std::vector<std::uint8_t>& used() const { return used_; }
  void use(std::uint32_t eviction, bool now);
  // Operations at which it is away, counted over two iterations: [first, second).
  std::pair<std::uint64_t, std::uint64_t> away(std::uint32_t eviction) const;

  // More are used until nothing is above the goal, and then fewer as long as nothing is. `factors`: by eviction, what
  // its cost is multiplied by; empty: 1. False: some operation needs more at once, or all that could leave is too
  // small; those that were of use are used. O(s (n + e)) for s swaps of e candidates among n operations, so that `ends`
  // is asked before each of them, unless empty: where it says yes there are too few then (false), or there may be some
  // too many.
  bool cover(std::uint64_t goal, std::span<const double> factors = {}, const std::function<bool()>& ends = {});
  // What is on the device at most. Where covering has just failed, about the least that can be covered.
  std::uint64_t load();

  // Each copy in is issued right before it is needed; nothing is placed.
  Decisions decisions() const;

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  // Of segments, on the circle of an iteration; all of it so many times, and [begin, end) of two iterations.
  struct Range {
    std::int64_t whole = 0;
    std::uint32_t begin = 0, end = 0;
  };

  void find_segments();
  Range range_of(std::uint64_t from, std::uint64_t to) const;
  void add(const Range& range, std::int64_t bytes);
  std::uint64_t bytes_of(const Eviction& eviction) const;
  std::uint64_t taken(std::uint64_t bytes) const;
  void find_excess(std::uint64_t goal);
  std::uint32_t best(std::span<const double> factors) const;

  const Problem& problem_;
  const std::uint64_t n_;
  const Liveness& liveness_;
  const EvictionCandidates candidates_;
  std::vector<std::uint8_t> used_;      // by eviction
  std::vector<double> cost_;            // by eviction
  std::vector<std::uint32_t> of_item_;  // evictions of it that are used
  // An iteration in segments, within which nothing begins or ends that may change: what is on the device at most in
  // each (levels_) is what lives there (lives_) and what evictions change.
  std::vector<std::uint64_t> begins_;  // of the segments, and of one behind the last
  std::vector<std::int64_t> lives_, changes_, levels_;
  std::int64_t everywhere_ = 0;
  std::vector<Range> away_, life_;  // by eviction; by item
  // Up to each segment of two iterations.
  std::vector<double> excess_;
  std::vector<std::uint64_t> above_;
};

}  // namespace memopt::swap
