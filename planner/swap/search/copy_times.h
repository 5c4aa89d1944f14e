// Internal to the room: when copies begin and end if nothing ever waits for them.
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

#include "planner/swap/clock.h"
#include "planner/swap/search/absences.h"

namespace memopt::swap {

// The absences that are used, and how.
struct Choice {
  std::vector<std::uint8_t> away;        // by absence
  std::vector<std::uint64_t> out_after;  // by absence: the operation, at or behind that by which it leaves
  std::vector<std::uint32_t> order;      // of placement: a permutation of the items
  std::vector<Delay> delays;             // ascending: operations that wait

  friend bool operator==(const Choice&, const Choice&) = default;
};

// Nothing away, copies out at once, items placed in their own order.
Choice nothing_away(const Candidates& candidates);

class CopyTimes {
 public:
  CopyTimes(const Problem& problem, const Lives& lives, const Candidates& candidates, const Clock& clock);

  // False if the copies of an iteration take longer than an iteration. Absences that are too short for their copies to
  // be done in time are in late(), the worst first.
  bool find(const Choice& choice);
  const std::vector<std::uint32_t>& late() const { return late_; }
  // The absences of the choice, in order of issue.
  const std::vector<std::uint32_t>& used() const { return outs_; }

  // Of an absence, on the line of its block's instance.
  double out_end(std::uint32_t absence) const { return out_end_[absence]; }
  double in_begin(std::uint32_t absence) const { return in_begin_[absence]; }
  // It leaves without a copy, as nothing was written since the one before.
  bool is_clean(std::uint32_t absence) const { return clean_[absence] != 0; }

  // Which of two that are issued after the same operation goes first: that which is needed first.
  bool goes_before(std::uint32_t a, std::uint32_t b) const {
    return needed_[a] != needed_[b] ? needed_[a] < needed_[b] : a < b;
  }

 private:
  void find_clean();
  bool find_out(const Choice& choice);
  bool find_in();

  const Lives& lives_;
  const Candidates& candidates_;
  const Clock& clock_;
  const bool clean_drops_;
  std::vector<double> out_ns_, in_ns_;  // by absence
  std::vector<std::uint8_t> clean_;
  std::vector<std::uint64_t> needed_;  // in its iteration; behind all others if it does not return
  std::vector<std::uint64_t> issue_;   // in its iteration
  std::vector<std::uint32_t> outs_, ins_, late_;
  std::vector<double> out_end_, in_begin_, lateness_;
};

}  // namespace memopt::swap
