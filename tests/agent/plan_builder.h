// A plan on its way from the planner: parts to be put together, and the bytes that are sent. The parts may be spoilt.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "shm/plan.h"

namespace memopt::test {

struct PlanBuilder {
  shm::PlanHeader header{};
  std::vector<shm::PlannedLane> lanes;
  std::vector<shm::PlannedMalloc> mallocs;
  std::vector<shm::Place> places;
  std::vector<std::uint64_t> persistent;
  std::vector<shm::PlannedPages> pages;
  std::vector<shm::PlannedSwap> swaps;
  std::vector<shm::PlannedPoint> points;
  std::vector<shm::PlannedChunk> chunks;

  // A small valid plan: 20 operations; lane 0 with four mallocs, of which the last outlives the iteration and has two
  // places, lane 3 with one that crosses the boundary and one that is not planned.
  static PlanBuilder small() {
    PlanBuilder plan;
    plan.header.magic = shm::kPlanMagic;
    plan.header.format = shm::kPlanFormat;
    plan.header.header_bytes = sizeof(shm::PlanHeader);
    plan.header.generation = 7;
    plan.header.signature = 0x1234;
    plan.header.operations = 20;
    plan.header.slab_bytes = 16 * 1024;
    plan.header.peak_load = 9000;
    plan.header.lower_bound = 8192;
    plan.header.persistent_bytes = 300;
    plan.header.first_iteration = 100;
    plan.header.detected_at = 160;
    plan.lanes = {{0, 2, 0, 4}, {3, 1, 4, 2}};
    plan.mallocs = {
        {1000, 0xa000, 0, 1, 0, 4},   // [0, 1024)
        {600, 0xb000, 1, 1, 2, 6},    // [1024, 2048)
        {1000, 0xa000, 2, 1, 5, 9},   // [0, 1024) again
        {2048, 0xc000, 3, 2, 7, 28},  // lives for 21: two places
        {512, 0xd000, 5, 1, 15, 22},  // over the boundary, until 2
        {100, 0xe000, 0, 0, 10, 11},  // not planned
    };
    plan.places = {{0, 1024}, {1024, 1024}, {0, 1024}, {8192, 2048}, {10240, 2048}, {1024, 512}};
    plan.persistent = {9, 4, 4, 12};
    return plan;
  }

  // The same with swaps: malloc 2 is in the place of malloc 1 while that is away, and pages 1 are in that of pages 0.
  // Malloc 3 is away over the boundary, and malloc 4 is freed while away.
  static PlanBuilder swapping() {
    PlanBuilder plan = small();
    plan.header.chunk_bytes = 1024;
    plan.header.period_ns = 5'000'000;
    plan.header.added_ns = 1000;
    plan.header.slab_bytes = 32 * 1024;
    plan.mallocs[0].freed = 3;
    plan.mallocs[1].freed = 9;
    plan.mallocs[2].born = 4;
    plan.mallocs[2].freed = 6;
    plan.places[2].offset = 1024;
    plan.pages = {{0x10000, {16384, 1024}}, {0x10400, {16384, 1024}}, {0x20000, {17408, 2048}}};
    constexpr std::uint64_t kPages = shm::kSwapPages | shm::kSwapCopies;
    plan.swaps = {
        {1, shm::kSwapCopies, 3, 5, 7, 0},
        {3, shm::kSwapCopies, 8, 17, 25, 1},
        {4, 0, 17, shm::kNoPosition, shm::kNoPosition, 2},
        {0, kPages, 3, 5, 6, 3},
        {0, kPages, 8, 17, 18, 4},
        {1, kPages, 17, 28, 29, 5},
    };
    plan.points = {{3, 0, 1, 1, 0},  {5, 0, 2, 1, 0}, {6, 0, 2, 1, shm::kPointUncounted},
                   {7, 0, 3, 0, 0},  {8, 0, 3, 1, 0}, {9, 0, 3, 2, 0},
                   {17, 3, 0, 2, 0}, {18, 3, 0, 3, 0}};
    return plan;
  }

  // Tables one behind the other; offsets, counts, size and checksum of the header are filled in.
  std::vector<std::byte> bytes() const {
    std::vector<std::byte> all(sizeof(shm::PlanHeader));
    shm::PlanHeader head = header;
    head.lanes = append(all, lanes);
    head.mallocs = append(all, mallocs);
    head.places = append(all, places);
    head.persistent = append(all, persistent);
    head.pages = append(all, pages);
    head.swaps = append(all, swaps);
    head.points = append(all, points);
    head.chunks = append(all, chunks);
    head.replays.offset += all.size();
    head.bytes = all.size();
    write_header(all, head);
    return all;
  }

  static shm::PlanHeader read_header(const std::vector<std::byte>& all) {
    shm::PlanHeader head;
    std::memcpy(&head, all.data(), sizeof(head));
    return head;
  }
  static void write_header(std::vector<std::byte>& all, shm::PlanHeader head) {
    head.checksum = shm::plan_checksum(all.data() + sizeof(head), all.size() - sizeof(head));
    std::memcpy(all.data(), &head, sizeof(head));
  }

 private:
  template <typename Entry>
  static shm::PlanTable append(std::vector<std::byte>& all, const std::vector<Entry>& entries) {
    const shm::PlanTable table{all.size(), entries.size()};
    all.resize(all.size() + entries.size() * sizeof(Entry));
    if (!entries.empty()) std::memcpy(all.data() + table.offset, entries.data(), entries.size() * sizeof(Entry));
    return table;
  }
};

}  // namespace memopt::test
