// How good any plan could be: a linear programme in which bytes are a fluid. Needs CLP; a library of its own
// (memopt_swap_bounds), which the daemon does not link.
//
// Operations at times t, gaps g between consecutive accesses of a block of size s, taken cyclically; per gap and
// interval of time, o and i bytes go out and in, of what is away at the interval's end, x:
//   x_k = x_{k-1} + o_k - i_k,  x_{k-1} + o_k <= s,  x = 0 at the gap's end (unless the block is freed there),
//   sum over gaps of o_k <= out rate * (d_k + stall_k),  of i_k <= in rate * (d_k + stall_k),
//   load - sum over gaps of (x_{k-1} + o_k) <= M at each operation of k, and of x_{k-1} alone at its first, which may
//   wait for z_k more: of gaps that begin there, in the stall before (z_k <= out rate * stall_{k-1}, counted there).
// Least M with no stall; or, for a given M, the least sum of stalls. Latencies, the order of copies, places and chunks
// are left out: no plan is better, but for plans with dropped copies (`copy` false) of problems that do not allow them.
// Where they are allowed, what leaves behind a read does so at once and without a copy. To stay small, intervals are
// joined until there are `intervals` of them (a gap may then use the rates of all of each), and blocks below
// `least_bytes` count as away whenever they are not accessed. For iterations with tens of thousands of operations only
// the highest loads of each interval are looked at. All of it only makes the bound weaker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "planner/swap/model/liveness.h"
#include "planner/swap/model/model.h"

namespace memopt::swap {

struct BoundLimits {
  std::size_t intervals = 96;
  std::uint64_t least_bytes = 64 << 10;
  std::size_t columns = 25'000;  // with more, there are fewer intervals, but at least 24
  // Where loads at all operations would need more entries of the matrix, only the highest loads of each interval count.
  std::size_t entries = 1'000'000;
  double seconds = 60;  // of CLP for one bound, about
};

// Bytes. Nothing if CLP did not find an optimum in time.
std::optional<double> least_footprint(const Problem& problem, const Liveness& liveness, const BoundLimits& limits = {});

// Nanoseconds an iteration. Infinite if no plan fits into the limit; nothing if CLP did not find an optimum in time.
std::optional<double> least_added_time(const Problem& problem, const Liveness& liveness, std::uint64_t limit,
                                       const BoundLimits& limits = {});

}  // namespace memopt::swap
