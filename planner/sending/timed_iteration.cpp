#include "planner/sending/timed_iteration.h"

namespace memopt::planner {

bool TimedIteration::look(const IterationPlanner& planner) {
  if (!planner.plan()) return false;
  const IterationPlan& plan = *planner.plan();
  if (builder_ && plan.detected_at == detected_at_) {
    times_.follow(planner.store());
    return false;
  }
  detected_at_ = plan.detected_at;
  // A file says where each block lies.
  std::string fault;
  std::optional<IterationPlan> separate;
  if (plan.pools) separate = plan_iteration(planner.store(), plan.iteration, {.unroll = true, .pools = false}, fault);
  builder_.emplace(planner.store(), separate ? *separate : plan, name_);
  times_.begin(planner.store(), plan);
  return true;
}

}  // namespace memopt::planner
