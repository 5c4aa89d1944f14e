// The strategies of Chen, Xu, Zhang and Guestrin, "Training Deep Nets with Sublinear Memory Cost" (arXiv 1604.06174,
// 2016), on an iteration of launches, which has no layers. Forward are the launches before the turn, the operation at
// which the load peaks (forward.h); a launch takes the place of a layer, and the bytes of the blocks that it makes
// first, and that can be made again, that of its output.
//
// Where the paper does not say, or has a graph of layers in mind:
// - A block that a later segment uses before the turn is kept, all others of the segment are gone at the turn. When the
//   first of them is needed, all of the segment that are used from there on are made, in the order of their makers.
// - The last segment is kept: to drop it at the turn would be to make it again at once.
// - What the program has freed is made again where a replay reads it, and dropped when no replay of the segment does.
// - A launch's replays come before its outputs are allocated.
// - No value outlasts its last use, by the program or a replay, also where the program frees it later (remaking.h).
//   That is the paper's memory plan, which shares memory by liveness.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "planner/recompute/model/graph.h"
#include "planner/recompute/model/plan.h"

namespace memopt::recompute {

// With the paper's headings.
enum class Chen : std::uint8_t {
  kSqrt,       // sqrt(n) segments of as many launches each: "An O(sqrt(n)) memory cost algorithm"
  kBudget,     // a new segment when the bytes of one pass a budget, and a search for that: algorithm 3
  kRecursive,  // segments are made again by segments, g(n) = k + g(n / (k + 1)): "Recursion and subroutine"
  kDropCheap,  // what is cheap to make is dropped, all else is kept: "Drop the results of low cost operations"
};

inline constexpr Chen kChens[] = {Chen::kSqrt, Chen::kBudget, Chen::kRecursive, Chen::kDropCheap};

constexpr std::string_view name_of(Chen strategy) {
  switch (strategy) {
    case Chen::kSqrt:
      return "sqrt";
    case Chen::kBudget:
      return "budget";
    case Chen::kRecursive:
      return "recursive";
    case Chen::kDropCheap:
      return "drop-cheap";
  }
  return "";
}

// The least added time within `limit` bytes, over the strategy's own parameter, or nothing where none stays within it:
//
// kSqrt has none. kBudget: the budget. Beyond the paper, it is also tried with what earlier segments keep counted in,
// so that later segments are smaller; and as nothing of the last segment is made again, that is as long as the limit
// allows. The plan of kSqrt counts as well. kRecursive: k, 1 and on in steps of a quarter; a block that is
// used again outside of what is being made again is made once more for that. kDropCheap: the time per byte of a block's
// makers up to which it is dropped; it comes back just before its next use, and stays from then on, as in the paper's
// published code, which mirrors each operator once.
//
// Each plan that is tried takes O(n + a + r) for r replays; kBudget tries some hundreds. Where `ends` says so, it ends
// with the best until then. Thread-safe.
std::optional<Steps> chen(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph,
                          Chen strategy, std::uint64_t limit, const std::function<bool()>& ends = {});

// The plan of one segmentation: segments begin with the launches `starts`, ascending, numbered as in the graph, and one
// with the first. Those behind the turn don't count. Nothing where it would take absurdly many replays.
std::optional<Steps> keep_segments(const swap::Problem& problem, const Graph& graph,
                                   std::span<const std::uint32_t> starts);

}  // namespace memopt::recompute
