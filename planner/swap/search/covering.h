// Internal to the room: swaps after which no operation finds more than so much on the device, whatever they cost. The
// search has something to hold within a limit then, where waits are many: by annealing alone such plans are found late,
// or never, as each of very many evictions is of no use without the others.
//
// Greedy weighted covering (Chvátal, Math. Oper. Res. 4, 1979): the eviction that takes most of what is too much, for
// the time that its copies take and lack, one after the other; then those are left out, the last one first, without
// which it holds, too. By operations alone: copies under way are what the simulator makes operations wait for.
#pragma once

#include <cstdint>
#include <optional>

#include "planner/layout/problem/limits.h"
#include "planner/swap/model/liveness.h"
#include "planner/swap/model/model.h"

namespace memopt::swap {

// Each copy in is issued right before it is needed; nothing is placed. Nothing where some operation needs more at
// once, or all that could leave is too small. O(s (n + e)) for s swaps of e candidates among n operations.
std::optional<Decisions> cover_load(const Problem& problem, const Liveness& liveness, std::uint64_t goal);

}  // namespace memopt::swap
