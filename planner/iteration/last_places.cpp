#include "planner/iteration/last_places.h"

#include <algorithm>
#include <vector>

namespace memopt::planner {
namespace {

bool alike(const MallocLife& a, const MallocLife& b) {
  return a.bytes == b.bytes && a.return_address == b.return_address && a.places == b.places && a.always == b.always;
}

bool same(const Pool& a, const Pool& b) { return a.bytes == b.bytes && a.places == b.places; }

// By how many mallocs the sequence `now` begins later than `before`, cyclically.
std::optional<std::size_t> rotation(const std::vector<MallocLife>& before, const std::vector<MallocLife>& now) {
  if (before.size() != now.size() || now.empty()) return std::nullopt;
  std::vector<MallocLife> twice = before;
  twice.insert(twice.end(), before.begin(), before.end() - 1);
  // Knuth, Morris and Pratt would be linear whatever the sequence; those of programs have few beginnings that are
  // alike.
  const auto found = std::search(twice.begin(), twice.end(), now.begin(), now.end(), alike);
  if (found == twice.end()) return std::nullopt;
  return static_cast<std::size_t>(found - twice.begin());
}

}  // namespace

std::optional<layout::Solution> places_of_last(const IterationPlan& last, const IterationPlan& next) {
  const std::vector<LaneMallocs>& before = last.lifetimes.lanes;
  const std::vector<LaneMallocs>& now = next.lifetimes.lanes;
  if (last.rounds != next.rounds || before.size() != now.size()) return std::nullopt;
  if (last.pools.has_value() != next.pools.has_value()) return std::nullopt;
  if (last.pools && !std::equal(last.pools->pools.begin(), last.pools->pools.end(), next.pools->pools.begin(),
                                next.pools->pools.end(), [](const Pool& a, const Pool& b) { return same(a, b); })) {
    return std::nullopt;
  }
  layout::Solution solution;
  solution.height = last.outcome.solution.height;
  solution.offsets.reserve(last.outcome.solution.offsets.size());
  std::size_t lane_begin = 0;
  for (std::size_t lane = 0; lane < now.size(); ++lane) {
    if (before[lane].lane != now[lane].lane || before[lane].parts != now[lane].parts) return std::nullopt;
    const std::vector<MallocLife>& mallocs = before[lane].mallocs;
    const std::optional<std::size_t> shift = rotation(mallocs, now[lane].mallocs);
    if (!shift) return std::nullopt;
    const auto buffers = [&](const IterationPlan& plan, std::size_t i) -> std::size_t {
      if (plan.lifetimes.lanes[lane].mallocs[i].places == 0) return 0;
      if (plan.pools) return plan.pools->of[lane][i] == Pools::kNoPool && plan.pools->leads[lane][i] == i;
      return plan.rounds > 1 ? plan.rounds : plan.lifetimes.lanes[lane].mallocs[i].places;
    };
    std::vector<std::size_t> first(mallocs.size() + 1, lane_begin);
    for (std::size_t i = 0; i < mallocs.size(); ++i) first[i + 1] = first[i] + buffers(last, i);
    for (std::size_t i = 0; i < mallocs.size(); ++i) {
      const std::size_t there = (i + *shift) % mallocs.size();
      const std::size_t turns = buffers(last, there);
      if (turns != buffers(next, i)) return std::nullopt;
      if (last.pools && last.pools->of[lane][there] != next.pools->of[lane][i]) return std::nullopt;
      // What has come around belongs to the next round.
      const std::size_t carry = (i + *shift) / mallocs.size();
      for (std::size_t turn = 0; turn < turns; ++turn) {
        solution.offsets.push_back(last.outcome.solution.offsets[first[there] + (turn + carry) % turns]);
      }
    }
    lane_begin = first.back();
  }
  // Those of the pools.
  const std::vector<std::uint64_t>& offsets = last.outcome.solution.offsets;
  solution.offsets.insert(solution.offsets.end(), offsets.begin() + static_cast<std::ptrdiff_t>(lane_begin),
                          offsets.end() - static_cast<std::ptrdiff_t>(last.lifetimes.in_slab.size()));
  for (const BlockInSlab& block : next.lifetimes.in_slab) {
    solution.offsets.push_back(block.offset);
    solution.height = std::max(solution.height, block.offset + place_bytes(block.bytes));
  }
  return solution;
}

}  // namespace memopt::planner
