#include "agent/memory/switch_over.h"

#include <algorithm>
#include <tuple>

namespace memopt::agent {

std::vector<std::uint64_t> first_uses(const FollowedPlan& plan, std::uint64_t chunk_bytes) {
  std::vector<std::uint64_t> uses(static_cast<std::size_t>((plan.slab_bytes + chunk_bytes - 1) / chunk_bytes),
                                  kNeverInPlan);
  for (std::size_t i = 0; i < plan.places.size(); ++i) {
    const FollowedPlace& place = plan.places[i];
    for (std::uint64_t at = place.begin / chunk_bytes; at < uses.size() && at * chunk_bytes < place.end; ++at) {
      std::uint64_t& first = uses[static_cast<std::size_t>(at)];
      first = std::min(first, plan.first_needed[i]);
    }
  }
  for (const FollowedPages& pages : plan.pages) {
    const std::uint64_t use = pages.here_first ? 0 : pages.first_use;
    for (std::uint64_t at = pages.place / chunk_bytes; at < uses.size() && at * chunk_bytes < pages.place + pages.bytes;
         ++at) {
      uses[static_cast<std::size_t>(at)] = std::min(uses[static_cast<std::size_t>(at)], use);
    }
  }
  return uses;
}

std::vector<LargePlace> large_places(const FollowedPlan& plan, std::uint64_t bytes) {
  std::vector<LargePlace> large;
  for (std::size_t i = 0; i < plan.places.size(); ++i) {
    const FollowedPlace& place = plan.places[i];
    if (place.end - place.begin >= bytes) large.push_back({place.begin, place.end, plan.first_needed[i]});
  }
  return large;
}

std::unordered_map<std::uint64_t, std::uint64_t> freed_times(const FollowedPlan& plan, std::vector<LiveBlock> live) {
  std::unordered_map<std::uint64_t, std::uint64_t> times;
  // The youngest first, as in plan.crossing.
  std::sort(live.begin(), live.end(), [](const LiveBlock& a, const LiveBlock& b) {
    return std::tuple(a.bytes, b.number) < std::tuple(b.bytes, a.number);
  });
  std::size_t block = 0;
  for (const CrossingMalloc& crossing : plan.crossing) {
    while (block < live.size() && live[block].bytes < crossing.bytes) ++block;
    if (block == live.size() || live[block].bytes != crossing.bytes) continue;
    times[live[block++].number] = crossing.freed;
  }
  return times;
}

// A chunk that fits none of the slots that are left fits none at all: those were used last.
std::vector<std::size_t> match_slots(std::vector<LentChunk> chunks, std::vector<SlotInTime> slots, std::size_t count) {
  std::vector<std::size_t> matched(count, kNoSlot);
  std::sort(chunks.begin(), chunks.end(), [](const LentChunk& a, const LentChunk& b) { return a.freed > b.freed; });
  std::sort(slots.begin(), slots.end(), [](const SlotInTime& a, const SlotInTime& b) { return a.used > b.used; });
  auto slot = slots.begin();
  for (const LentChunk& chunk : chunks) {
    if (slot == slots.end()) break;
    if (chunk.freed >= slot->used) continue;
    matched[chunk.index] = slot->slot;
    ++slot;
  }
  return matched;
}

}  // namespace memopt::agent
