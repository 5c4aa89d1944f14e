// Whether decisions hold for a problem, and what they cost. Every plan goes through here before it is believed, written
// or sent. docs/formats/plan-json.md, "Checks", has the rules.
//
// Thread-safe: nothing is kept.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "planner/swap/model/liveness.h"
#include "planner/swap/model/model.h"
#include "planner/swap/simulation/simulator.h"

namespace memopt::swap {

// What is wrong with the swaps themselves: of pinned blocks, outside lifetimes, over accesses, into each other, a host
// copy that is not current. Nothing if they can be carried out as far as operations tell. O(s log s + a), a accesses.
std::optional<std::string> find_swap_fault(const Problem& problem, const Liveness& liveness,
                                           const Decisions& decisions);

// What is wrong with the places: missing, misaligned, swapped blocks in the linear window, above the limit. The problem
// must have a layout. Overlaps are find_overlap's.
std::optional<std::string> find_place_fault(const Problem& problem, const Decisions& decisions);

// The largest offset + size; the decisions must have places.
std::uint64_t footprint_of(const Problem& problem, const Decisions& decisions);

// Without a layout: the least limit that is found under which they take no longer than within the problem's, to a
// 4096th. Where bytes are taken in order of issue that may be above what is resident at once. Within the problem's they
// must hold. Some ten simulations.
std::uint64_t least_limit(const Problem& problem, const Liveness& liveness, const Decisions& decisions);

struct Rules {
  bool no_early = true;  // a swap-in may not be issued before its bytes were given up: what a running program needs
};

struct Report {
  std::optional<std::string> fault;  // nothing else holds if there is one
  Timing timing;
  std::optional<std::uint64_t> footprint;                        // none without layout
  std::uint64_t peak_live = 0;                                   // without swaps, by operations
  std::uint64_t peak_resident = 0;                               // with swaps, in simulated time
  std::uint64_t bytes_out = 0, bytes_dropped = 0, bytes_in = 0;  // an iteration
  double out_utilisation = 0, in_utilisation = 0;                // of the copy engines, 0 to 1
  std::uint64_t returns_elsewhere = 0, remapped_chunks = 0;      // an iteration
};

Report verify(const Problem& problem, const Decisions& decisions, const Rules& rules = {});
// The same, of a problem whose liveness is known.
Report verify(const Problem& problem, const Liveness& liveness, const Decisions& decisions, const Rules& rules = {});

}  // namespace memopt::swap
