#include "planner/swap/evaluation/copy_times.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace memopt::swap {

Choice nothing_evicted(const EvictionCandidates& candidates) {
  Choice choice;
  choice.evicted.assign(candidates.evictions.size(), 0);
  for (const Eviction& eviction : candidates.evictions) choice.out_after.push_back(eviction.leaves);
  choice.order.resize(candidates.items.size());
  std::iota(choice.order.begin(), choice.order.end(), 0);
  return choice;
}

CopyTimes::CopyTimes(const Problem& problem, const Liveness& liveness, const EvictionCandidates& candidates,
                     const Clock& clock)
    : liveness_(liveness), candidates_(candidates), clock_(clock), clean_drops_(problem.clean_drops) {
  const std::size_t count = candidates.evictions.size();
  for (std::vector<double>* each : {&out_ns_, &in_ns_, &out_end_, &in_begin_, &lateness_}) each->resize(count);
  clean_.assign(count, 0);
  needed_.resize(count);
  issue_.resize(count);
  for (std::uint32_t a = 0; a < count; ++a) {
    const Eviction& eviction = candidates.evictions[a];
    const std::uint64_t bytes = problem.blocks[candidates.items[eviction.item].block].bytes;
    out_ns_[a] = problem.machine.out_ns(bytes);
    in_ns_[a] = problem.machine.in_ns(bytes);
    needed_[a] = eviction.returns() ? eviction.needed % liveness.operations : liveness.operations;
  }
}

bool CopyTimes::find(const Choice& choice) {
  outs_.clear();
  ins_.clear();
  late_.clear();
  for (std::uint32_t a = 0; a < choice.evicted.size(); ++a) {
    if (choice.evicted[a] == 0) continue;
    outs_.push_back(a);
    if (candidates_.evictions[a].returns()) ins_.push_back(a);
    issue_[a] = choice.out_after[a] % liveness_.operations;
  }
  if (clean_drops_) find_clean();
  if (!find_out(choice) || !find_in()) return false;
  for (const std::uint32_t a : outs_) {
    const Eviction& eviction = candidates_.evictions[a];
    const double end =
        eviction.returns() ? in_begin_[a] : clock_.begin(liveness_.of[candidates_.items[eviction.item].block].freed);
    lateness_[a] = out_end_[a] - end;
    if (lateness_[a] > 0) late_.push_back(a);
  }
  std::sort(late_.begin(), late_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return lateness_[a] != lateness_[b] ? lateness_[a] > lateness_[b] : a < b;
  });
  return true;
}

// outs_ has the evictions of each item side by side, ascending.
void CopyTimes::find_clean() {
  for (std::size_t begin = 0, end = 0; begin < outs_.size(); begin = end) {
    const Item& item = candidates_.items[candidates_.evictions[outs_[begin]].item];
    const auto writes = [&](std::size_t k) { return candidates_.evictions[outs_[k]].writes; };
    for (end = begin + 1; end < outs_.size() && outs_[end] < item.first_eviction + item.evictions; ++end) {
      clean_[outs_[end]] = writes(end) == writes(end - 1) ? 1 : 0;
    }
    // Those of a persistent block are a circle, of which one has to copy.
    const bool circle = liveness_.of[item.block].born == kNever;
    clean_[outs_[begin]] = circle && item.writes > 0 && writes(end - 1) - writes(begin) == item.writes ? 1 : 0;
  }
}

bool CopyTimes::find_out(const Choice& choice) {
  std::sort(outs_.begin(), outs_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return issue_[a] != issue_[b] ? issue_[a] < issue_[b] : goes_before(a, b);
  });
  // The second time with what the first left for the next iteration.
  double free = -std::numeric_limits<double>::infinity();
  for (int pass = 0; pass < 2; ++pass) {
    for (const std::uint32_t a : outs_) {
      if (clean_[a] != 0) {
        out_end_[a] = clock_.end(choice.out_after[a]);
        continue;
      }
      const double issued = clock_.end_in_iteration(issue_[a]);
      free = std::max(issued, free) + out_ns_[a];
      out_end_[a] = clock_.end(choice.out_after[a]) + (free - issued);
    }
    free -= clock_.period();
    if (free > clock_.period()) return false;
  }
  return true;
}

bool CopyTimes::find_in() {
  std::sort(ins_.begin(), ins_.end(), [&](std::uint32_t a, std::uint32_t b) { return goes_before(a, b); });
  double next = std::numeric_limits<double>::infinity();
  for (int pass = 0; pass < 2; ++pass) {
    for (std::size_t k = ins_.size(); k-- > 0;) {
      const std::uint32_t a = ins_[k];
      const double needed = clock_.begin_in_iteration(needed_[a]);
      next = std::min(needed, next) - in_ns_[a];
      in_begin_[a] = clock_.begin(candidates_.evictions[a].needed) - (needed - next);
    }
    next += clock_.period();
    if (next < 0) return false;
  }
  return true;
}

}  // namespace memopt::swap
