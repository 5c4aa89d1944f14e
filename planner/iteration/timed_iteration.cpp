#include "planner/iteration/timed_iteration.h"

namespace memopt::planner {

bool TimedIteration::look(const IterationPlanner& planner) {
  if (!planner.plan()) return false;
  const IterationPlan& plan = *planner.plan();
  if (json_ && plan.detected_at == detected_at_) {
    times_.follow(planner.store());
    return false;
  }
  detected_at_ = plan.detected_at;
  json_.emplace(planner.store(), plan, name_);
  times_.begin(planner.store(), plan);
  return true;
}

}  // namespace memopt::planner
