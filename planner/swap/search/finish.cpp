#include "planner/swap/search/finish.h"

#include <algorithm>

#include "planner/layout/solve.h"
#include "planner/swap/search/fitting.h"
#include "planner/swap/verify.h"

namespace memopt::swap {
namespace {

std::vector<Swap> swaps_of(const Problem& problem, const Lives& lives, const Candidates& candidates,
                           const Choice& choice, const Fitting& fitting) {
  std::vector<std::uint32_t> away;
  for (std::uint32_t a = 0; a < choice.away.size(); ++a) {
    if (choice.away[a] != 0) away.push_back(a);
  }
  std::sort(away.begin(), away.end(),
            [&](std::uint32_t a, std::uint32_t b) { return fitting.times().goes_before(a, b); });
  std::vector<Swap> swaps;
  for (const std::uint32_t a : away) {
    const Absence& absence = candidates.absences[a];
    Swap swap;
    swap.block = candidates.items[absence.item].block;
    swap.out_after = choice.out_after[a];
    swap.copy = !fitting.times().is_clean(a);
    if (absence.returns()) {
      swap.in_after = fitting.clock().last_ended(fitting.times().in_begin(a), swap.out_after, absence.needed);
      swap.need = absence.needed;
    }
    if (problem.blocks[swap.block].persistent && swap.out_after >= lives.operations) {
      swap.out_after -= lives.operations;
      swap.in_after -= lives.operations;
      swap.need -= lives.operations;
    }
    swaps.push_back(swap);
  }
  return swaps;
}

// The items where they are, the others where there is room.
std::optional<std::vector<Place>> places_of(const Problem& problem, const Lives& lives, const Candidates& candidates,
                                            const Fitting& fitting, Items items, const layout::Limits& limits) {
  std::vector<Place> places(problem.blocks.size());
  std::vector<std::uint32_t> item_of(problem.blocks.size(), Fitting::kGround);
  for (std::uint32_t i = 0; i < candidates.items.size(); ++i) item_of[candidates.items[i].block] = i;
  Candidates rest;
  for (std::uint32_t b = 0; b < problem.blocks.size(); ++b) {
    if (item_of[b] == Fitting::kGround) rest.items.push_back({b, 0, 0});
  }
  const Clock clock(problem);
  const Stays maker(problem, lives, rest, clock);
  layout::Problem layout;
  std::vector<std::uint32_t> owner;
  const auto add = [&](std::uint32_t block, const Stay& stay, std::uint64_t alignment, std::uint64_t fixed) {
    std::vector<layout::Interval> when;
    for (const Stretch& one : stay.when) {
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
    const Stay& stay = fitting.stay(i);
    for (std::uint32_t turn = 0; turn < stay.places; ++turn) {
      add(candidates.items[i].block, stay, stay.swapped ? problem.chunk : problem.align,
          items == Items::kFirstFit ? fitting.places(i)[turn] : layout::kAnywhere);
    }
    places[candidates.items[i].block].own = stay.swapped;
  }
  for (std::uint32_t i = 0; i < rest.items.size(); ++i) {
    const std::uint32_t block = rest.items[i].block;
    if (problem.blocks[block].bytes == 0) {
      places[block].offsets.push_back(0);
      continue;
    }
    const Stay stay = maker.whole(i);
    for (std::uint32_t turn = 0; turn < stay.places; ++turn) add(block, stay, problem.align, layout::kAnywhere);
  }
  if (layout.buffers.empty()) return places;
  const layout::Outcome outcome =
      items == Items::kThorough ? layout::solve(layout, limits) : layout::solve_by_heuristics(layout, limits);
  if (!outcome.found(layout.buffers.size())) return std::nullopt;
  for (std::size_t k = 0; k < owner.size(); ++k) places[owner[k]].offsets.push_back(outcome.solution.offsets[k]);
  return places;
}

}  // namespace

std::optional<Decisions> finish(const Problem& problem, const Lives& lives, const Candidates& candidates,
                                const Choice& choice, Items items, const layout::Limits& limits) {
  const bool placed = items == Items::kFirstFit;
  Fitting fitting(problem, lives, candidates, placed ? Fitting::Places::kFirstFit : Fitting::Places::kNone);
  Choice kept = choice;
  if (fitting.attempt(kept, Fitting::kInfinite) == Fitting::kInfinite || !(kept == choice)) return std::nullopt;
  fitting.keep();
  Decisions decisions;
  decisions.swaps = swaps_of(problem, lives, candidates, choice, fitting);
  if (!problem.layout) return decisions;
  auto places = places_of(problem, lives, candidates, fitting, items, limits);
  if (!places) return std::nullopt;
  decisions.places = std::move(*places);
  return decisions;
}

}  // namespace memopt::swap
