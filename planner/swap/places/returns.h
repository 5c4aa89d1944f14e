// Which swapped blocks may return to another place than that where they were, so that each of their stays on the device
// is laid out by itself. The host maps their addresses to other bytes while they are away (Machine::remap_ns); where it
// has no time for that, they return to where they were.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/swap/model/liveness.h"
#include "planner/swap/model/model.h"
#include "planner/swap/simulation/simulator.h"

namespace memopt::swap {

enum class Returns {
  kWhereTheyWere,
  kElsewhere,  // where the problem's machine maps anew, and there is time
};

// A swap's time away, on any line: between its copy out and its copy in.
struct Absence {
  std::uint32_t swap = 0;
  double out_end = 0;
  double in_begin = 0;
};

// By swap: nothing waits for the host, if these return elsewhere, or any of them, in iterations of this length in which
// copies are at these times. Not of blocks that live for an iteration or longer. All false without Machine::remap_ns,
// or a layout. O(s log s), and s for each time that one is left out.
std::vector<bool> find_free_returns(const Problem& problem, const Liveness& liveness, const Decisions& decisions,
                                    std::vector<Absence> absences, double iteration);
// As far as can be said before there is a layout: each copy as soon as it may be, out, and as late, in.
std::vector<bool> find_free_returns(const Problem& problem, const Liveness& liveness, const Decisions& decisions);
// After simulator.record(decisions): as the copies went in this iteration.
std::vector<bool> find_free_returns(const Problem& problem, const Liveness& liveness, const Decisions& decisions,
                                    const Simulator& simulator, std::uint64_t iteration);

// Internal to the room: of the stays of one block, in time, which lie at one place: `groups`, by stay, beginning with
// 0. The number of them. `in_swaps`: what brought each in, its index, or below 0; the last stay of a persistent block
// goes on into its first.
std::uint32_t group_stays(const std::vector<bool>& free_returns, std::span<const std::int32_t> in_swaps,
                          std::vector<std::uint32_t>& groups);

}  // namespace memopt::swap
