// Whether every byte has one owner at a time, by operations and in simulated time. Shares nothing with the timeline's
// own sweep: it goes over the intervals of several iterations, one by one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "planner/swap/lives.h"
#include "planner/swap/model.h"
#include "planner/swap/timeline.h"

namespace memopt::swap {

// Two blocks that are resident on the same bytes at the same operation, in any of the rounds of offsets; nothing if
// there are none. The decisions must pass find_swap_fault and find_place_fault. O(r i log(r i)), r rounds.
std::optional<std::string> find_overlap(const Problem& problem, const Lives& lives, const Decisions& decisions);

struct Occupancy {
  std::optional<std::string> fault;
  std::uint64_t peak = 0;  // largest sum of resident blocks, copies under way included, of an iteration not at the ends
};

// After timeline.record(decisions), whose result `timing` is: from the begin of each interval to its end, copies
// included.
Occupancy watch(const Problem& problem, const Lives& lives, const Decisions& decisions, const Timeline& timeline,
                const Timing& timing);

}  // namespace memopt::swap
