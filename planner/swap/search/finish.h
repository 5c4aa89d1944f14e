// Internal to the room: from a choice to decisions: swaps with the operations that issue them, and places for all
// blocks, those that took no part in the search included.
#pragma once

#include <optional>

#include "planner/layout/problem/limits.h"
#include "planner/swap/evaluation/copy_times.h"
#include "planner/swap/evaluation/eviction_candidates.h"

namespace memopt::swap {

enum class Items {
  kFirstFit,  // stay where the choice's order puts them
  kAnywhere,  // are laid out with the others, whatever their order
  kThorough,  // the same, by all that the layout planner has: as long as `limits` allow, if no bound is met before
};

// A choice's swaps, and no places. Nothing if it can't be carried out.
std::optional<Decisions> swaps_alone(const Problem& problem, const Liveness& liveness,
                                     const EvictionCandidates& candidates, const Choice& choice);

// Nothing if the choice can't be carried out, or no layout was found within `limits`. `capacity`: a layout of so many
// bytes is good enough, and one of more is none.
std::optional<Decisions> finish(const Problem& problem, const Liveness& liveness, const EvictionCandidates& candidates,
                                const Choice& choice, Items items, const layout::Limits& limits,
                                std::optional<std::uint64_t> capacity = std::nullopt);

}  // namespace memopt::swap
