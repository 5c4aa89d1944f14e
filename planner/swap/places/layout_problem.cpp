#include "planner/swap/places/layout_problem.h"

#include <algorithm>

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

LayoutProblem make_layout_problem(const Problem& problem, const Liveness& liveness, const Decisions& decisions) {
  Residency residency;
  find_residency(problem, liveness, decisions, residency);
  const std::uint64_t n = liveness.operations;
  LayoutProblem layout;
  std::vector<Interval> when;
  std::size_t at = 0;
  for (std::uint32_t b = 0; b < problem.blocks.size(); ++b) {
    layout.first.push_back(static_cast<std::uint32_t>(layout.problem.buffers.size()));
    const Block& block = problem.blocks[b];
    if (block.bytes == 0) continue;
    when.clear();
    bool swapped = false, once = true;
    std::uint64_t first = kNever, last = 0;
    for (; at < residency.intervals.size() && residency.intervals[at].block == b; ++at) {
      const ResidencyInterval& it = residency.intervals[at];
      const std::uint64_t begin = it.in_swap == kNoSwap ? it.first : decisions.swaps[it.in_swap].in_after + 1;
      swapped = swapped || it.in_swap != kNoSwap || it.out_swap != kNoSwap;
      first = std::min(first, begin);
      last = std::max(last, it.last);
      once = once && it.last - begin < n;
      if (once) put(begin % n, begin % n + (it.last + 1 - begin), n, when);
    }
    const std::uint64_t alignment = alignment_of(problem, b, swapped);
    if (when.empty() && once) when.push_back({0, n});  // persistent, never swapped
    if (once && join(when)) {
      layout.problem.add(block.bytes, when, alignment);
      continue;
    }
    const std::uint64_t turns = (last - first) / n + 1;
    for (std::uint64_t turn = 0; turn < turns; ++turn) layout.problem.add(block.bytes, Interval{0, n}, alignment);
  }
  layout.first.push_back(static_cast<std::uint32_t>(layout.problem.buffers.size()));
  return layout;
}

std::vector<Place> places_of(const Problem& problem, const Decisions& decisions, const LayoutProblem& layout,
                             const layout::Solution& solution) {
  std::vector<Place> places(problem.blocks.size());
  for (const Swap& swap : decisions.swaps) places[swap.block].own = true;
  for (std::size_t b = 0; b < places.size(); ++b) {
    places[b].own = places[b].own || problem.blocks[b].whole_chunks;
    places[b].offsets.assign(solution.offsets.begin() + layout.first[b],
                             solution.offsets.begin() + layout.first[b + 1]);
    if (places[b].offsets.empty()) places[b].offsets.push_back(0);  // of no bytes
  }
  return places;
}

}  // namespace memopt::swap
