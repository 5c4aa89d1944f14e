// Watches the operations of one program and decides when there is something to plan. Program (planner/program.h) is
// this behind its contract; tools that want more than the bytes of a plan use it directly.
//
// Not thread-safe. Deterministic.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
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

  // The agent keeps chunks of so many bytes for plans; 0: none. Plans of before are as they were.
  void keep_chunks_of(std::uint64_t bytes) { options_.planning.slab.chunk_bytes = bytes; }

  // Of plans from now on.
  void place(Unsteady unsteady) { options_.planning.unsteady = unsteady; }

  void add(std::uint32_t lane, const shm::RecordView& record);
  void add(std::uint32_t lane, const shm::RecordRun& run);
  void add_gap();

  // Looks for an iteration; true if there is a new plan, in plan().
  bool check();
  // The program did not take the plan: its footprint is by `excess` bytes larger than what would have done, 0 if that
  // is not the reason. It is still the program's iteration: what is looked for is a layout that would do.
  void refused(std::uint64_t excess);

  // Its bytes would be more than a plan may have, whatever the layout: other iterations are looked for.
  void cannot_be_sent();

  // A better layout of the last plan has been found: it is in plan(), as a plan of its own. It saves at least a
  // hundredth of what the program holds, or is small enough to be taken where that one was refused.
  bool improved();

  // The program was sent a plan of the last iteration under this number: deviations from the plan of that number are
  // counted.
  void sent(std::uint64_t generation);
  // The program follows the plan that it was sent last.
  void adopted() { given_up_.clear(); }
  // The program has followed the plan that it was sent last, did not keep to it, and has left it for good. What is as
  // long, as batches of other sizes are, has to go on for some time from now on before it is planned.
  void not_kept();
  // What plans are made for has changed: there is none until an iteration is found, which may be that of the last one.
  void plan_again();
  // Another plan takes the place of the last one: no better layout of that is looked for.
  void settle() { improvement_.reset(); }

  const std::string& note() const { return note_; }
  const OperationStore& store() const { return store_; }
  // The last one that was found. Positions in the store hold until the next record is added.
  const std::optional<IterationPlan>& plan() const { return plan_; }
  // Numbers of its persistent blocks; they hold for ever.
  const std::vector<std::uint64_t>& persistent() const { return persistent_; }

 private:
  void begin_anew();
  void say(std::uint64_t about, std::string text);
  bool still_planned();
  void follow(const Iteration& iteration);
  void forget_plan();
  bool has_unsteady(const Iteration& found) const;
  bool is_doubtful(const Iteration& found) const;
  bool is_part_of_planned(const Iteration& found) const;
  bool is_wanted(const Iteration& found);
  bool is_in_the_way(const Iteration& found) const;
  std::uint32_t next_horizon();
  bool adopt(const Iteration& iteration);
  std::uint64_t wanted() const;
  void improve();
  bool is_refused_again(const IterationPlan& next) const;
  bool keeps_places(IterationPlan& next) const;

  Options options_;
  OperationStore store_;
  std::optional<IterationPlan> plan_;
  std::unordered_map<std::uint64_t, std::uint32_t> planned_;  // how often, by signature
  std::vector<std::uint64_t> persistent_;                     // numbers of the last plan's persistent blocks

  // The last plan, as far as it decides what to look for.
  std::uint64_t sent_ = 0;  // its number; 0: it was not sent
  std::uint32_t lane_number_ = 0;
  std::uint32_t period_ = 0;  // 0: there is none, or it can't be sent
  bool refused_ = false;
  std::uint64_t would_do_ = 0;  // refused: the largest footprint that would have been taken
  std::uint32_t deviations_ = 0;
  std::vector<KeptChunk> given_up_;  // that the program has in its slab until it follows a plan without them
  bool left_ = false;                // since it was looked whether what stays is in the way of its places

  std::uint64_t signature_ = 0;
  std::uint64_t shortest_ = 0;  // operations, of the iterations that have been planned one after the other

  // Plans that the program was not kept to, and the operations of the last one's iteration.
  std::uint32_t not_kept_ = 0;
  std::uint64_t not_kept_operations_ = 0;

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
