// Internal to the room: the incumbent, the best plan of all that were offered so far.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "planner/layout/problem/limits.h"
#include "planner/swap/model/liveness.h"
#include "planner/swap/model/model.h"
#include "planner/swap/search/search.h"

namespace memopt::swap {

class Incumbent {
 public:
  // `layout`: for each layout of the plans that it makes itself. `on_plan`: told of all that hold. Problem and
  // liveness must outlive it.
  Incumbent(const Problem& problem, const Liveness& liveness, Objective objective, const layout::Limits& layout,
            OnPlan on_plan = {});

  // Keeps the decisions if they hold and are better: within the limit first; then less added time, if that is the
  // objective; then a smaller footprint. `height`: what counts as the footprint where there is no layout. False: they
  // do not hold.
  bool offer(Decisions decisions, std::uint64_t height);
  // Swaps alone: their places are those of a layout of what the simulator has on the device, within the capacity if
  // there is one. False: no such layout was found, or they do not hold.
  bool offer_laid_out(Decisions swaps, const layout::Limits& limits,
                      std::optional<std::uint64_t> capacity = std::nullopt);

  // The plan without swaps, laid out by the layout planner: what any other has to be better than.
  void unswapped();
  // The plan so far laid out again, as it was simulated (places/timeline.h). True: it is better by a hundredth of the
  // time that it adds, or of its footprint.
  bool lay_out_in_time(const layout::Limits& limits);
  // AutoSwap's plans: the last resort where nothing was found within the limit.
  void auto_swap();

  const SearchPlan& plan() const { return plan_; }
  bool has_plan() const { return has_; }
  // Nanoseconds, of the plan; infinite if it is not within the limit.
  double added_within() const { return plan_.feasible ? plan_.added_ns : std::numeric_limits<double>::infinity(); }
  // No plan can be better, as the added time is what counts.
  bool is_done() const { return timed_ && plan_.feasible && plan_.added_ns == 0; }

 private:
  bool is_better(bool feasible, std::uint64_t footprint, double added_ns) const;

  const Problem& problem_;
  const Liveness& liveness_;
  bool timed_;
  layout::Limits layout_;
  OnPlan on_plan_;
  SearchPlan plan_;
  bool has_ = false;
};

}  // namespace memopt::swap
