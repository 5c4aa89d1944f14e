#include "planner/iteration/plan_bytes.h"

#include <algorithm>
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

shm::PlanHeader header_of(const IterationPlan& plan) {
  shm::PlanHeader header{};
  header.signature = plan.lifetimes.signature;
  header.operations = plan.lifetimes.operations;
  header.peak_load = plan.lifetimes.peak_load;
  header.persistent_bytes = plan.lifetimes.persistent_bytes;
  header.first_iteration = plan.lifetimes.first_iteration;
  header.detected_at = plan.detected_at;
  return header;
}

namespace {

std::uint64_t gap_of(const LaneMallocs& lane, std::size_t malloc) {
  return lane.gaps.empty() ? shm::kNoGap : lane.gaps[malloc];
}

// Each malloc with places of its own.
void add_separate(const IterationPlan& plan, PlanParts& parts) {
  const std::uint64_t operations = plan.lifetimes.operations;
  std::size_t first = 0;  // buffer of the lane's first malloc
  for (const LaneMallocs& lane : plan.lifetimes.lanes) {
    parts.lanes.push_back({lane.lane, lane.match, parts.mallocs.size(), lane.mallocs.size() * plan.rounds});
    std::size_t buffers = 0;
    for (std::uint64_t round = 0; round < plan.rounds; ++round) {
      buffers = 0;
      for (std::size_t i = 0; i < lane.mallocs.size(); ++i) {
        const MallocLife& malloc = lane.mallocs[i];
        const std::uint32_t turns = plan.rounds > 1 ? std::min(malloc.places, 1u) : malloc.places;
        parts.mallocs.push_back({malloc.bytes, malloc.return_address, parts.places.size(), turns,
                                 static_cast<std::uint32_t>(malloc.born + round * operations),
                                 malloc.freed + round * operations, gap_of(lane, i)});
        for (std::uint32_t turn = 0; turn < turns; ++turn) {
          parts.places.push_back(
              {plan.outcome.solution.offsets[first + buffers + round + turn], place_bytes(malloc.bytes)});
        }
        buffers += plan.rounds > 1 ? turns * plan.rounds : turns;
      }
    }
    first += buffers;
  }
}

void add_pooled(const IterationPlan& plan, PlanParts& parts) {
  const Pools& pools = *plan.pools;
  const std::vector<std::uint64_t>& offsets = plan.outcome.solution.offsets;
  // Their places come first.
  std::vector<std::uint64_t> pool_begins;
  for (std::size_t i = 0; i < pools.pools.size(); ++i) {
    pool_begins.push_back(parts.places.size());
    const std::uint64_t begin = offsets[offsets.size() - plan.lifetimes.in_slab.size() - pools.pools.size() + i];
    for (std::uint32_t place = 0; place < pools.pools[i].places; ++place) {
      parts.places.push_back({begin + place * pools.pools[i].bytes, pools.pools[i].bytes});
    }
  }
  std::size_t buffer = 0;
  for (std::size_t k = 0; k < plan.lifetimes.lanes.size(); ++k) {
    const LaneMallocs& lane = plan.lifetimes.lanes[k];
    parts.lanes.push_back({lane.lane, lane.match, parts.mallocs.size(), lane.mallocs.size()});
    std::vector<std::uint64_t> own(lane.mallocs.size());
    for (std::size_t i = 0; i < lane.mallocs.size(); ++i) {
      const MallocLife& malloc = lane.mallocs[i];
      const std::uint32_t pool = pools.of[k][i];
      shm::PlannedMalloc planned{malloc.bytes, malloc.return_address, 0, 1, static_cast<std::uint32_t>(malloc.born),
                                 malloc.freed, gap_of(lane, i)};
      if (malloc.places == 0) {
        planned.places = 0;
      } else if (pool != Pools::kNoPool) {
        planned.first_place = pool_begins[pool];
        planned.places = pools.pools[pool].places;
      } else if (pools.leads[k][i] == i) {
        planned.first_place = own[i] = parts.places.size();
        parts.places.push_back({offsets[buffer++], place_bytes(malloc.bytes)});
      } else {
        planned.first_place = own[pools.leads[k][i]];
      }
      parts.mallocs.push_back(planned);
    }
  }
}

}  // namespace

PlanParts plan_parts(const IterationPlan& plan, const std::vector<std::uint64_t>& persistent) {
  PlanParts parts;
  if (plan.pools) {
    add_pooled(plan, parts);
  } else {
    add_separate(plan, parts);
  }
  parts.persistent = persistent;
  parts.header = header_of(plan);
  parts.header.operations *= plan.rounds;
  parts.header.slab_bytes = plan.outcome.solution.height;
  parts.header.lower_bound = plan.outcome.lower_bound;
  for (const KeptChunk& chunk : plan.lifetimes.kept_chunks) parts.chunks.push_back({chunk.address, chunk.offset});
  if (!parts.chunks.empty()) parts.header.chunk_bytes = plan.chunk_bytes;
  return parts;
}

std::vector<std::byte> plan_bytes(const PlanParts& parts) {
  shm::PlanHeader header = parts.header;
  std::uint64_t end = sizeof(header);
  header.magic = shm::kPlanMagic;
  header.format = shm::kPlanFormat;
  header.header_bytes = sizeof(header);
  header.lanes = reserve<shm::PlannedLane>(end, parts.lanes.size());
  header.mallocs = reserve<shm::PlannedMalloc>(end, parts.mallocs.size());
  header.places = reserve<shm::Place>(end, parts.places.size());
  header.persistent = reserve<std::uint64_t>(end, parts.persistent.size());
  header.pages = reserve<shm::PlannedPages>(end, parts.pages.size());
  header.swaps = reserve<shm::PlannedSwap>(end, parts.swaps.size());
  header.points = reserve<shm::PlannedPoint>(end, parts.points.size());
  header.chunks = reserve<shm::PlannedChunk>(end, parts.chunks.size());
  header.replays = {end, 0};
  header.bytes = end;
  if (end > shm::kMaxPlanBytes) return {};
  std::vector<std::byte> bytes(end);
  write(bytes, header.lanes, parts.lanes);
  write(bytes, header.mallocs, parts.mallocs);
  write(bytes, header.places, parts.places);
  write(bytes, header.persistent, parts.persistent);
  write(bytes, header.pages, parts.pages);
  write(bytes, header.swaps, parts.swaps);
  write(bytes, header.points, parts.points);
  write(bytes, header.chunks, parts.chunks);
  header.checksum = shm::plan_checksum(bytes.data() + sizeof(header), bytes.size() - sizeof(header));
  std::memcpy(bytes.data(), &header, sizeof(header));
  return bytes;
}

}  // namespace memopt::planner
