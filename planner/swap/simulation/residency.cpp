#include "planner/swap/simulation/residency.h"

#include <algorithm>

namespace memopt::swap {

void find_residency(const Problem& problem, const Liveness& liveness, const Decisions& decisions, Residency& result) {
  const std::vector<Swap>& swaps = decisions.swaps;
  auto& order = result.by_block;
  order.resize(swaps.size());
  for (std::uint32_t j = 0; j < order.size(); ++j) order[j] = j;
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    if (swaps[a].block != swaps[b].block) return swaps[a].block < swaps[b].block;
    return swaps[a].out_after != swaps[b].out_after ? swaps[a].out_after < swaps[b].out_after : a < b;
  });
  auto& intervals = result.intervals;
  intervals.clear();
  std::size_t at = 0;
  for (std::uint32_t b = 0; b < problem.blocks.size(); ++b) {
    const std::size_t begin = at;
    while (at < order.size() && swaps[order[at]].block == b) ++at;
    if (problem.blocks[b].bytes == 0) continue;
    if (problem.blocks[b].persistent) {
      for (std::size_t k = begin; k < at; ++k) {
        const bool last = k + 1 == at;
        const std::uint32_t next = order[last ? begin : k + 1];
        intervals.push_back({b, static_cast<std::int32_t>(order[k]), static_cast<std::int32_t>(next),
                             swaps[order[k]].need, swaps[next].out_after + (last ? liveness.operations : 0)});
      }
      continue;
    }
    std::uint64_t first = liveness.of[b].start;
    std::int32_t by = kNoSwap;
    bool away = false;
    for (std::size_t k = begin; k < at; ++k) {
      const auto j = static_cast<std::int32_t>(order[k]);
      intervals.push_back({b, by, j, first, swaps[order[k]].out_after});
      first = swaps[order[k]].need;
      by = j;
      away = !swaps[order[k]].returns();
    }
    if (!away) intervals.push_back({b, by, kNoSwap, first, liveness.of[b].freed});
  }
}

}  // namespace memopt::swap
