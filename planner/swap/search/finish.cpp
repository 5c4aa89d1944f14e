#include "planner/swap/search/finish.h"

#include <algorithm>
#include <utility>

#include "planner/layout/portfolio/solve.h"
#include "planner/swap/evaluation/evaluator.h"
#include "planner/swap/places/intervals.h"
#include "planner/swap/places/layout_problem.h"
#include "planner/swap/places/returns.h"
#include "planner/swap/simulation/verify.h"

namespace memopt::swap {
namespace {

constexpr std::uint32_t kNotUsed = ~std::uint32_t{0};

struct Swaps {
  std::vector<Swap> all;
  std::vector<std::uint32_t> of;  // by eviction: its index
};

Swaps swaps_of(const Problem& problem, const Liveness& liveness, const EvictionCandidates& candidates,
               const Choice& choice, const Evaluator& evaluator) {
  std::vector<std::uint32_t> away;
  for (std::uint32_t a = 0; a < choice.evicted.size(); ++a) {
    if (choice.evicted[a] != 0) away.push_back(a);
  }
  std::sort(away.begin(), away.end(),
            [&](std::uint32_t a, std::uint32_t b) { return evaluator.times().goes_before(a, b); });
  Swaps swaps;
  swaps.of.assign(choice.evicted.size(), kNotUsed);
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
    swaps.of[a] = static_cast<std::uint32_t>(swaps.all.size());
    swaps.all.push_back(swap);
  }
  return swaps;
}

// What a choice leaves to be laid out.
class Layout {
 public:
  Layout(const Problem& problem, const Liveness& liveness, const EvictionCandidates& candidates, const Choice& choice,
         const Swaps& swaps, const Evaluator& evaluator)
      : problem_(problem),
        liveness_(liveness),
        candidates_(candidates),
        choice_(choice),
        swaps_(swaps),
        evaluator_(evaluator) {
    layout_.first.resize(problem.blocks.size());
    layout_.turns.resize(problem.blocks.size());
    layout_.returns.assign(swaps.all.size(), kNoBuffer);
  }

  // The items where they are if they are placed, the others where there is room.
  const LayoutProblem& make(Items items) {
    const bool placed = items == Items::kFirstFit;
    if (!placed && problem_.machine.remap_ns) find_returns();
    const ResidencyIntervals moved(problem_, liveness_, candidates_, evaluator_.clock());
    std::vector<bool> is_item(problem_.blocks.size());
    for (std::uint32_t i = 0; i < candidates_.items.size(); ++i) {
      const std::uint32_t block = candidates_.items[i].block;
      is_item[block] = true;
      if (free_returns_.empty() || !add_stays(i, moved))
        add(block, evaluator_.residency(i),
            [&](std::uint32_t turn) { return placed ? evaluator_.places(i)[turn] : layout::kAnywhere; });
    }
    EvictionCandidates rest;
    for (std::uint32_t b = 0; b < problem_.blocks.size(); ++b) {
      if (!is_item[b] && problem_.blocks[b].bytes != 0) rest.items.push_back({b, 0, 0});
    }
    const Clock clock(problem_);
    const ResidencyIntervals intervals(problem_, liveness_, rest, clock);
    for (std::uint32_t i = 0; i < rest.items.size(); ++i) {
      add(rest.items[i].block, intervals.whole(i), [](std::uint32_t) { return layout::kAnywhere; });
    }
    return layout_;
  }

 private:
  void find_returns() {
    std::vector<Absence> absences;
    for (std::uint32_t a = 0; a < swaps_.of.size(); ++a) {
      if (swaps_.of[a] == kNotUsed || !candidates_.evictions[a].returns()) continue;
      absences.push_back({swaps_.of[a], evaluator_.times().out_end(a), evaluator_.times().in_begin(a)});
    }
    free_returns_ =
        find_free_returns(problem_, liveness_, {swaps_.all, {}}, std::move(absences), evaluator_.clock().period());
  }

  void begin(std::uint32_t block, std::uint32_t turns) {
    layout_.first[block] = static_cast<std::uint32_t>(layout_.problem.buffers.size());
    layout_.turns[block] = turns;
  }

  template <typename Fixed>
  void add(std::uint32_t block, const ItemResidency& residency, const Fixed& fixed) {
    std::vector<layout::Interval> when;
    for (const PointInterval& one : residency.intervals) when.push_back({one.begin, one.end});
    join(when);
    begin(block, residency.places);
    for (std::uint32_t turn = 0; turn < residency.places; ++turn) {
      const std::uint64_t alignment = alignment_of(problem_, block, residency.swapped);
      layout_.problem.add(problem_.blocks[block].bytes, when, alignment, fixed(turn));
    }
  }

  // Each group of stays by itself. False: it never returns elsewhere, or needs several places at once all the same.
  bool add_stays(std::uint32_t item, const ResidencyIntervals& intervals) {
    const std::vector<PointStay> stays = intervals.stays(item, choice_, evaluator_.times());
    std::vector<std::int32_t> in_swaps;
    for (const PointStay& stay : stays) {
      const bool born = stay.brought_by == PointStay::kBorn;
      in_swaps.push_back(born ? -1 : static_cast<std::int32_t>(swaps_.of[stay.brought_by]));
    }
    std::vector<std::uint32_t> groups;
    const std::uint32_t count = group_stays(free_returns_, in_swaps, groups);
    if (count < 2) return false;
    std::vector<std::vector<layout::Interval>> when(count);
    for (std::size_t k = 0; k < stays.size(); ++k) {
      for (const PointInterval& one : intervals.on_circle(stays[k].when))
        when[groups[k]].push_back({one.begin, one.end});
    }
    if (!std::all_of(when.begin(), when.end(), join)) return false;
    const std::uint32_t block = candidates_.items[item].block;
    begin(block, 1);
    for (std::size_t k = 0; k < stays.size(); ++k) {
      if (groups[k] != 0) layout_.returns[static_cast<std::size_t>(in_swaps[k])] = layout_.first[block] + groups[k];
    }
    for (const auto& group : when) {
      layout_.problem.add(problem_.blocks[block].bytes, group, alignment_of(problem_, block, true));
    }
    return true;
  }

  const Problem& problem_;
  const Liveness& liveness_;
  const EvictionCandidates& candidates_;
  const Choice& choice_;
  const Swaps& swaps_;
  const Evaluator& evaluator_;
  std::vector<bool> free_returns_;  // by swap; empty: none
  LayoutProblem layout_;
};

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
  return Decisions{swaps_of(problem, liveness, candidates, choice, evaluator).all, {}};
}

std::optional<Decisions> finish(const Problem& problem, const Liveness& liveness, const EvictionCandidates& candidates,
                                const Choice& choice, Items items, const layout::Limits& limits,
                                std::optional<std::uint64_t> capacity) {
  const bool placed = items == Items::kFirstFit;
  Evaluator evaluator(problem, liveness, candidates, placed ? Evaluator::Places::kFirstFit : Evaluator::Places::kNone);
  if (!carry_out(evaluator, choice)) return std::nullopt;
  const Swaps swaps = swaps_of(problem, liveness, candidates, choice, evaluator);
  Decisions decisions{swaps.all, {}};
  if (!problem.layout) return decisions;
  LayoutProblem layout = Layout(problem, liveness, candidates, choice, swaps, evaluator).make(items);
  layout::Outcome outcome;
  if (!layout.problem.buffers.empty()) {
    layout.problem.capacity = capacity;
    outcome = items == Items::kThorough ? layout::solve(layout.problem, limits)
                                        : layout::solve_by_heuristics(layout.problem, limits);
    if (!outcome.found(layout.problem.buffers.size())) return std::nullopt;
  }
  set_places(problem, layout, outcome.solution, decisions);
  return decisions;
}

}  // namespace memopt::swap
