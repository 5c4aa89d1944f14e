#include "planner/layout/published/greedy_fit.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "planner/layout/published/occupied_space.h"

namespace memopt::layout {
namespace {

std::uint64_t find_place(const OccupiedSpace& space, const Problem& problem, std::size_t buffer, std::uint64_t extent,
                         Fit fit) {
  const std::uint64_t alignment = problem.buffers[buffer].alignment;
  std::uint64_t best = kAnywhere;
  std::uint64_t best_hole = kAnywhere;
  std::uint64_t top = 0;  // of the buffers visited so far
  space.visit(buffer, [&](std::uint64_t bottom, std::uint64_t its_top) {
    if (bottom > top) {
      const std::uint64_t hole = bottom - top;
      const std::uint64_t place = hole >= extent && hole < best_hole ? align_up(top, alignment) : kAnywhere;
      if (place < bottom && bottom - place >= extent) {
        best = place;
        best_hole = hole;
        if (fit == Fit::kFirst || hole == extent) return kAnywhere;
      }
    }
    return top = std::max(top, its_top);
  });
  return best != kAnywhere ? best : align_up(top, alignment);
}

}  // namespace

std::vector<std::uint64_t> place_greedily(const Problem& problem, std::span<const std::uint32_t> order,
                                          std::span<const std::uint64_t> extents, Fit fit, const Limits& limits,
                                          const std::function<bool(std::size_t placed)>& stop) {
  const auto started = std::chrono::steady_clock::now();
  OccupiedSpace space(problem);
  std::vector<std::uint64_t> offsets(problem.buffers.size());
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    if (buffer.fixed == kAnywhere) continue;
    offsets[i] = buffer.fixed;
    space.take(i, buffer.fixed, buffer.fixed + buffer.bytes);
  }
  std::size_t placed = 0;
  for (const std::uint32_t i : order) {
    if (problem.buffers[i].fixed != kAnywhere) continue;
    if (++placed % kPlacementsBetweenStops == 0) {
      if (limits.cancelled && limits.cancelled->load(std::memory_order_relaxed)) return {};
      if (std::chrono::steady_clock::now() - started >= limits.time) return {};
      if (stop && stop(placed)) return {};
    }
    offsets[i] = find_place(space, problem, i, extents[i], fit);
    space.take(i, offsets[i], offsets[i] + extents[i]);
  }
  return offsets;
}

std::vector<std::uint32_t> largest_first(std::span<const std::uint64_t> extents) {
  std::vector<std::uint32_t> order(extents.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return extents[a] > extents[b]; });
  return order;
}

}  // namespace memopt::layout
