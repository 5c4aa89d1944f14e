// Internal to the room: the best plan so far, of all that were offered.
#pragma once

#include <cstdint>

#include "planner/layout/search.h"
#include "planner/swap/lives.h"
#include "planner/swap/model.h"
#include "planner/swap/search/search.h"

namespace memopt::swap {

class Offers {
 public:
  // `layout`: for each layout of the plans that it makes itself. Problem and lives must outlive it.
  Offers(const Problem& problem, const Lives& lives, Objective objective, const layout::Limits& layout);

  // Keeps the decisions if they hold and are better: within the limit first; then less added time, if that is the
  // objective; then a smaller footprint. `height`: what counts as the footprint where there is no layout.
  void take(Decisions decisions, std::uint64_t height);

  // The plan without swaps, laid out by the layout planner: what any other has to be better than.
  void unswapped();
  // AutoSwap's plans: the last resort where nothing was found within the limit.
  void auto_swap();

  const SearchPlan& plan() const { return plan_; }
  // No plan can be better, as the added time is what counts.
  bool is_done() const { return timed_ && plan_.feasible && plan_.added_ns == 0; }

 private:
  bool is_better(bool feasible, std::uint64_t footprint, double added_ns) const;

  const Problem& problem_;
  const Lives& lives_;
  bool timed_;
  layout::Limits layout_;
  SearchPlan plan_;
  bool has_ = false;
};

}  // namespace memopt::swap
