#include <algorithm>

#include "agent/plan/plan_checks.h"

namespace memopt::agent {
namespace {

using shm::kNoPosition;
using shm::PlannedPoint;
using shm::PlannedSwap;

void check_points(const Plan& plan) {
  for (std::size_t i = 0; i < plan.points.size(); ++i) {
    const PlannedPoint& point = plan.points[i];
    require(point.rank < plan.operations, "point {} at operation {}: expected less than {}", i, point.rank,
            plan.operations);
    require(i == 0 || plan.points[i - 1].rank < point.rank, "point {} at operation {}: expected more than {}", i,
            point.rank, i == 0 ? 0 : plan.points[i - 1].rank);
    const Plan::Lane* const lane = plan.find_lane(point.lane);
    require(lane != nullptr, "point {} in lane {}: expected one of the plan's lanes", i, point.lane);
    require(point.malloc < lane->mallocs.size(), "point {} behind malloc {} of lane {}: expected less than {}", i,
            point.malloc, point.lane, lane->mallocs.size());
    require(point.operations <= plan.operations, "point {} behind {} operations: expected at most {}", i,
            point.operations, plan.operations);
    require((point.flags & ~shm::kPointUncounted) == 0, "point {}: flags {:#x}: expected none but {}", i, point.flags,
            shm::kPointUncounted);
  }
}

void check_pages(const Plan& plan) {
  const auto& pages = plan.pages;
  for (std::size_t i = 0; i < pages.size(); ++i) {
    const auto& [address, place] = pages[i];
    require(address != 0 && address % plan.chunk_bytes == 0 && place.offset % plan.chunk_bytes == 0 &&
                place.bytes % plan.chunk_bytes == 0,
            "pages {} of address {:#x}, {} bytes at {}: expected multiples of {}", i, address, place.bytes,
            place.offset, plan.chunk_bytes);
    require(address <= ~place.bytes, "pages {} of address {:#x}, {} bytes: expected addresses", i, address,
            place.bytes);
    require(i == 0 || pages[i - 1].address + pages[i - 1].place.bytes <= address,
            "pages {} of address {:#x}: expected at least {:#x}, behind those before", i, address,
            i == 0 ? 0 : pages[i - 1].address + pages[i - 1].place.bytes);
  }
}

// `what` operation a position of a swap is, for the error.
void check_position(const Plan& plan, std::size_t swap, const char* what, std::uint64_t position) {
  const std::uint64_t rank = position % plan.operations;
  const auto point = std::lower_bound(plan.points.begin(), plan.points.end(), rank,
                                      [](const PlannedPoint& a, std::uint64_t b) { return a.rank < b; });
  require(point != plan.points.end() && point->rank == rank, "swap {}: {} {}: expected a point for operation {}", swap,
          what, position, rank);
}

}  // namespace

void check_order_of_swaps(const Plan& plan) {
  for (std::size_t i = 1; i < plan.swaps.size(); ++i) {
    require(key_of(plan.swaps[i - 1]) <= key_of(plan.swaps[i]),
            "swap {} of block {}: expected them block by block, mallocs first", i, plan.swaps[i].block);
  }
}

void check_swaps(const Plan& plan) {
  check_points(plan);
  if (plan.swaps.empty()) {
    require(plan.pages.empty(), "pages: {} entries: expected none without swaps", plan.pages.size());
    require(plan.chunk_bytes == 0 || !plan.chunks.empty(), "chunk_bytes {}: expected 0 without swaps and chunks",
            plan.chunk_bytes);
  }
  if (plan.swaps.empty() && plan.chunks.empty()) return;
  require(plan.chunk_bytes != 0 && plan.chunk_bytes % shm::kPlanAlignment == 0,
          "chunk_bytes {}: expected a multiple of {}, not 0", plan.chunk_bytes, shm::kPlanAlignment);
  check_pages(plan);
  if (plan.swaps.empty()) return;
  // Far from an overflow: positions are at most so many iterations behind the malloc.
  constexpr std::uint64_t kMostIterations = 64;
  const std::uint64_t furthest = plan.operations * kMostIterations;
  const auto check_aligned = [&](std::size_t i, const shm::Place& place) {
    require(place.offset % plan.chunk_bytes == 0, "swap {} of a block at {}: expected a multiple of {}", i,
            place.offset, plan.chunk_bytes);
  };
  for (std::size_t i = 0; i < plan.swaps.size(); ++i) {
    const PlannedSwap& swap = plan.swaps[i];
    require((swap.flags & ~(shm::kSwapPages | shm::kSwapCopies)) == 0, "swap {}: flags {:#x}: expected none but {}", i,
            swap.flags, shm::kSwapPages | shm::kSwapCopies);
    const bool of_pages = (swap.flags & shm::kSwapPages) != 0;
    const bool returns = swap.need != kNoPosition;
    std::uint64_t born = 0, freed = furthest;
    if (of_pages) {
      require(swap.block < plan.pages.size(), "swap {} of pages {}: expected less than {}", i, swap.block,
              plan.pages.size());
      require(returns && swap.out_after < plan.operations,
              "swap {} of pages {} after {}: expected less than {}, and that they come back", i, swap.block,
              swap.out_after, plan.operations);
    } else {
      require(swap.block < plan.mallocs.size(), "swap {} of malloc {}: expected less than {}", i, swap.block,
              plan.mallocs.size());
      const shm::PlannedMalloc& malloc = plan.mallocs[swap.block];
      require(malloc.places != 0, "swap {} of malloc {}, which is not planned: expected places", i, swap.block);
      born = malloc.born;
      freed = std::min(malloc.freed, furthest);
      for (const shm::Place& place : plan.places_of(malloc)) check_aligned(i, place);
    }
    require(swap.out_after >= born && swap.out_after < freed, "swap {} of block {} after {}: expected {} to {}", i,
            swap.block, swap.out_after, born, freed - 1);
    check_position(plan, i, "out_after", swap.out_after);
    if (returns) {
      require(swap.out_after <= swap.in_after && swap.in_after < swap.need && swap.need <= freed,
              "swap {} of block {}: back after {} for {}: expected both behind {}, in this order, and at most {}", i,
              swap.block, swap.in_after, swap.need, swap.out_after, freed);
      check_position(plan, i, "in_after", swap.in_after);
      check_position(plan, i, "need", swap.need);
    } else {
      require(swap.in_after == kNoPosition, "swap {} of block {}: back after {} for nothing: expected neither", i,
              swap.block, swap.in_after);
    }
    if (of_pages) {
      // Of their first swap, an iteration later.
      const std::uint64_t next = plan.swaps_of(swap.block, true).front().out_after + plan.operations;
      require(swap.need <= next, "swap {} of pages {}: needed at {}: expected at most {}", i, swap.block, swap.need,
              next);
    }
    if (i == 0 || key_of(plan.swaps[i - 1]) != key_of(swap)) continue;
    const PlannedSwap& before = plan.swaps[i - 1];
    require(before.need != kNoPosition && before.need <= swap.out_after,
            "swap {} of block {} after {}: expected it back from the one before", i, swap.block, swap.out_after);
  }
}

}  // namespace memopt::agent
