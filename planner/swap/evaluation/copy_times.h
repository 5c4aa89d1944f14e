// When copies begin and end if nothing ever waits for them.
//
// Copies out go in order of issue, each as soon as the engine is free. Copies in go in the order in which they are
// needed, each as late as it can without being late (backwards through the iteration), so that bytes are taken for the
// shortest time. Both queues go on over the end of the iteration.
//
// Where clean drops are allowed, a block that was away since it was last written leaves without a copy.
//
// A running program that issues each copy in after the last operation that has ended by then, or earlier, is never
// later than this: whatever waits for something waits for what ends no later than here.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/swap/evaluation/eviction_candidates.h"
#include "planner/swap/simulation/clock.h"

namespace memopt::swap {

// The evictions that are used, and how.
struct Choice {
  std::vector<std::uint8_t> evicted;     // by eviction
  std::vector<std::uint64_t> out_after;  // by eviction: the operation, at or behind that by which it leaves
  std::vector<std::uint32_t> order;      // of placement: a permutation of the items
  std::vector<Delay> delays;             // ascending: operations that wait

  friend bool operator==(const Choice&, const Choice&) = default;
};

// Nothing away, copies out at once, items placed in their own order.
Choice nothing_evicted(const EvictionCandidates& candidates);

class CopyTimes {
 public:
  CopyTimes(const Problem& problem, const Liveness& liveness, const EvictionCandidates& candidates, const Clock& clock);

  // False if the copies of an iteration take longer than an iteration. Evictions that are too short for their copies to
  // be done in time are in late(), the worst first.
  bool find(const Choice& choice);
  const std::vector<std::uint32_t>& late() const { return late_; }
  // The evictions of the choice, in order of issue.
  const std::vector<std::uint32_t>& used() const { return outs_; }

  // Of an eviction, on the line of its block's instance.
  double out_end(std::uint32_t eviction) const { return out_end_[eviction]; }
  double in_begin(std::uint32_t eviction) const { return in_begin_[eviction]; }
  // It leaves without a copy, as nothing was written since the one before.
  bool is_clean(std::uint32_t eviction) const { return clean_[eviction] != 0; }

  // Which of two that are issued after the same operation goes first: that which is needed first.
  bool goes_before(std::uint32_t a, std::uint32_t b) const {
    return needed_[a] != needed_[b] ? needed_[a] < needed_[b] : a < b;
  }

 private:
  void find_clean();
  bool find_out(const Choice& choice);
  bool find_in();

  const Liveness& liveness_;
  const EvictionCandidates& candidates_;
  const Clock& clock_;
  const bool clean_drops_;
  std::vector<double> out_ns_, in_ns_;  // by eviction
  std::vector<std::uint8_t> clean_;
  std::vector<std::uint64_t> needed_;  // in its iteration; behind all others if it does not return
  std::vector<std::uint64_t> issue_;   // in its iteration
  std::vector<std::uint32_t> outs_, ins_, late_;
  std::vector<double> out_end_, in_begin_, lateness_;
};

}  // namespace memopt::swap
