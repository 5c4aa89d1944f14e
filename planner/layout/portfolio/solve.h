// The layout planner: a portfolio of solvers, anytime. The result only improves with more time, and the search ends
// when the lower bound is met (or the capacity, if there is one).
//
// Without a capacity it is never worse than what Sekiyama's offset lines and SmartPool's best and first fit find, where
// the limits leave room for them: n * (200 + n / 256) steps for n buffers, or the time that these take (some
// milliseconds for 1,000 buffers, some seconds for 60,000, since SmartPool is quadratic and comes later where that is
// much). With any work at all there is one
// skyline; where not even that could be finished in time, online best fit, which is done whatever the time: about a
// second later than asked where there are a million buffers.
#pragma once

#include <cstdint>
#include <string_view>

#include "planner/layout/problem/limits.h"
#include "planner/layout/problem/outcome.h"
#include "planner/layout/problem/problem.h"

namespace memopt::layout {

// The solver's name in the outcome where the time was up before a skyline was done.
inline constexpr std::string_view kFirstLayout = "online-best-fit";

// No layout is smaller: the bound that solvers begin with. O(n log n).
std::uint64_t bound_of(const Problem& problem);

Outcome solve(const Problem& problem, const Limits& limits, const OnBetter& on_better = {});

// The same without exact search: skylines, SmartPool and wheels only.
Outcome solve_by_heuristics(const Problem& problem, const Limits& limits, const OnBetter& on_better = {});

// A warm start from the solution of a similar problem: `previous[i]` is the offset that buffer i had, or kAnywhere for
// a new one. Buffers keep their offsets as long as that costs little height: a 4096th more than what is kept, or a
// 1024th more than the lower bound. Of those that conflict now, because one has grown or lives longer, as few as
// possible are placed again; where no hole is large enough for them, others move up. If that ends more than a 128th
// above what is kept (or above the capacity), the buffers around the highest ones are placed again, too, for some
// milliseconds; then all, for the time of a few skylines. O(n log n) and a millisecond for 5,000 buffers where few
// change; a caller with more time can look for a lower height with `solve`. Limits as for `solve`.
Outcome solve_again(const Problem& problem, std::span<const std::uint64_t> previous, const Limits& limits);

}  // namespace memopt::layout
