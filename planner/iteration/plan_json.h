// Writes a planned iteration as JSON of the format memopt-plan-1, for checkers that share nothing with the planner.
// Blocks that a launch names with others are named again at its end.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "planner/iteration/iteration_plan.h"
#include "planner/iteration/measured_times.h"
#include "planner/iteration/operation_store.h"

namespace memopt::planner {

// What a file says of a planned iteration. Made while the store is as it was when the plan was found; written at any
// time later, when more may have been measured.
class PlanJson {
 public:
  // Persistent blocks are put behind the slab, one after the other. `name` in UTF-8.
  PlanJson(const OperationStore& store, const IterationPlan& plan, std::string name);

  // Both return the rank (planner/iteration/lifetimes.h) of each of the file's operations. One that does nothing while
  // the device idles has that of the operation before.

  // Times are those of the records from the boundary on, their ticks made nanoseconds by `nanoseconds`, which must not
  // fall: the host's, as of its calls. How long a launch takes is not known, so it counts until the next operation.
  std::vector<std::uint64_t> write(const std::function<std::uint64_t(std::uint64_t)>& nanoseconds,
                                   std::ostream& out) const;

  // Times are those of the device: one operation after the other, each as long as was measured, mallocs and frees none.
  // Where the device idles, an operation of its own does nothing. `times` has as many operations as the iteration.
  std::vector<std::uint64_t> write(const IterationTimes& times, std::ostream& out) const;

 private:
  struct Item {
    char kind;
    bool access;  // of a launch, which others may stand beside
    std::int64_t block;
    std::optional<std::int64_t> age;
  };
  struct Step {
    std::uint64_t ticks;
    std::uint32_t items;  // behind those of the step before
  };
  class Lines;

  // `each_step` says when each operation happens, and at last, of the one behind them, how long the iteration takes.
  template <typename EachStep>
  std::vector<std::uint64_t> write_with(std::uint64_t begin, std::ostream& out, EachStep&& each_step) const;

  std::string name_;
  std::vector<Step> steps_;
  std::vector<Item> items_;
  std::uint64_t unwrapped_ = 0;  // steps that were seen one iteration before the others
  std::uint64_t begin_ticks_ = 0, middle_ticks_ = 0, first_ticks_ = 0, last_ticks_ = 0;
  std::string blocks_;
};

}  // namespace memopt::planner
