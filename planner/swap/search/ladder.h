// Searches that are counted, not timed, of which by construction, for the same seed and number of threads,
// - more attempts never give a worse plan,
// - a wider limit never gives a slower one,
// - no limit is said to have no plan where a narrower one is given one, or is above the least that was named.
//
// One search by itself (search.h) keeps none of this: how it cools, and what it looks for, depends on its limit and on
// all that it may spend. So it is not asked for the limit. Limits that the problem alone decides, parts of its peak
// load, are the steps of a ladder. A plan within a limit is the best of what searches within all steps up to it come to
// by the way, on whichever side of their own step; each of them is run in rounds, each round with four times the
// attempts of the one before, until that would be more than was asked for. A wider limit, or more attempts, so adds
// searches and takes none away, and the best of more plans is no worse.
//
// The price: a search within a limit takes as long as all steps up to it together; and a plan may be for a limit
// that is narrower by a step. What is asked for in seconds is better served by search().
#pragma once

#include <cstdint>

#include "planner/swap/model/liveness.h"
#include "planner/swap/model/model.h"
#include "planner/swap/search/search.h"

namespace memopt::swap {

// Steps of the ladder: so many parts of the peak load.
inline constexpr std::uint64_t kLimitSteps = 32;
// Attempts of the first round that has any; each further one has four times as many. With fewer, plans are greedy ones
// and coverings.
inline constexpr std::uint64_t kFirstRoundAttempts = 64;

// `steps`: at least 1; of searches that are compared, the same. `limits.attempts`: of each thread in the longest round
// of each step, at most; not unlimited. `limits.time` is not looked at. For kTime the problem has a layout: without
// one, a plan may take longer within more bytes (Graham's anomalies), and what is best within a limit is what the
// simulator says there.
SearchPlan search_by_steps(const Problem& problem, const Liveness& liveness, Objective objective,
                           const SearchLimits& limits, std::uint64_t steps = kLimitSteps);

}  // namespace memopt::swap
