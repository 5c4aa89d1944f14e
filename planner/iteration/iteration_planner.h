// Watches the operations of one program and decides when there is something to plan. Program (planner/program.h) is
// this behind its contract; tools that want more than the bytes of a plan use it directly.
//
// Not thread-safe. Deterministic.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "planner/iteration/improvement.h"
#include "planner/iteration/iteration_plan.h"
#include "planner/iteration/operation_store.h"

namespace memopt::planner {

class IterationPlanner {
 public:
  struct Options {
    std::size_t max_operations = std::size_t{4} << 20;
    PlanningOptions planning;
    // A layout that is not proven to be the best is improved on while the program runs. What comes of it depends on
    // time.
    bool improve = false;
  };
  IterationPlanner();
  explicit IterationPlanner(const Options& options);

  void add(std::uint32_t lane, const shm::RecordView& record);
  void add(std::uint32_t lane, const shm::RecordRun& run);
  void add_gap();

  // Looks for an iteration; true if there is a new plan, in plan().
  bool check();
  void refused();

  // A better layout of the last plan has been found: it is in plan(), as a plan of its own. It saves at least a
  // hundredth of what the program holds.
  bool improved();

  // The number under which the program was sent its plan, where that is not how many were found: deviations from the
  // plan of that number are counted.
  void renumber(std::uint64_t generation) { generation_ = generation; }
  // Another plan takes the place of the last one: no better layout of that is looked for.
  void settle() { improvement_.reset(); }

  const std::string& note() const { return note_; }
  const OperationStore& store() const { return store_; }
  // The last one that was found. Positions in the store hold until the next record is added.
  const std::optional<IterationPlan>& plan() const { return plan_; }
  // Numbers of its persistent blocks; they hold for ever.
  const std::vector<std::uint64_t>& persistent() const { return persistent_; }
  std::uint64_t generation() const { return generation_; }

 private:
  void begin_anew();
  void say(std::uint64_t about, std::string text);
  bool still_planned();
  void follow(const Iteration& iteration);
  std::uint32_t next_horizon();
  bool adopt(const Iteration& iteration);
  void improve();
  bool keeps_places(IterationPlan& next) const;

  Options options_;
  OperationStore store_;
  std::optional<IterationPlan> plan_;
  std::unordered_set<std::uint64_t> planned_;  // signatures
  std::vector<std::uint64_t> persistent_;      // numbers of the last plan's persistent blocks

  // The last plan, as far as it decides what to look for.
  std::uint64_t generation_ = 0;
  std::uint32_t lane_number_ = 0;
  std::uint32_t period_ = 0;  // 0: there is none, or it was refused
  std::uint32_t deviations_ = 0;

  std::uint64_t signature_ = 0;

  // How far the main lane has followed the planned iteration, so that a check looks at what is new only.
  std::uint64_t looked_at_ = 0;  // of its operations since the beginning
  bool lost_ = false;            // it left it, and was not seen to be back

  std::uint64_t checks_ = 0;
  std::uint32_t missed_period_ = 0;
  std::uint64_t told_at_ = 0;
  std::uint64_t note_about_ = 0;
  std::string note_;

  std::unique_ptr<Improvement> improvement_;
};

}  // namespace memopt::planner
