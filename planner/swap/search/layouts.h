// Internal to the room: layouts of choices, in as much of a search's time as each is worth. What holds is offered to
// the incumbent.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/layout/problem/limits.h"
#include "planner/swap/evaluation/copy_times.h"
#include "planner/swap/evaluation/eviction_candidates.h"
#include "planner/swap/model/liveness.h"
#include "planner/swap/model/model.h"
#include "planner/swap/search/finish.h"
#include "planner/swap/search/incumbent.h"
#include "planner/swap/search/search.h"

namespace memopt::swap {

// For one layout of many in a search with such limits; in steps where that has no time limit, so that results repeat.
layout::Limits brief_layout(const Problem& problem, const SearchLimits& limits);

// Not thread-safe. What it is given must outlive it.
class Layouts {
 public:
  Layouts(const Problem& problem, const Liveness& liveness, const EvictionCandidates& candidates,
          const SearchLimits& limits, Incumbent& incumbent);

  const layout::Limits& brief() const { return brief_; }
  // Where a layout that is above the limit may be one of many.
  const layout::Limits& longer() const { return longer_; }
  // Where it is all that is missing: with less, layouts may lie far above the load.
  const layout::Limits& thorough() const { return thorough_; }
  // Where a round of the search has found nothing else.
  const layout::Limits& last() const { return last_; }

  // Offers a choice with a layout of its own, and keeps the order in which its items lie. The footprint, if it can be
  // carried out (and is within the capacity).
  std::optional<std::uint64_t> lay_out(const Choice& choice, Items items, const layout::Limits& limits,
                                       std::optional<std::uint64_t> capacity = std::nullopt);
  // Of items, by their offsets in the last layout.
  const std::vector<std::uint32_t>& order() const { return order_; }

  // With places within the limit that have nothing to do with those that were searched for, if there are any: so that
  // nothing waits for its bytes, in a brief search; or else for as little as may be, by `limits`. False: there are
  // none.
  bool offer_within(const Choice& choice, const layout::Limits& limits);

 private:
  const Problem& problem_;
  const Liveness& liveness_;
  const EvictionCandidates& candidates_;
  const layout::Limits brief_, longer_, thorough_, last_;
  Incumbent& incumbent_;
  std::vector<std::uint32_t> order_;
};

}  // namespace memopt::swap
