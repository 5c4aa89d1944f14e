// Decides when the swaps of a program's iteration are planned: beside IterationPlanner, which finds the iteration and
// plans its layout, for programs whose agent carries swaps out.
//
// The layout is sent at once; swaps follow when it is known how long the device takes for the operations: all were
// measured, or half of them were, or others like them, and there will hardly be more soon: the program follows the
// layout, or has repeated the iteration often. A program that waits, for its plans or for the next swaps in the place
// of those that it follows, has them as soon as half of the operations are known; one that keeps to a limit meanwhile,
// and so follows nothing, when nearly all are.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "planner/iteration/iteration_planner.h"
#include "planner/sending/swap_plan.h"
#include "planner/sending/swap_planning.h"
#include "planner/sending/timed_iteration.h"
#include "shm/channel.h"

namespace memopt::planner {

// Not thread-safe. With `waited_for`, the same records give the same plans.
class SwapPlanner {
 public:
  // `store`: of the program's records so far. `wait`: how long a program that is `waited_for` waits at most.
  SwapPlanner(const shm::SwapTermsBody& terms, bool waited_for, std::chrono::seconds wait, const OperationStore& store)
      : terms_(terms), waited_for_(waited_for), wait_(wait) {
    iteration_.begin_behind(store);
  }
  // Other terms. The planner's iteration is another one from now on, if it is the same as before.
  void change(const shm::SwapTermsBody& terms);

  // Each record, before `IterationPlanner` has it. `gap`: before it, some are missing.
  void add(std::uint32_t lane, const shm::RecordView& record, bool gap);

  // After each check of the planner, before it has another record. True if this is another iteration than the last.
  // `waiting`: the program is sent nothing of this iteration until there are swaps or none can be had.
  bool check(const IterationPlanner& planner, bool waiting);

  // A plan that swaps, of the iteration that the planner found last, if there is a new one: its bytes, without a
  // number. `unswapped`: the footprint of the best plan without swaps, which it has to be worth more than.
  std::optional<std::vector<std::byte>> take(std::uint64_t unswapped);

  // `take` may have something for this iteration, which nothing was taken of, soon.
  bool may_follow() const { return pending_ || (planning_ != nullptr && !planning_->has_answered()); }
  bool is_within_limit(std::uint64_t footprint) const {
    return terms_.memory_limit == 0 || footprint <= terms_.memory_limit;
  }
  // What some launches touch could not be read: nothing may be swapped any more.
  bool is_blind() const { return blind_; }

  // A plan of the last iteration was sent; `first`: the first number of its plans.
  void sent(std::uint64_t first) { first_sent_ = first; }
  // The agent refused the last plan that swaps, as it came to `excess` bytes too much: smaller ones are looked for, a
  // few times. For another reason, 0, the iteration is not tried again.
  void refused(std::uint64_t excess);
  // Nothing but swaps keeps to the limit, and there may soon be some: a layout is not worth sending.
  bool holds_back(std::uint64_t unswapped) const { return may_follow() && !is_within_limit(unswapped); }

  // One sentence for people, empty where there is nothing to say. Changes seldom.
  const std::string& note() const { return note_; }

 private:
  // Of a plan with swaps: how much longer an iteration takes by it, as a factor, and how many operations that has.
  struct Cost {
    double slowdown = 1;
    std::uint64_t operations = 0;
  };
  struct Sent {
    Cost cost;
    swap::Decisions decisions;  // empty as soon as the iteration is another one
    std::string note;
  };

  void look_at_times(bool no_more, std::uint64_t unswapped);
  IterationTimes times_of_iteration();
  void look_at_changes(std::uint64_t unswapped);
  void look_at_escapes(const IterationPlanner& planner);
  bool takes_longer(const IterationTimes& times) const;
  bool is_slower_than_on_demand(const PlannedSwaps& swaps);
  SwapTask task_of(const IterationTimes& times) const;
  void start(const IterationTimes& times, std::uint64_t unswapped);
  void stop(std::string note);
  bool is_worthwhile(const PlannedSwaps& swaps, std::uint64_t unswapped);
  bool is_as_good(const PlannedSwaps& swaps);
  std::optional<std::vector<std::byte>> bytes(const PlannedSwaps& swaps, std::uint64_t unswapped);

  shm::SwapTermsBody terms_;
  const bool waited_for_;
  const std::chrono::seconds wait_;
  TimedIteration iteration_{""};
  bool blind_ = false;
  bool pending_ = false;            // swaps of the iteration are to be planned
  bool followed_ = false;           // the program follows a plan of it
  std::uint64_t first_sent_ = 0;    // number of its first plan; 0: none was sent
  std::uint64_t measured_ = 0;      // operations, of all records
  std::uint64_t enough_known_ = 0;  // tenths of the operations
  std::uint64_t look_at_ = 0;       // when so many were, times are looked at again
  std::uint64_t operations_ = 0;    // of the iteration
  std::optional<Sent> sent_;        // the plan that was sent last
  std::optional<Cost> inner_;       // of one that the program follows, of a loop within this iteration
  std::optional<SwapPlanWriter> writer_;
  std::uint64_t unswapped_ = 0;     // of the task
  std::uint64_t planned_busy_ = 0;  // how long the operations take that swaps were planned for last; 0: none were
  bool measures_on_demand_ = true;
  bool keeps_to_swaps_ = false;  // that were sent, of whichever iteration
  bool found_by_plan_ = false;   // the iteration, while the program did: what it takes is not what it takes on demand
  std::uint64_t on_demand_ = 0;  // how long an iteration took while no swaps were followed; 0: not known
  std::uint32_t changes_ = 0;    // of that, for which they were planned again
  std::uint64_t escapes_ = 0;    // that were looked at, of all that the store has been told
  bool settled_ = false;         // nothing is guessed any more, or it was planned again when hardly anything was
  bool had_pages_ = false;       // in the last plan that was sent
  std::uint64_t last_ = 0;       // what the last one that was sent needs, in bytes
  std::uint64_t reserve_ = 0;    // by so much less than the limit plans of this iteration are to need
  std::uint32_t refusals_ = 0;   // of them
  std::optional<PlannedSwaps> found_;
  std::unique_ptr<SwapPlanning> planning_;
  std::vector<std::unique_ptr<SwapPlanning>> ending_;  // cancelled, and not over yet
  std::string note_, sent_note_;                       // that of the plan that was sent last
};

}  // namespace memopt::planner
