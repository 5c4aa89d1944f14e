// A planned iteration: lifetimes and where everything lies.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/iteration/lifetimes.h"
#include "planner/iteration/pools.h"
#include "planner/layout/problem/limits.h"
#include "planner/layout/problem/outcome.h"
#include "planner/layout/problem/problem.h"
#include "shm/plan.h"

namespace memopt::planner {

// Steps of the layout search (layout/problem/limits.h), counted, so that results repeat. Prompt: some tens of
// milliseconds where the program goes on meanwhile, and a better layout can follow. Patient: some hundreds, where it is
// waited for.
inline constexpr std::uint64_t kPromptWork = 150'000;
inline constexpr std::uint64_t kPatientWork = 250'000;

// A plan takes the place of another if it saves this part of the footprint: a switch has a price.
inline constexpr std::uint64_t kWorthwhilePart = 100;

struct PlanningOptions {
  layout::Limits limits{.work = kPatientWork};
  // Plans several iterations as one where blocks outlive an iteration: then their places are free between two turns,
  // and other blocks lie there. Only where all lanes can be told where they are: they keep in step.
  bool unroll = false;
  // Blocks that need several places share them with others (planner/iteration/pools.h). Else each of their mallocs has
  // places of its own, used in turn: what files and swaps want, which say where each block lies.
  bool pools = true;
  Unsteady unsteady = Unsteady::kPlaced;
  SlabRange slab = {};  // of the program's plans so far
  // A plan may leave out chunks that those keep for blocks that stay: the program takes them out of its slab.
  bool gives_up_chunks = true;
};

struct IterationPlan {
  Iteration iteration;
  IterationLifetimes lifetimes;
  std::uint32_t rounds = 1;    // iterations that are planned as one
  std::optional<Pools> pools;  // where places are shared: then there is one round, and no mallocs are joined
  layout::Problem problem;     // see layout_problem; with pools, pooled_problem
  layout::Outcome outcome;
  std::uint64_t detected_at = 0;  // sequence of the last record that was looked at
  std::uint64_t chunk_bytes = 0;  // of lifetimes.kept_chunks

  // Bytes, of places and persistent blocks.
  std::uint64_t footprint() const { return outcome.solution.height + lifetimes.persistent_bytes; }

  // By malloc of lanes[lane].operations: its offsets in the iterations, in turn. O(n) for the mallocs of all lanes.
  // Throws std::logic_error with pools, whose places are no malloc's own.
  std::vector<std::vector<std::uint64_t>> offsets(std::size_t lane) const;
};

// Of a place.
constexpr std::uint64_t place_bytes(std::uint64_t bytes) {
  return (bytes + shm::kPlanAlignment - 1) / shm::kPlanAlignment * shm::kPlanAlignment;
}

// The buffers of a layout problem, lane by lane, malloc by malloc. With one round: one buffer for each place, needed
// always where there are several. With more: one for each round. What lives across the boundary is needed at the
// iteration's end and at its beginning. Last come the blocks that stay in the slab, where they are.
void add_blocks_in_slab(const IterationLifetimes& lifetimes, std::uint64_t operations, layout::Problem& problem);
layout::Problem layout_problem(const IterationLifetimes& lifetimes, std::uint32_t rounds);

// Lifetimes and layout of a detected iteration. Nothing, with the reason in `fault`, if the layout is not valid (a
// mistake of ours, never sent).
std::optional<IterationPlan> plan_iteration(const OperationStore& store, const Iteration& iteration,
                                            const PlanningOptions& options, std::string& fault);

}  // namespace memopt::planner
