#include "planner/iteration/smaller_batches.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace memopt::planner {
namespace {

// Of layers that are alike most shifts fit for long. As many comparisons for each malloc.
constexpr std::uint64_t kMostWork = 256;

std::vector<Block> made_by(const OperationStore& store, const LanePeriod& lane) {
  const LaneOperations& operations = store.lanes()[lane.lane].operations;
  std::vector<Block> made;
  for (std::uint32_t i = lane.middle(); i < lane.end; ++i) {
    const Operation op = store.operations()[operations[i]];
    if (op.kind == OperationKind::kMalloc) made.push_back(store.blocks()[op.block]);
  }
  return made;
}

enum class Fit { kNo, kSame, kSmaller };

// Begun at whichever of `planned`, a sequence that comes over and over again.
Fit fit_of(const std::vector<Block>& made, const std::vector<MallocLife>& planned) {
  std::uint64_t work = kMostWork * made.size();
  for (std::size_t shift = 0; shift < planned.size(); ++shift) {
    bool smaller = false;
    std::size_t i = 0;
    for (; i < made.size(); ++i) {
      if (work-- == 0) return Fit::kNo;
      const MallocLife& as = planned[(i + shift) % planned.size()];
      if (made[i].return_address != as.return_address || made[i].bytes > as.bytes) break;
      smaller = smaller || made[i].bytes < as.bytes;
    }
    if (i == made.size()) return smaller ? Fit::kSmaller : Fit::kSame;
  }
  return Fit::kNo;
}

}  // namespace

bool is_of_smaller_batches(const OperationStore& store, const Iteration& found, const IterationLifetimes& planned) {
  std::size_t times = 0, lanes = 0;
  bool smaller = false;
  for (const LanePeriod& lane : found.lanes) {
    const std::vector<Block> made = made_by(store, lane);
    if (made.empty()) continue;
    const auto ours = std::find_if(planned.lanes.begin(), planned.lanes.end(), [&](const LaneMallocs& other) {
      return other.lane == store.lanes()[lane.lane].number;
    });
    if (ours == planned.lanes.end()) return false;
    const std::size_t count = ours->operations.size();
    if (made.size() % count != 0 || (times != 0 && times != made.size() / count)) return false;
    times = made.size() / count;
    const Fit fit = fit_of(made, ours->mallocs);
    if (fit == Fit::kNo) return false;
    smaller = smaller || fit == Fit::kSmaller;
    ++lanes;
  }
  return smaller && lanes == planned.lanes.size();
}

}  // namespace memopt::planner
