#include "planner/sending/swap_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "planner/iteration/plan_bytes.h"
#include "planner/swap/model/liveness.h"

namespace memopt::planner {
namespace {

// Thrown inside this file only.
struct CannotFollow : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Positions of the problem as positions of the iteration.
class Positions {
 public:
  Positions(const SwapPlanParts& swaps, std::int64_t count) : swaps_(swaps), behind_(swaps.ranks), operations_(count) {
    // What belongs to a launch but comes before it takes time happens before it.
    const auto& operations = swaps.problem.operations;
    for (std::size_t begin = 0, end = 0; begin < operations.size(); begin = end) {
      end = swap::end_of_launch(swaps.problem, begin);
      std::size_t running = end - 1;
      for (std::size_t i = begin; i < end; ++i) {
        const double then = i + 1 < operations.size() ? operations[i + 1].time : swaps.problem.period;
        if (then > operations[i].time) running = i;
      }
      for (std::size_t i = begin; i < running; ++i) --behind_[i];  // of rank 0: -1, the iteration before
    }
    // Where the device idles before the first one.
    if (operations.size() > 1 && operations[0].kind == swap::Kind::kNothing && swaps.ranks[1] == swaps.ranks[0]) {
      --behind_[0];
    }
  }

  // Of the operation itself.
  std::int64_t at(std::uint64_t position) const { return in_iteration(swaps_.ranks, position); }
  // The operation behind which it lies.
  std::int64_t behind(std::uint64_t position) const { return in_iteration(behind_, position); }

 private:
  std::int64_t in_iteration(const std::vector<std::uint64_t>& ranks, std::uint64_t position) const {
    const std::uint64_t n = ranks.size();
    return static_cast<std::int64_t>(ranks[position % n]) + static_cast<std::int64_t>(position / n) * operations_;
  }

  const SwapPlanParts& swaps_;
  std::vector<std::uint64_t> behind_;
  std::int64_t operations_;  // of the iteration
};

// Where each operation is in its lane, by rank.
std::vector<std::optional<shm::PlannedPoint>> points_of(const OperationStore& store,
                                                        const IterationLifetimes& lifetimes) {
  struct Lane {
    std::uint32_t number = 0;
    std::optional<std::uint32_t> malloc;  // the last one
    std::uint32_t operations = 0;         // since
  };
  std::unordered_map<std::uint32_t, std::pair<std::uint32_t, std::uint32_t>> mallocs;  // by operation: lane, index
  for (const LaneMallocs& lane : lifetimes.lanes) {
    for (std::uint32_t i = 0; i < lane.operations.size(); ++i)
      mallocs.emplace(lane.operations[i], std::pair(lane.lane, i));
  }
  std::vector<Lane> lanes(store.lanes().size());
  std::vector<std::optional<shm::PlannedPoint>> points(lifetimes.operations);
  // Twice, as what is before a lane's first malloc is behind its last one.
  for (int round = 0; round < 2; ++round) {
    for (std::uint64_t rank = 0; rank < lifetimes.operations; ++rank) {
      const Operation operation = store.operations()[lifetimes.order[rank]];
      Lane& lane = lanes[operation.lane];
      bool counted = operation.kind != OperationKind::kFree;
      if (operation.kind == OperationKind::kMalloc) {
        const auto found = mallocs.find(lifetimes.order[rank]);
        counted = found != mallocs.end();
        if (counted) lane = {found->second.first, found->second.second, 0};
      } else if (counted) {
        ++lane.operations;
      }
      if (!lane.malloc) continue;
      points[rank] =
          shm::PlannedPoint{rank, lane.number, *lane.malloc, lane.operations, counted ? 0 : shm::kPointUncounted};
    }
  }
  return points;
}

class Writer {
 public:
  using Points = std::vector<std::optional<shm::PlannedPoint>>;

  Writer(const std::vector<LaneMallocs>& lanes, const Points& points, const SwapPlanParts& swaps, PlanParts& parts)
      : swaps_(swaps),
        operations_(static_cast<std::int64_t>(points.size())),
        positions_(swaps, operations_),
        points_(points),
        liveness_(swap::find_liveness(swaps.problem)),
        parts_(parts) {
    if (swaps.ranks.size() != swaps.problem.operations.size()) throw std::logic_error("ranks of another problem");
    for (const LaneMallocs& lane : lanes) {
      if (lane.parts != 1) {
        throw CannotFollow(fmt::format("the mallocs of thread {} can't be told from each other", lane.lane));
      }
      parts.lanes.push_back({lane.lane, lane.match, parts.mallocs.size(), lane.mallocs.size()});
      for (std::size_t i = 0; i < lane.mallocs.size(); ++i) {
        const MallocLife& malloc = lane.mallocs[i];
        const std::uint64_t gap = lane.gaps.empty() ? shm::kNoGap : lane.gaps[i];
        parts.mallocs.push_back({malloc.bytes, malloc.return_address, 0, 0, 0, 0, gap});
        planned_.push_back(malloc.places != 0);
      }
    }
  }

  void write() {
    write_places();
    write_swaps();
    parts_.header.operations = static_cast<std::uint64_t>(operations_);
    parts_.header.slab_bytes = slab_;
    parts_.header.lower_bound = 0;
    for (const shm::PlannedPages& pages : parts_.pages) {
      parts_.header.persistent_bytes -= std::min(parts_.header.persistent_bytes, pages.place.bytes);
    }
    parts_.header.chunk_bytes = swaps_.decisions.swaps.empty() ? 0 : swaps_.problem.chunk;
    parts_.header.period_ns = static_cast<std::uint64_t>(std::llround(swaps_.problem.period));
    parts_.header.added_ns = static_cast<std::uint64_t>(std::llround(swaps_.added_ns));
    parts_.header.otherwise_ns = swaps_.decisions.swaps.empty() ? 0 : swaps_.otherwise_ns;
  }

 private:
  void write_places() {
    const swap::Problem& problem = swaps_.problem;
    if (problem.blocks.size() != planned_.size() + swaps_.pages.size())
      throw std::logic_error("blocks of another problem");
    std::uint32_t block = 0;
    for (; block < planned_.size(); ++block) {
      shm::PlannedMalloc& malloc = parts_.mallocs[block];
      malloc.first_place = parts_.places.size();
      malloc.places = 0;
      // As the swaps were planned for: where threads meet differently each time, the last repeat counts.
      malloc.born = static_cast<std::uint32_t>(positions_.at(liveness_.of[block].born));
      malloc.freed = static_cast<std::uint64_t>(positions_.at(liveness_.of[block].freed));
      if (!planned_[block]) continue;
      for (const std::uint64_t offset : swaps_.decisions.places[block].offsets) {
        parts_.places.push_back(place(offset, problem.blocks[block].bytes));
        ++malloc.places;
      }
    }
    if (swaps_.decisions.swaps.empty()) return;
    for (const StayingPages& pages : swaps_.pages) {
      const std::vector<std::uint64_t>& offsets = swaps_.decisions.places[block++].offsets;
      parts_.pages.push_back({pages.address, place(offsets.at(0), pages.bytes)});
    }
  }

  shm::Place place(std::uint64_t offset, std::uint64_t bytes) {
    const std::uint64_t rounded = place_bytes(bytes);
    slab_ = std::max(slab_, offset + rounded);
    return {offset, rounded};
  }

  void write_swaps() {
    std::uint64_t order = 0;
    for (const swap::Swap& swap : swaps_.decisions.swaps) {
      const bool pages = swap.block >= planned_.size();
      if (!pages && !planned_[swap.block]) {
        throw CannotFollow("it swaps a block of the driver's own");
      }
      std::int64_t out = std::max(positions_.behind(swap.out_after), last_access_until(swap.block, swap.out_after));
      std::int64_t in = swap.returns() ? std::max(positions_.behind(swap.in_after), out) : 0;
      std::int64_t need = swap.returns() ? positions_.at(swap.need) : 0;
      if (swap.returns() && in >= need) throw CannotFollow("it swaps a block within one operation");
      if (out < 0) out += operations_, in += operations_, need += operations_;  // before the first of an iteration
      parts_.swaps.push_back({pages ? swap.block - planned_.size() : swap.block,
                              (pages ? shm::kSwapPages : 0) | (swap.copy ? shm::kSwapCopies : 0), point(out),
                              swap.returns() ? point(in) : shm::kNoPosition,
                              swap.returns() ? point(need) : shm::kNoPosition, order++});
    }
    std::sort(parts_.swaps.begin(), parts_.swaps.end(), [](const shm::PlannedSwap& a, const shm::PlannedSwap& b) {
      const auto key = [](const shm::PlannedSwap& swap) {
        return std::tuple(swap.flags & shm::kSwapPages, swap.block, swap.out_after);
      };
      return key(a) < key(b);
    });
    std::sort(ranks_.begin(), ranks_.end());
    ranks_.erase(std::unique(ranks_.begin(), ranks_.end()), ranks_.end());
    for (const std::uint64_t rank : ranks_) {
      if (!points_[rank]) throw CannotFollow("it swaps at operations of a thread that allocates nothing");
      parts_.points.push_back(*points_[rank]);
    }
  }

  // A launch that takes no time has its blocks' accesses one after the other; as an operation it has them all.
  std::int64_t last_access_until(std::uint32_t block, std::uint64_t position) const {
    const auto accesses = liveness_.accesses_of(block);
    const auto behind =
        std::upper_bound(accesses.begin(), accesses.end(), position,
                         [](std::uint64_t p, const swap::Access& access) { return p < access.position; });
    return behind == accesses.begin() ? -operations_ : positions_.at(std::prev(behind)->position);
  }

  std::uint64_t point(std::int64_t position) {
    ranks_.push_back(static_cast<std::uint64_t>(position % operations_));
    return static_cast<std::uint64_t>(position);
  }

  const SwapPlanParts& swaps_;
  std::int64_t operations_;
  Positions positions_;
  const Points& points_;  // by rank
  const swap::Liveness liveness_;
  PlanParts& parts_;
  std::vector<bool> planned_;         // by malloc
  std::vector<std::uint64_t> ranks_;  // that swaps name
  std::uint64_t slab_ = 0;
};

}  // namespace

void join_launches(const std::vector<std::uint64_t>& ranks, swap::Problem& problem) {
  for (std::size_t i = 1; i < problem.operations.size(); ++i) {
    problem.operations[i].continues =
        ranks[i] == ranks[i - 1] && is_access(problem.operations[i]) && is_access(problem.operations[i - 1]);
  }
}

std::optional<std::string> why_not_swapped(const swap::Problem& problem) {
  if (std::none_of(problem.operations.begin(), problem.operations.end(), swap::is_access)) {
    return "it does not say when blocks are accessed: expected Read and Mutable, or launches, in its iteration";
  }
  if (problem.period <= 0) return "all its operations happen at the same time";
  return std::nullopt;
}

SwapPlanWriter::SwapPlanWriter(const OperationStore& store, const IterationPlan& plan,
                               std::vector<std::uint64_t> persistent)
    : header_(header_of(plan)),
      lanes_(plan.lifetimes.lanes),
      points_(points_of(store, plan.lifetimes)),
      persistent_(std::move(persistent)) {}

std::vector<std::byte> SwapPlanWriter::bytes(const SwapPlanParts& swaps, std::string& fault) const {
  PlanParts parts;
  parts.header = header_;
  parts.persistent = persistent_;
  try {
    Writer(lanes_, points_, swaps, parts).write();
  } catch (const CannotFollow& error) {
    fault = error.what();
    return {};
  }
  std::vector<std::byte> bytes = plan_bytes(parts);
  if (bytes.empty()) fault = fmt::format("it is larger than {} bytes", shm::kMaxPlanBytes);
  return bytes;
}

}  // namespace memopt::planner
