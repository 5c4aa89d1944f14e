#include "agent/plan/plan.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "agent/plan/plan_checks.h"

namespace memopt::agent {
namespace {

using shm::Place;
using shm::PlanHeader;
using shm::PlannedChunk;
using shm::PlannedLane;
using shm::PlannedMalloc;
using shm::PlannedPages;
using shm::PlannedPoint;
using shm::PlannedSwap;
using shm::PlanTable;

PlanHeader read_header(std::span<const std::byte> bytes) {
  require(bytes.size() >= sizeof(PlanHeader), "{} bytes: expected at least a header of {}", bytes.size(),
          sizeof(PlanHeader));
  require(bytes.size() <= shm::kMaxPlanBytes, "{} bytes: expected at most {}", bytes.size(), shm::kMaxPlanBytes);
  require(bytes.size() % 8 == 0, "{} bytes: expected a multiple of 8", bytes.size());
  PlanHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  require(header.magic == shm::kPlanMagic, "magic {:#x}: expected {:#x}", header.magic, shm::kPlanMagic);
  require(header.format == shm::kPlanFormat, "format {}: expected {}", header.format, shm::kPlanFormat);
  require(header.header_bytes == sizeof(PlanHeader), "header_bytes {}: expected {}", header.header_bytes,
          sizeof(PlanHeader));
  require(header.bytes == bytes.size(), "bytes {}: expected {}, the size of the memory", header.bytes, bytes.size());
  const std::span<const std::byte> behind = bytes.subspan(sizeof(PlanHeader));
  const std::uint64_t checksum = shm::plan_checksum(behind.data(), behind.size());
  require(header.checksum == checksum, "checksum {:#x}: expected {:#x}", header.checksum, checksum);
  require(header.generation != 0, "generation 0: expected at least 1");
  require(header.operations >= 1 && header.operations <= UINT32_MAX, "operations {}: expected 1 to {}",
          header.operations, UINT32_MAX);
  require(header.slab_bytes % shm::kPlanAlignment == 0, "slab_bytes {}: expected a multiple of {}", header.slab_bytes,
          shm::kPlanAlignment);
  require(header.replays.count == 0, "replays: {} entries: expected none in this format", header.replays.count);
  return header;
}

template <typename Entry>
std::vector<Entry> read_table(std::span<const std::byte> bytes, const PlanTable& table, const char* name) {
  if (table.count == 0) return {};
  require(table.offset % 8 == 0, "{} table at {}: expected a multiple of 8", name, table.offset);
  require(table.offset >= sizeof(PlanHeader) && table.offset <= bytes.size(), "{} table at {}: expected {} to {}", name,
          table.offset, sizeof(PlanHeader), bytes.size());
  const std::uint64_t room = (bytes.size() - table.offset) / sizeof(Entry);
  require(table.count <= room, "{} table of {} entries: expected at most {} before the end", name, table.count, room);
  std::vector<Entry> entries(table.count);
  std::memcpy(entries.data(), bytes.data() + table.offset, table.count * sizeof(Entry));
  return entries;
}

void check_place(const Plan& plan, const Place& place, const char* name, std::uint64_t number) {
  require(place.offset % shm::kPlanAlignment == 0 && place.bytes % shm::kPlanAlignment == 0 && place.bytes != 0,
          "{} {} at {} of {} bytes: expected multiples of {}, not empty", name, number, place.offset, place.bytes,
          shm::kPlanAlignment);
  require(place.bytes <= plan.slab_bytes && place.offset <= plan.slab_bytes - place.bytes,
          "{} {} at {} of {} bytes: expected within the slab of {}", name, number, place.offset, place.bytes,
          plan.slab_bytes);
}

void check_places(const Plan& plan) {
  for (std::size_t i = 0; i < plan.places.size(); ++i) check_place(plan, plan.places[i], "place", i);
  for (std::size_t i = 0; i < plan.pages.size(); ++i) check_place(plan, plan.pages[i].place, "place of pages", i);
}

// How many blocks of this malloc are alive at the same time.
std::uint64_t alive_at_once(const Plan& plan, const PlannedMalloc& malloc) {
  const std::uint64_t lifetime = malloc.freed - malloc.born;
  return lifetime / plan.operations + (lifetime % plan.operations != 0 ? 1 : 0);
}

void check_malloc(Plan& plan, std::size_t i) {
  PlannedMalloc& malloc = plan.mallocs[i];
  if (malloc.places == 0) malloc.first_place = 0;  // it is not checked: keep it in bounds
  require(malloc.bytes != 0, "malloc {}: 0 bytes", i);
  require(malloc.born < plan.operations, "malloc {} born at {}: expected less than {} operations", i, malloc.born,
          plan.operations);
  require(malloc.freed > malloc.born, "malloc {} freed at {}: expected later than {}", i, malloc.freed, malloc.born);
  if (malloc.places == 0) return;
  require(malloc.first_place <= plan.places.size() && malloc.places <= plan.places.size() - malloc.first_place,
          "malloc {} with {} places from {}: expected within {}", i, malloc.places, malloc.first_place,
          plan.places.size());
  // One that is swapped may be away while the next of its blocks is there: the sweep looks at that.
  const bool shared = malloc.places == 1 && !plan.swaps_of(i, false).empty();
  require(shared || malloc.places >= alive_at_once(plan, malloc),
          "malloc {} with {} places: expected {}, one per live block", i, malloc.places, alive_at_once(plan, malloc));
}

// That those of a pool have as many places as ever live at once.
void check_pool(const Plan& plan, std::span<const std::uint32_t> members) {
  const PlannedMalloc& first = plan.mallocs[members.front()];
  std::uint64_t always = 0;
  std::vector<std::pair<std::uint64_t, int>> changes;  // by rank
  for (const std::uint32_t i : members) {
    const PlannedMalloc& malloc = plan.mallocs[i];
    require(members.size() == 1 || plan.swaps_of(i, false).empty(),
            "malloc {} is swapped: expected places that no other malloc lists", i);
    const std::uint64_t lifetime = malloc.freed - malloc.born;
    const std::uint64_t end = malloc.born + lifetime % plan.operations;
    always += lifetime / plan.operations;
    if (end == malloc.born) continue;
    changes.emplace_back(malloc.born, 1);
    changes.emplace_back(end % plan.operations, -1);
    if (end > plan.operations) changes.emplace_back(0, 1);
    if (end == plan.operations) changes.pop_back();
  }
  // What leaves goes first.
  std::sort(changes.begin(), changes.end());
  std::uint64_t live = always, most = always;
  for (const auto& [rank, change] : changes) {
    live += static_cast<std::uint64_t>(static_cast<std::int64_t>(change));
    most = std::max(most, live);
  }
  // Of one place, and of what is swapped, the sweep over time says more.
  require(first.places == 1 || most <= first.places,
          "malloc {} and {} others with {} places: expected {}, one per live block", members.front(),
          members.size() - 1, first.places, most);
}

// Mallocs that list the same places are a pool; no place is in two.
void check_pools(Plan& plan) {
  std::vector<std::uint32_t>& pooled = plan.pooled;
  for (std::uint32_t i = 0; i < plan.mallocs.size(); ++i) {
    if (plan.mallocs[i].places != 0) pooled.push_back(i);
  }
  const auto range = [&](std::uint32_t i) { return std::pair(plan.mallocs[i].first_place, plan.mallocs[i].places); };
  std::sort(pooled.begin(), pooled.end(),
            [&](std::uint32_t a, std::uint32_t b) { return std::pair(range(a), a) < std::pair(range(b), b); });
  for (std::size_t begin = 0, end = 0; begin < pooled.size(); begin = end) {
    while (end < pooled.size() && range(pooled[end]) == range(pooled[begin])) ++end;
    const auto [first, count] = range(pooled[begin]);
    if (end < pooled.size()) {
      const PlannedMalloc& next = plan.mallocs[pooled[end]];
      require(next.first_place >= first + count,
              "malloc {} with {} places from {}: expected the same places as malloc {}, or none of them", pooled[end],
              next.places, next.first_place, pooled[begin]);
    }
    const std::span<const std::uint32_t> members = std::span(pooled).subspan(begin, end - begin);
    std::uint64_t bytes = 0;
    for (const std::uint32_t i : members) bytes = std::max(bytes, plan.mallocs[i].bytes);
    for (const Place& place : plan.places_of(plan.mallocs[pooled[begin]])) {
      if (place.bytes >= bytes) continue;
      const auto large = std::find_if(members.begin(), members.end(),
                                      [&](std::uint32_t i) { return plan.mallocs[i].bytes > place.bytes; });
      throw Refused{fmt::format("malloc {} of {} bytes in a place of {}: expected room", *large,
                                plan.mallocs[*large].bytes, place.bytes)};
    }
    check_pool(plan, members);
  }
}

void check_mallocs(Plan& plan) {
  for (std::size_t i = 0; i < plan.mallocs.size(); ++i) check_malloc(plan, i);
  check_pools(plan);
}

// How often the last `match` mallocs of a lane's sequence occur in it, cyclically (Knuth, Morris and Pratt 1977).
std::size_t occurrences_of_end(std::span<const PlannedMalloc> sequence, std::size_t match) {
  const auto same = [](const PlannedMalloc& a, const PlannedMalloc& b) {
    return a.bytes == b.bytes && a.return_address == b.return_address;
  };
  const std::span<const PlannedMalloc> word = sequence.last(match);
  std::vector<std::uint32_t> border(match, 0);
  for (std::size_t i = 1; i < match; ++i) {
    std::uint32_t length = border[i - 1];
    while (length > 0 && !same(word[i], word[length])) length = border[length - 1];
    border[i] = same(word[i], word[length]) ? length + 1 : 0;
  }
  // Every position once as the first of an occurrence: the sequence, and as much again as an occurrence reaches over.
  std::size_t found = 0;
  std::size_t matched = 0;
  for (std::size_t i = 0; i < sequence.size() + match - 1; ++i) {
    const PlannedMalloc& next = sequence[i % sequence.size()];
    while (matched > 0 && !same(next, word[matched])) matched = border[matched - 1];
    if (same(next, word[matched])) ++matched;
    if (matched == match) {
      ++found;
      matched = border[matched - 1];
    }
  }
  return found;
}

// How many times the sequence is the same mallocs over again: several iterations may be planned as one, whose places
// differ although their mallocs look alike. A lane may then begin at any of them.
std::size_t rounds_of(std::span<const PlannedMalloc> sequence) {
  const std::size_t count = sequence.size();
  for (std::size_t period = 1; period <= count / 2; ++period) {
    if (count % period != 0) continue;
    bool repeats = true;
    for (std::size_t i = period; i < count && repeats; ++i) {
      const PlannedMalloc& before = sequence[i - period];
      repeats = sequence[i].bytes == before.bytes && sequence[i].return_address == before.return_address;
    }
    if (repeats) return count / period;
  }
  return 1;
}

void read_lanes(const std::vector<PlannedLane>& lanes, Plan& plan) {
  require(!lanes.empty(), "lanes: none: expected at least one");
  std::uint64_t next_malloc = 0;
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    const PlannedLane& lane = lanes[i];
    require(lane.first_malloc == next_malloc, "lane {} begins with malloc {}: expected {}, lane by lane", lane.lane,
            lane.first_malloc, next_malloc);
    require(lane.mallocs >= 1 && lane.mallocs <= plan.mallocs.size() - next_malloc,
            "lane {} with {} mallocs: expected 1 to {}", lane.lane, lane.mallocs, plan.mallocs.size() - next_malloc);
    require(lane.match >= 1 && lane.match <= lane.mallocs, "lane {}: match {}: expected 1 to {}", lane.lane, lane.match,
            lane.mallocs);
    next_malloc += lane.mallocs;
    const std::span<const PlannedMalloc> sequence = std::span(plan.mallocs).subspan(lane.first_malloc, lane.mallocs);
    const std::size_t rounds = rounds_of(sequence);
    plan.lanes.push_back({lane.lane, lane.match, sequence, rounds});
    const std::size_t occurrences = occurrences_of_end(sequence, lane.match);
    require(occurrences == 1 || occurrences == rounds,
            "lane {}: its last {} mallocs occur at {} positions: expected the end alone, or the end of each round",
            lane.lane, lane.match, occurrences);
  }
  require(next_malloc == plan.mallocs.size(), "lanes have {} mallocs in all: expected {}", next_malloc,
          plan.mallocs.size());
  std::sort(plan.lanes.begin(), plan.lanes.end(), [](const auto& a, const auto& b) { return a.lane < b.lane; });
  for (std::size_t i = 1; i < plan.lanes.size(); ++i) {
    require(plan.lanes[i - 1].lane != plan.lanes[i].lane, "lane {} occurs twice", plan.lanes[i].lane);
  }
}

// Of which bytes of them blocks own is not known here: that is asked of the ownership map when the plan goes live.
void check_chunks(Plan& plan) {
  std::vector<PlannedChunk>& chunks = plan.chunks;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const PlannedChunk& chunk = chunks[i];
    require(chunk.address != 0 && chunk.address % plan.chunk_bytes == 0 && chunk.offset % plan.chunk_bytes == 0,
            "chunk {} of address {:#x} at {}: expected multiples of {}", i, chunk.address, chunk.offset,
            plan.chunk_bytes);
  }
  const auto once = [&](auto member, const char* name) {
    std::sort(chunks.begin(), chunks.end(),
              [member](const PlannedChunk& a, const PlannedChunk& b) { return a.*member < b.*member; });
    for (std::size_t i = 1; i < chunks.size(); ++i) {
      require(chunks[i - 1].*member != chunks[i].*member, "chunks: two of {} {:#x}", name, chunks[i].*member);
    }
  };
  once(&PlannedChunk::address, "address");
  once(&PlannedChunk::offset, "offset");
}

std::unique_ptr<const Plan> parse(std::span<const std::byte> bytes) {
  const PlanHeader header = read_header(bytes);
  auto plan = std::make_unique<Plan>();
  plan->generation = header.generation;
  plan->signature = header.signature;
  plan->operations = header.operations;
  plan->slab_bytes = header.slab_bytes;
  plan->peak_load = header.peak_load;
  plan->lower_bound = header.lower_bound;
  plan->persistent_bytes = header.persistent_bytes;
  plan->first_iteration = header.first_iteration;
  plan->detected_at = header.detected_at;
  plan->chunk_bytes = header.chunk_bytes;
  plan->period_ns = header.period_ns;
  plan->added_ns = header.added_ns;
  plan->otherwise_ns = header.otherwise_ns;
  const std::vector<PlannedLane> lanes = read_table<PlannedLane>(bytes, header.lanes, "lanes");
  plan->mallocs = read_table<PlannedMalloc>(bytes, header.mallocs, "mallocs");
  plan->places = read_table<Place>(bytes, header.places, "places");
  plan->persistent = read_table<std::uint64_t>(bytes, header.persistent, "persistent");
  plan->pages = read_table<PlannedPages>(bytes, header.pages, "pages");
  plan->swaps = read_table<PlannedSwap>(bytes, header.swaps, "swaps");
  plan->points = read_table<PlannedPoint>(bytes, header.points, "points");
  plan->chunks = read_table<PlannedChunk>(bytes, header.chunks, "chunks");

  std::sort(plan->persistent.begin(), plan->persistent.end());
  plan->persistent.erase(std::unique(plan->persistent.begin(), plan->persistent.end()), plan->persistent.end());
  require(plan->persistent.empty() || plan->persistent.front() != 0, "persistent block 0: expected numbers from 1");
  check_places(*plan);
  check_order_of_swaps(*plan);
  check_mallocs(*plan);
  read_lanes(lanes, *plan);
  check_swaps(*plan);
  check_chunks(*plan);
  check_overlap(*plan);
  return plan;
}

}  // namespace

const Plan::Lane* Plan::find_lane(std::uint32_t lane) const noexcept {
  const auto found =
      std::lower_bound(lanes.begin(), lanes.end(), lane, [](const Lane& a, std::uint32_t b) { return a.lane < b; });
  return found != lanes.end() && found->lane == lane ? &*found : nullptr;
}

bool Plan::is_persistent(std::uint64_t block) const noexcept {
  return std::binary_search(persistent.begin(), persistent.end(), block);
}

std::span<const PlannedSwap> Plan::swaps_of(std::uint64_t block, bool of_pages) const noexcept {
  const auto [first, last] =
      std::equal_range(swaps.begin(), swaps.end(), PlannedSwap{block, of_pages ? shm::kSwapPages : 0, 0, 0, 0, 0},
                       [](const PlannedSwap& a, const PlannedSwap& b) { return key_of(a) < key_of(b); });
  return {first, last};
}

std::unique_ptr<const Plan> parse_plan(std::span<const std::byte> bytes, std::string* error) noexcept {
  try {
    return parse(bytes);
  } catch (Refused& refused) {
    *error = std::move(refused.why);
  } catch (...) {
    // Short enough not to be allocated.
    error->assign("out of memory");
  }
  return nullptr;
}

}  // namespace memopt::agent
