// Internal to the room: which blocks should be away, one after the other, those first that take most from where the
// load is high for the time that their copies take. The load decides alone; nothing is placed. Fast: what the search
// begins with where there are more blocks than it could try.
//
// After the greedy selection by SWDOA of Zhang et al. 2019 (IV-B), but with all evictions, with copies that take bytes
// and engines, and with high loads weighed by a power instead of the highest alone.
#pragma once

#include <functional>

#include "planner/swap/evaluation/evaluator.h"

namespace memopt::swap {

// `start` with more of its evictions used. No operation waits. Where `ends` says so, those that were found until then.
Choice greedy(const Problem& problem, const Liveness& liveness, const EvictionCandidates& candidates,
              const Choice& start, const std::function<bool()>& ends = {});

}  // namespace memopt::swap
