// The iteration with its steps, as one of the swap planner's: a drop is a free, a replay an allocation and its launch's
// operations once more. docs/formats/plan-json.md, "With swaps", has the rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/recompute/model/graph.h"
#include "planner/recompute/model/plan.h"
#include "planner/swap/model/model.h"

namespace memopt::recompute {

struct Extended {
  // Its first blocks are those of the iteration, in their first lives; those behind are their later lives, and what
  // replays write besides, which is pinned. Without a layout, unless the caller says otherwise.
  swap::Problem problem;
  std::vector<std::uint32_t> block_of;  // by block: the one of the iteration whose life it is
  std::vector<std::uint32_t> made_by;   // by block behind those of the iteration, ascending: the step that allocates it

  // Where they are: by operation of the iteration, and by step; of what was left out, where it would have been.
  std::vector<std::uint32_t> operation_at, step_at;

  bool is_besides(std::uint32_t block) const { return block_of[block] != block && problem.blocks[block].pinned; }
  // Of the iteration.
  std::size_t blocks() const { return block_of.size() - made_by.size(); }
};

// The steps must hold (find_cost). O(n + a + s).
Extended extend(const swap::Problem& problem, const Graph& graph, const Steps& steps);

// No swap is within a launch that touches its block: those that are begin behind it, or end before it.
void keep_launches_whole(const swap::Problem& problem, std::vector<swap::Swap>& swaps);
// What is wrong with that, if anything.
std::optional<std::string> find_launch_fault(const swap::Problem& problem, const std::vector<swap::Swap>& swaps);

// Swaps name blocks of the iteration in a file, and lives of them in the iteration with its steps. Throws swap::Invalid
// where one is of a block that there is not, or that has no bytes, or of no life of it.
std::vector<swap::Swap> swaps_of_lives(const Extended& extended, std::vector<swap::Swap> swaps);
std::vector<swap::Swap> swaps_of_blocks(const Extended& extended, std::vector<swap::Swap> swaps);

// Where a replay's allocation for a block lies.
struct StepPlace {
  std::uint32_t step = 0, block = 0;
  swap::Place place;

  friend bool operator==(const StepPlace&, const StepPlace&) = default;
};

// A file has the places of first lives at its blocks, and all others at the steps that allocate them. Throws
// swap::Invalid where a step allocates something that has no place, or has places of anything else.
std::vector<swap::Place> places_of_lives(const Extended& extended, std::vector<swap::Place> of_blocks,
                                         const std::vector<StepPlace>& of_steps);
// In order of steps. `places`: of lives.
std::vector<StepPlace> places_of_steps(const Extended& extended, const std::vector<swap::Place>& places);

}  // namespace memopt::recompute
