#include "planner/iteration/plan_bytes.h"

#include <cstring>

#include "shm/plan.h"

namespace memopt::planner {
namespace {

template <typename Entry>
shm::PlanTable reserve(std::uint64_t& end, std::size_t count) {
  static_assert(sizeof(Entry) % 8 == 0);
  const shm::PlanTable table{end, count};
  end += count * sizeof(Entry);
  return table;
}

template <typename Entry>
void write(std::vector<std::byte>& bytes, const shm::PlanTable& table, const std::vector<Entry>& entries) {
  if (!entries.empty()) std::memcpy(bytes.data() + table.offset, entries.data(), entries.size() * sizeof(Entry));
}

}  // namespace

std::vector<std::byte> plan_bytes(const IterationPlan& plan, const std::vector<std::uint64_t>& persistent,
                                  std::uint64_t generation) {
  std::vector<shm::PlannedLane> lanes;
  std::vector<shm::PlannedMalloc> mallocs;
  std::vector<shm::Place> places;
  const std::uint64_t operations = plan.lifetimes.operations;
  std::size_t first = 0;  // buffer of the lane's first malloc
  for (const LaneMallocs& lane : plan.lifetimes.lanes) {
    lanes.push_back({lane.lane, lane.match, mallocs.size(), lane.mallocs.size() * plan.rounds});
    std::size_t buffers = 0;
    for (std::uint64_t round = 0; round < plan.rounds; ++round) {
      buffers = 0;
      for (const MallocLife& malloc : lane.mallocs) {
        const std::uint32_t turns = plan.rounds > 1 ? 1 : malloc.places;
        mallocs.push_back({malloc.bytes, malloc.return_address, places.size(), turns,
                           static_cast<std::uint32_t>(malloc.born + round * operations),
                           malloc.freed + round * operations});
        for (std::uint32_t turn = 0; turn < turns; ++turn) {
          places.push_back({plan.outcome.solution.offsets[first + buffers + round + turn], place_bytes(malloc.bytes)});
        }
        buffers += plan.rounds > 1 ? plan.rounds : turns;
      }
    }
    first += buffers;
  }

  shm::PlanHeader header{};
  std::uint64_t end = sizeof(header);
  header.magic = shm::kPlanMagic;
  header.format = shm::kPlanFormat;
  header.header_bytes = sizeof(header);
  header.generation = generation;
  header.signature = plan.lifetimes.signature;
  header.operations = operations * plan.rounds;
  header.slab_bytes = plan.outcome.solution.height;
  header.peak_load = plan.lifetimes.peak_load;
  header.lower_bound = plan.outcome.lower_bound;
  header.persistent_bytes = plan.lifetimes.persistent_bytes;
  header.first_iteration = plan.lifetimes.first_iteration;
  header.detected_at = plan.detected_at;
  header.lanes = reserve<shm::PlannedLane>(end, lanes.size());
  header.mallocs = reserve<shm::PlannedMalloc>(end, mallocs.size());
  header.places = reserve<shm::Place>(end, places.size());
  header.persistent = reserve<std::uint64_t>(end, persistent.size());
  header.swaps = {end, 0};
  header.replays = {end, 0};
  header.bytes = end;
  if (end > shm::kMaxPlanBytes) return {};
  std::vector<std::byte> bytes(end);
  write(bytes, header.lanes, lanes);
  write(bytes, header.mallocs, mallocs);
  write(bytes, header.places, places);
  write(bytes, header.persistent, persistent);
  header.checksum = shm::plan_checksum(bytes.data() + sizeof(header), bytes.size() - sizeof(header));
  std::memcpy(bytes.data(), &header, sizeof(header));
  return bytes;
}

}  // namespace memopt::planner
