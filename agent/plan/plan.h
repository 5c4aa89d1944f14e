// A plan as the agent believes it: copied out of the planner's bytes, every count, bound and promise checked
// (docs/formats/plan-wire.md). Whoever holds a Plan may index it without asking again; whether the program still does
// what was planned is the follower's business.
//
// Immutable once parsed; any thread may read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "shm/plan.h"

namespace memopt::agent {

struct Plan {
  struct Lane {
    std::uint32_t lane = 0;
    std::uint32_t match = 0;                      // 1 .. mallocs.size()
    std::span<const shm::PlannedMalloc> mallocs;  // into Plan::mallocs, never empty
    std::uint64_t rounds = 1;                     // iterations that it holds: so often the same mallocs
  };

  std::uint64_t generation = 0;
  std::uint64_t signature = 0;
  std::uint64_t operations = 0;
  std::uint64_t slab_bytes = 0;
  std::uint64_t peak_load = 0;
  std::uint64_t lower_bound = 0;
  std::uint64_t persistent_bytes = 0;
  std::uint64_t first_iteration = 0;
  std::uint64_t detected_at = 0;
  std::uint64_t chunk_bytes = 0;  // where there are swaps, whose blocks' places are multiples of it, or chunks
  std::uint64_t period_ns = 0;    // the same: of an iteration without waits, and how much longer it is expected to be
  std::uint64_t added_ns = 0;
  std::uint64_t otherwise_ns = 0;

  std::vector<Lane> lanes;                  // by lane number
  std::vector<shm::PlannedMalloc> mallocs;  // lane by lane
  std::vector<shm::Place> places;
  std::vector<std::uint32_t> pooled;      // mallocs with places, by these: those that share theirs side by side
  std::vector<std::uint64_t> persistent;  // block numbers, ascending, each once
  std::vector<shm::PlannedPages> pages;   // by address; none overlap. Only where there are swaps
  std::vector<shm::PlannedSwap> swaps;    // by block (mallocs first) and time; none overlap
  std::vector<shm::PlannedPoint> points;  // by rank, each once; of all operations that swaps name
  std::vector<shm::PlannedChunk> chunks;  // by offset; addresses and offsets occur once

  Plan() = default;
  Plan(const Plan&) = delete;  // lanes point into mallocs
  Plan& operator=(const Plan&) = delete;

  // Null if the plan has nothing for that lane.
  const Lane* find_lane(std::uint32_t lane) const noexcept;
  bool is_persistent(std::uint64_t block) const noexcept;
  // The places of a malloc of this plan, used in turn, perhaps by others too; empty: not planned.
  std::span<const shm::Place> places_of(const shm::PlannedMalloc& malloc) const noexcept {
    return std::span(places).subspan(malloc.first_place, malloc.places);
  }
  // The swaps of a malloc, or, with kSwapPages for `of_pages`, of an entry of pages; by time.
  std::span<const shm::PlannedSwap> swaps_of(std::uint64_t block, bool of_pages) const noexcept;
};

// The plan in `bytes`, which nobody may change meanwhile. Null if anything about it is not as docs/formats/plan-wire.md
// says; `*error` then names what, and what was expected. O(n log n) time, memory of a few times bytes.size().
std::unique_ptr<const Plan> parse_plan(std::span<const std::byte> bytes, std::string* error) noexcept;

}  // namespace memopt::agent
