// Decides when the swaps of a program's iteration are planned: beside IterationPlanner, which finds the iteration and
// plans its layout, for programs whose agent carries swaps out.
//
// The layout is sent at once; swaps follow when it is known how long the device takes for the operations: all were
// measured, or half of them were, or others like them, and the program follows the layout, so that there will hardly be
// more, or has repeated the iteration often. Where the program waits for its plans, swaps are planned with the layout
// if half of the operations are known until then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "planner/iteration/iteration_planner.h"
#include "planner/iteration/timed_iteration.h"
#include "planner/sending/swap_plan.h"
#include "planner/sending/swap_planning.h"
#include "shm/channel.h"

namespace memopt::planner {

// Not thread-safe. With `waited_for`, the same records give the same plans.
class SwapPlanner {
 public:
  // Before the program's first record.
  SwapPlanner(const shm::SwapTermsBody& terms, bool waited_for) : terms_(terms), waited_for_(waited_for) {}

  // Each record, before `IterationPlanner` has it. `gap`: before it, some are missing.
  void add(std::uint32_t lane, const shm::RecordView& record, bool gap);

  // After each check of the planner, before it has another record.
  void check(const IterationPlanner& planner);

  // A plan that swaps, of the iteration that the planner found last, if there is a new one: its bytes, with that
  // generation.
  std::optional<std::vector<std::byte>> take(std::uint64_t generation);

  // Something may be there to be taken soon.
  bool is_searching() const { return planning_ != nullptr && !planning_->has_answered(); }
  // The limit allows a plan of the iteration without swaps.
  bool fits_unswapped() const { return terms_.memory_limit == 0 || unswapped_ <= terms_.memory_limit; }

  // The agent refused it. The iteration is not tried again.
  void refused();

  // One sentence for people, empty where there is nothing to say. Changes seldom.
  const std::string& note() const { return note_; }

 private:
  void look_at_times(bool no_more);
  void start(const IterationTimes& times);
  std::optional<std::vector<std::byte>> bytes(const PlannedSwaps& swaps, std::uint64_t generation);

  const shm::SwapTermsBody terms_;
  const bool waited_for_;
  TimedIteration iteration_{""};
  std::uint64_t blind_launches_ = 0;
  std::uint64_t unswapped_ = 0;  // footprint of the iteration's layout
  bool pending_ = false;         // its swaps are to be planned
  bool followed_ = false;        // the program follows a plan of it
  bool news_ = false;            // something was measured, or the program follows, since times were looked at
  std::optional<SwapPlanWriter> writer_;
  std::vector<std::uint64_t> ranks_;  // that the task has
  std::optional<PlannedSwaps> found_;
  std::unique_ptr<SwapPlanning> planning_;
  std::string note_;
};

}  // namespace memopt::planner
