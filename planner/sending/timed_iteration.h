// The iteration that a planner found last, and how long the device takes for it: for what plans more than its layout.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "planner/iteration/iteration_planner.h"
#include "planner/iteration/measured_times.h"
#include "planner/sending/iteration_problem.h"

namespace memopt::planner {

// Not thread-safe. Memory: as MeasuredTimes, and that of the iteration.
class TimedIteration {
 public:
  explicit TimedIteration(std::string name) : name_(std::move(name)) {}

  // As MeasuredTimes: in the middle of a program.
  void begin_behind(const OperationStore& store) { times_.begin_behind(store); }
  // Each record of the program, in order, before the planner has it. `gap`: before it, some are missing.
  void add(std::uint32_t lane, const shm::RecordView& record, bool gap) { times_.add(lane, record, gap); }

  // After each check of the planner, before it has another record. True if this is another iteration than the last:
  // also one that is laid out as that was, and no plan of its own for that reason.
  bool look(const IterationPlanner& planner);

  // As IterationProblemBuilder says; there must be one.
  bool keep_here(const OperationStore& store, const OperationStore::Escape& escape) {
    return builder_->keep_here(store, escape);
  }

  // Whether there is one.
  explicit operator bool() const { return builder_.has_value(); }
  // Of what was measured until now, behind the record at which it was found, too.
  IterationTimes times() const { return times_.of_iteration(); }
  // As IterationProblemBuilder says.
  IterationProblem problem(const IterationTimes& times, Named named = Named::kEver) const {
    return builder_->build(times, named);
  }
  IterationProblem problem(const std::function<std::uint64_t(std::uint64_t)>& nanoseconds) const {
    return builder_->build(nanoseconds);
  }

 private:
  std::string name_;
  MeasuredTimes times_;
  std::optional<IterationProblemBuilder> builder_;
  std::uint64_t detected_at_ = 0;
};

}  // namespace memopt::planner
