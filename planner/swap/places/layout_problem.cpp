#include "planner/swap/places/layout_problem.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "planner/swap/places/intervals.h"
#include "planner/swap/simulation/residency.h"

namespace memopt::swap {
namespace {

using layout::Interval;

// Puts [from, to) of a line onto the circle of `n`; `from` is below n.
void put(std::uint64_t from, std::uint64_t to, std::uint64_t n, std::vector<Interval>& when) {
  if (to <= n) {
    when.push_back({from, to});
    return;
  }
  when.push_back({from, n});
  when.push_back({0, to - n});
}

}  // namespace

LayoutProblem make_layout_problem(const Problem& problem, const Liveness& liveness, const Decisions& decisions,
                                  Returns returns) {
  Residency residency;
  find_residency(problem, liveness, decisions, residency);
  std::vector<bool> free_returns(decisions.swaps.size());
  if (returns == Returns::kElsewhere) free_returns = find_free_returns(problem, liveness, decisions);
  const std::uint64_t n = liveness.operations;
  LayoutProblem layout;
  layout.returns.assign(decisions.swaps.size(), kNoBuffer);
  std::vector<std::vector<Interval>> when;  // by group
  std::vector<std::int32_t> in_swaps;
  std::vector<std::uint32_t> groups;
  std::size_t at = 0;
  for (std::uint32_t b = 0; b < problem.blocks.size(); ++b) {
    const auto first_buffer = static_cast<std::uint32_t>(layout.problem.buffers.size());
    layout.first.push_back(first_buffer);
    layout.turns.push_back(0);
    const Block& block = problem.blocks[b];
    if (block.bytes == 0) continue;
    const std::size_t begin = at;
    while (at < residency.intervals.size() && residency.intervals[at].block == b) ++at;
    const std::span stays(residency.intervals.data() + begin, at - begin);
    in_swaps.clear();
    for (const ResidencyInterval& it : stays) in_swaps.push_back(it.in_swap);
    when.assign(group_stays(free_returns, in_swaps, groups), {});
    bool swapped = false, once = true;
    std::uint64_t first = kNever, last = 0;
    for (std::size_t k = 0; k < stays.size(); ++k) {
      const ResidencyInterval& it = stays[k];
      const std::uint64_t from = it.in_swap == kNoSwap ? it.first : decisions.swaps[it.in_swap].in_after + 1;
      swapped = swapped || it.in_swap != kNoSwap || it.out_swap != kNoSwap;
      first = std::min(first, from);
      last = std::max(last, it.last);
      once = once && it.last - from < n;
      if (once) put(from % n, from % n + (it.last + 1 - from), n, when[groups[k]]);
    }
    const std::uint64_t alignment = alignment_of(problem, b, swapped);
    if (stays.empty()) when[0].push_back({0, n});  // persistent, never swapped
    if (once && std::all_of(when.begin(), when.end(), join)) {
      layout.turns[b] = 1;
      for (const std::vector<Interval>& group : when) layout.problem.add(block.bytes, group, alignment);
      for (std::size_t k = 0; k < stays.size(); ++k) {
        if (groups[k] != 0) layout.returns[static_cast<std::size_t>(in_swaps[k])] = first_buffer + groups[k];
      }
      continue;
    }
    layout.turns[b] = static_cast<std::uint32_t>((last - first) / n + 1);
    for (std::uint32_t turn = 0; turn < layout.turns[b]; ++turn)
      layout.problem.add(block.bytes, Interval{0, n}, alignment);
  }
  return layout;
}

void set_places(const Problem& problem, const LayoutProblem& layout, const layout::Solution& solution,
                Decisions& decisions) {
  std::vector<Place>& places = decisions.places;
  places.assign(problem.blocks.size(), {});
  for (const Swap& swap : decisions.swaps) places[swap.block].own = true;
  const auto offsets = [&](std::uint32_t first, std::uint32_t turns) {
    return std::vector(solution.offsets.begin() + first, solution.offsets.begin() + first + turns);
  };
  for (std::size_t b = 0; b < places.size(); ++b) {
    places[b].own = places[b].own || problem.blocks[b].whole_chunks;
    places[b].offsets = offsets(layout.first[b], layout.turns[b]);
    if (places[b].offsets.empty()) places[b].offsets.push_back(0);  // of no bytes
  }
  for (std::size_t j = 0; j < decisions.swaps.size(); ++j) {
    Swap& swap = decisions.swaps[j];
    swap.returns_to.clear();
    if (layout.returns[j] == kNoBuffer) continue;
    swap.returns_to = offsets(layout.returns[j], layout.turns[swap.block]);
    if (swap.returns_to == places[swap.block].offsets) swap.returns_to.clear();
  }
}

}  // namespace memopt::swap
