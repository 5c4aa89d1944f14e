// Whether every byte has one owner at a time, by operations and in simulated time. Shares nothing with the simulator's
// own sweep: it goes over the intervals of several iterations, one by one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "planner/swap/model/liveness.h"
#include "planner/swap/model/model.h"
#include "planner/swap/simulation/simulator.h"

namespace memopt::swap {

// Two blocks that are resident on the same bytes at the same operation, in any of the rounds of offsets; nothing if
// there are none. The decisions must pass find_swap_fault and find_place_fault. O(r i log(r i)), r rounds.
std::optional<std::string> find_overlap(const Problem& problem, const Liveness& liveness, const Decisions& decisions);

struct Occupancy {
  std::optional<std::string> fault;
  std::uint64_t peak = 0;  // largest sum of resident blocks, copies under way included, of an iteration not at the ends
};

// After simulator.record(decisions), whose result `timing` is: from the begin of each interval to its end, copies
// included.
Occupancy find_occupancy(const Problem& problem, const Liveness& liveness, const Decisions& decisions,
                         const Simulator& simulator, const Timing& timing);

}  // namespace memopt::swap
