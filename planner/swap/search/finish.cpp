#include "planner/swap/search/finish.h"

#include <algorithm>

#include "planner/layout/portfolio/solve.h"
#include "planner/swap/evaluation/evaluator.h"
#include "planner/swap/simulation/verify.h"

namespace memopt::swap {
namespace {

std::vector<Swap> swaps_of(const Problem& problem, const Liveness& liveness, const EvictionCandidates& candidates,
                           const Choice& choice, const Evaluator& evaluator) {
  std::vector<std::uint32_t> away;
  for (std::uint32_t a = 0; a < choice.evicted.size(); ++a) {
    if (choice.evicted[a] != 0) away.push_back(a);
  }
  std::sort(away.begin(), away.end(),
            [&](std::uint32_t a, std::uint32_t b) { return evaluator.times().goes_before(a, b); });
  std::vector<Swap> swaps;
  for (const std::uint32_t a : away) {
    const Eviction& eviction = candidates.evictions[a];
    Swap swap;
    swap.block = candidates.items[eviction.item].block;
    swap.out_after = choice.out_after[a];
    swap.copy = !evaluator.times().is_clean(a);
    if (eviction.returns()) {
      swap.in_after = evaluator.clock().last_ended(evaluator.times().in_begin(a), swap.out_after, eviction.needed);
      swap.need = eviction.needed;
    }
    if (problem.blocks[swap.block].persistent && swap.out_after >= liveness.operations) {
      swap.out_after -= liveness.operations;
      swap.in_after -= liveness.operations;
      swap.need -= liveness.operations;
    }
    swaps.push_back(swap);
  }
  return swaps;
}

// The items where they are, the others where there is room.
std::optional<std::vector<Place>> places_of(const Problem& problem, const Liveness& liveness,
                                            const EvictionCandidates& candidates, const Evaluator& evaluator,
                                            Items items, const layout::Limits& limits,
                                            std::optional<std::uint64_t> capacity) {
  std::vector<Place> places(problem.blocks.size());
  std::vector<std::uint32_t> item_of(problem.blocks.size(), Evaluator::kGround);
  for (std::uint32_t i = 0; i < candidates.items.size(); ++i) item_of[candidates.items[i].block] = i;
  EvictionCandidates rest;
  for (std::uint32_t b = 0; b < problem.blocks.size(); ++b) {
    if (item_of[b] == Evaluator::kGround) rest.items.push_back({b, 0, 0});
  }
  const Clock clock(problem);
  const ResidencyIntervals intervals(problem, liveness, rest, clock);
  layout::Problem layout;
  std::vector<std::uint32_t> owner;
  const auto add = [&](std::uint32_t block, const ItemResidency& residency, std::uint64_t alignment,
                       std::uint64_t fixed) {
    std::vector<layout::Interval> when;
    for (const PointInterval& one : residency.intervals) {
      if (!when.empty() && when.back().end == one.begin) {
        when.back().end = one.end;
      } else {
        when.push_back({one.begin, one.end});
      }
    }
    layout.add(problem.blocks[block].bytes, when, alignment, fixed);
    owner.push_back(block);
  };
  for (std::uint32_t i = 0; i < candidates.items.size(); ++i) {
    const ItemResidency& residency = evaluator.residency(i);
    for (std::uint32_t turn = 0; turn < residency.places; ++turn) {
      const std::uint32_t block = candidates.items[i].block;
      add(block, residency, alignment_of(problem, block, residency.swapped),
          items == Items::kFirstFit ? evaluator.places(i)[turn] : layout::kAnywhere);
    }
    const std::uint32_t block = candidates.items[i].block;
    places[block].own = residency.swapped || problem.blocks[block].whole_chunks;
  }
  for (std::uint32_t i = 0; i < rest.items.size(); ++i) {
    const std::uint32_t block = rest.items[i].block;
    if (problem.blocks[block].bytes == 0) {
      places[block].offsets.push_back(0);
      continue;
    }
    const ItemResidency residency = intervals.whole(i);
    for (std::uint32_t turn = 0; turn < residency.places; ++turn)
      add(block, residency, alignment_of(problem, block, false), layout::kAnywhere);
    places[block].own = problem.blocks[block].whole_chunks;
  }
  if (layout.buffers.empty()) return places;
  layout.capacity = capacity;
  const layout::Outcome outcome =
      items == Items::kThorough ? layout::solve(layout, limits) : layout::solve_by_heuristics(layout, limits);
  if (!outcome.found(layout.buffers.size())) return std::nullopt;
  for (std::size_t k = 0; k < owner.size(); ++k) places[owner[k]].offsets.push_back(outcome.solution.offsets[k]);
  return places;
}

// False if the choice can't be carried out as it is.
bool carry_out(Evaluator& evaluator, const Choice& choice) {
  Choice kept = choice;
  if (evaluator.attempt(kept, Evaluator::kInfinite) == Evaluator::kInfinite || !(kept == choice)) return false;
  evaluator.keep();
  return true;
}

}  // namespace

std::optional<Decisions> swaps_alone(const Problem& problem, const Liveness& liveness,
                                     const EvictionCandidates& candidates, const Choice& choice) {
  Evaluator evaluator(problem, liveness, candidates, Evaluator::Places::kNone);
  if (!carry_out(evaluator, choice)) return std::nullopt;
  return Decisions{swaps_of(problem, liveness, candidates, choice, evaluator), {}};
}

std::optional<Decisions> finish(const Problem& problem, const Liveness& liveness, const EvictionCandidates& candidates,
                                const Choice& choice, Items items, const layout::Limits& limits,
                                std::optional<std::uint64_t> capacity) {
  const bool placed = items == Items::kFirstFit;
  Evaluator evaluator(problem, liveness, candidates, placed ? Evaluator::Places::kFirstFit : Evaluator::Places::kNone);
  if (!carry_out(evaluator, choice)) return std::nullopt;
  Decisions decisions{swaps_of(problem, liveness, candidates, choice, evaluator), {}};
  if (!problem.layout) return decisions;
  auto places = places_of(problem, liveness, candidates, evaluator, items, limits, capacity);
  if (!places) return std::nullopt;
  decisions.places = std::move(*places);
  return decisions;
}

}  // namespace memopt::swap
