// The problem that planner/swap solves for an iteration that planner/iteration found: its operations one by one, with
// times, and where its blocks lie without swaps. A memopt-plan-1 file of an iteration is written from the same structs
// (planner/swap/files/plan_file.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "planner/iteration/iteration_plan.h"
#include "planner/iteration/kept_chunks.h"
#include "planner/iteration/measured_times.h"
#include "planner/iteration/operation_store.h"
#include "planner/swap/model/model.h"

namespace memopt::planner {

// What an operation accesses is what it has named in the last repeat or in one of the eight before it (Named::kEver):
// stale words of a launch's parameters name other blocks now and then, and a block that is named while it is away comes
// back at once. Or what it has named in at least half of them (kOften), where all of that has no room: then it is left
// to come back.
//
// Operations are as in a file: a launch that names several blocks is one access of each, the last one having all its
// time, and the others once more at its end; `join_launches` (swap_plan.h) makes them one. The machine is the first of
// planner/swap/model/machines.h. What swaps can't be planned for, as blocks of more than 7 iterations, is refused by
// swap::find_liveness.
enum class Named { kEver, kOften };

struct IterationProblem {
  // Of an operation of the program.
  struct Origin {
    std::uint64_t sequence;  // of its record
    bool elsewhere;          // it has named what is no block of the problem, and not among its accesses
  };

  swap::Problem problem;
  std::vector<swap::Place> places;   // of the layout, by block; persistent blocks behind the slab, one after the other
  std::vector<std::uint64_t> ranks;  // of the problem's operations (planner/iteration/lifetimes.h)
  std::vector<Origin> origins;       // by rank
  // Where the persistent blocks lie, in their order; address 0: in the slab of the program's plans.
  std::vector<StayingBlock> persistent;
  std::vector<std::uint64_t> persistent_numbers;  // the program's own, in their order
};

// The mallocs of an iteration by where they are in it, whichever repeat of it an operation belongs to.
class IterationMallocs {
 public:
  struct Malloc {
    std::uint32_t block;  // of the problem
    std::uint64_t token;  // of the operation
  };

  IterationMallocs(const OperationStore& store, const IterationPlan& plan);

  const Iteration& iteration() const { return iteration_; }
  std::uint32_t count() const { return static_cast<std::uint32_t>(mallocs_.size()); }
  // Of the lane of the store, at the place where that operation of it is. Null: there is none. O(1).
  const Malloc* find(std::uint32_t lane, std::uint32_t lane_index) const;

 private:
  static std::uint64_t key(const LanePeriod& lane, std::int64_t lane_index);

  Iteration iteration_;
  std::unordered_map<std::uint64_t, Malloc> mallocs_;
};

// Of the blocks that one launch accesses: the most in all.
std::uint64_t largest_launch(const IterationProblem& iteration);

// Made while the store is as it was when the plan was found; used at any time later, when more may have been measured.
// Memory: that of the operations.
class IterationProblemBuilder {
 public:
  // `name` in UTF-8.
  IterationProblemBuilder(const OperationStore& store, const IterationPlan& plan, const std::string& name);

  // The block's address is stored where its uses are not seen: the problem's block that it is an instance of is pinned
  // from now on. True: it was not. `store`: the one of before, later.
  bool keep_here(const OperationStore& store, const OperationStore::Escape& escape);

  // In both an operation that does nothing while the device idles has the rank of the operation before. O(n).

  // Times are those of the records from the boundary on, their ticks made nanoseconds by `nanoseconds`, which must not
  // fall: the host's, as of its calls. How long a launch takes is not known, so it counts until the next operation.
  IterationProblem build(const std::function<std::uint64_t(std::uint64_t)>& nanoseconds,
                         Named named = Named::kEver) const;

  // Times are those of the device: one operation after the other, each as long as was measured, mallocs and frees none.
  // Where the device idles, an operation of its own does nothing. `times` has as many operations as the iteration.
  IterationProblem build(const IterationTimes& times, Named named = Named::kEver) const;

 private:
  struct Step {
    std::uint64_t ticks;
    std::uint32_t operations;  // of operations_, behind those of the step before
    IterationProblem::Origin origin;
  };
  class Operations;

  // `each_step` says when each operation happens, and at last, of the one behind them, how long the iteration takes.
  template <typename EachStep>
  IterationProblem build_with(Named named, std::uint64_t begin, EachStep&& each_step) const;

  IterationMallocs mallocs_;
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;  // of persistent blocks -> of the problem
  swap::Problem problem_;                                     // without operations and period
  std::vector<swap::Place> places_;
  std::vector<StayingBlock> persistent_;
  std::vector<std::uint64_t> persistent_numbers_;
  std::vector<Step> steps_;
  std::vector<swap::Operation> operations_;  // of all steps, without times
  std::vector<bool> rare_;                   // of these: accesses in fewer than half of the repeats
  std::uint64_t unwrapped_ = 0;              // steps that were seen one iteration before the others
  std::uint64_t begin_ticks_ = 0, middle_ticks_ = 0, first_ticks_ = 0, last_ticks_ = 0;
};

}  // namespace memopt::planner
