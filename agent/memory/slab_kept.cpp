// The slab's chunks in which blocks lie that stay: it has the bytes that are free of them (shm::PlannedChunk).
//
// Such a chunk stays mapped where these blocks have their addresses, and is mapped in the slab too. Each byte of it is
// in one of the two maps only: free or a block's in the one, and gone in the other. What a block frees of it is the
// slab's from then on.
#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "agent/memory/slab.h"

namespace memopt::agent {

Chunk* Slab::kept_chunk(std::size_t slot) noexcept {
  const auto wanted = kept_.find(slot);
  return wanted != kept_.end() ? bootstrap_.chunk_at(wanted->second) : nullptr;
}

// Some block stays, and of all others it is known when they are freed: nothing is in the plan's way for ever, and no
// large place waits for a few bytes.
bool Slab::may_keep(const Chunk& chunk, std::size_t slot, const SwitchTimes* times) const {
  // Under a limit it is of more use that they can leave.
  if (chunks_.limit() != 0) return false;
  const std::uint64_t offset = slot * chunks_.chunk_bytes();
  bool stays = false;
  bool goes = true;
  bootstrap_.for_each_part(chunk, [&](const Span& span, std::uint64_t begin, std::uint64_t end) {
    if (span.owner == nullptr || !goes) return;
    if (!is_gone(span) && stays_(span.owner->number)) {
      stays = true;
      return;
    }
    const std::uint64_t freed = is_gone(span) || times == nullptr ? kNeverInPlan : times->freed_of(span.owner->number);
    goes =
        freed != kNeverInPlan && std::none_of(times->large.begin(), times->large.end(), [&](const LargePlace& place) {
          return place.begin < offset + end && offset + begin < place.end && place.first_use <= freed;
        });
  });
  return stays && goes;
}

// They are live, and nothing of them can be had; `free` says what keep_parts() changes. Throws std::bad_alloc.
void Slab::take_kept(const std::vector<std::size_t>& slots, std::vector<Part>* free) {
  const std::uint64_t chunk_bytes = chunks_.chunk_bytes();
  for (const std::size_t slot : slots) {
    Chunk* const chunk = window_.chunks[slot];
    bootstrap_.shrink_blocks_in(*chunk);
    bootstrap_.for_each_part(*chunk, [&](const Span& span, std::uint64_t begin, std::uint64_t end) {
      const std::uint64_t offset = slot * chunk_bytes;
      if (take_away(window_, offset + begin, offset + end) == nullptr) throw std::bad_alloc();
      if (span.owner == nullptr) free->push_back({slot, begin, end, span.release});
    });
    // The region and the lists of free chunks leave it alone from here on.
    chunk->kept = true;
  }
}

void Slab::drop_kept(const std::vector<std::size_t>& slots) noexcept {
  const std::uint64_t chunk_bytes = chunks_.chunk_bytes();
  for (const std::size_t slot : slots) {
    window_.chunks[slot]->kept = false;
    for (Span* span = window_.map.find(slot * chunk_bytes, nullptr);
         span != nullptr && span->begin < (slot + 1) * chunk_bytes; span = span->next) {
      if (is_gone(*span)) window_.map.give_back(span, Release{});
    }
  }
}

// Where there is no host memory for it, a part is nobody's.
void Slab::keep_parts(const std::vector<std::size_t>& slots, const std::vector<Part>& free) noexcept {
  const std::uint64_t chunk_bytes = chunks_.chunk_bytes();
  for (const std::size_t slot : slots) bootstrap_.keep_for(window_.chunks[slot], window_.map);
  for (const Part& part : free) {
    if (!bootstrap_.take_out(*window_.chunks[part.slot], part.begin, part.end)) continue;
    window_.map.give_back(window_.map.find(part.slot * chunk_bytes + part.begin, nullptr), part.uses);
  }
}

bool Slab::may_give_up_kept(std::span<const shm::PlannedChunk> but, Release* awaited, bool* owned) noexcept {
  const std::uint64_t chunk_bytes = chunks_.chunk_bytes();
  bool over = true;
  *owned = false;
  for (std::size_t slot = 0; slot < window_.chunks.size(); ++slot) {
    const Chunk* const chunk = window_.chunks[slot];
    if (chunk == nullptr || !chunk->kept || is_among(but, slot)) continue;
    const std::uint64_t end = (slot + 1) * chunk_bytes;
    for (const Span* span = window_.map.find(slot * chunk_bytes, nullptr); span != nullptr && span->begin < end;
         span = span->next) {
      *owned = *owned || (span->owner != nullptr && !is_gone(*span));
      if (span->owner != nullptr || streams_.is_over(span->release, true)) continue;
      await_also(span->release, awaited);
      over = false;
    }
  }
  return over && !*owned;
}

void Slab::give_up_kept(std::span<const shm::PlannedChunk> but, Release* awaited) noexcept {
  const std::uint64_t chunk_bytes = chunks_.chunk_bytes();
  for (std::size_t slot = 0; slot < window_.chunks.size(); ++slot) {
    Chunk* const chunk = window_.chunks[slot];
    if (chunk == nullptr || !chunk->kept || is_among(but, slot)) continue;
    const std::uint64_t begin = slot * chunk_bytes;
    const std::uint64_t end = begin + chunk_bytes;
    try {
      std::vector<std::pair<std::uint64_t, std::uint64_t>> free;
      Release uses;
      bool owned = false;
      for (const Span* span = window_.map.find(begin, nullptr); span != nullptr && span->begin < end;
           span = span->next) {
        owned = owned || (span->owner != nullptr && !is_gone(*span));
        if (span->owner != nullptr) continue;
        uses.add(span->release);
        free.emplace_back(std::max(span->begin, begin), std::min(span->end, end));
      }
      if (owned) continue;
      if (!streams_.is_over(uses, true)) {
        await_also(uses, awaited);
        continue;
      }
      for (const auto& [from, to] : free) {
        if (take_away(window_, from, to) == nullptr) throw std::bad_alloc();
      }
      bootstrap_.put_back(chunk, uses);
    } catch (const std::bad_alloc&) {
      return;  // what was taken away is nobody's until the slab goes
    }
    // Refused (and said so): nothing is ever served by that address.
    chunks_.unmap(window_.base + begin, chunk_bytes);
    own_windows_.unmap_chunk(chunk);
    chunk->slab_slot = -1;
    window_.chunks[slot] = nullptr;
    window_.gone_bytes += chunk_bytes;
  }
}

// The chunk that it keeps there.
bool Slab::is_among(std::span<const shm::PlannedChunk> kept, std::size_t slot) const noexcept {
  return std::any_of(kept.begin(), kept.end(), [&](const shm::PlannedChunk& one) {
    return one.offset == slot * chunks_.chunk_bytes() && one.address == bootstrap_.address_of(*window_.chunks[slot]);
  });
}

bool Slab::keeps_only(std::span<const shm::PlannedChunk> kept) const noexcept {
  for (std::size_t slot = 0; slot < window_.chunks.size(); ++slot) {
    const Chunk* const chunk = window_.chunks[slot];
    if (chunk != nullptr && chunk->kept && !is_among(kept, slot)) return false;
  }
  return true;
}

bool Slab::keeps_elsewhere(std::span<const shm::PlannedChunk> kept) const noexcept {
  return std::any_of(window_.chunks.begin(), window_.chunks.end(), [&](const Chunk* chunk) {
    if (chunk == nullptr || !chunk->kept) return false;
    const std::uint64_t address = bootstrap_.address_of(*chunk);
    const std::uint64_t offset = static_cast<std::uint64_t>(chunk->slab_slot) * chunks_.chunk_bytes();
    return std::any_of(kept.begin(), kept.end(),
                       [&](const shm::PlannedChunk& one) { return one.address == address && one.offset != offset; });
  });
}

bool Slab::would_keep(std::uint64_t address, std::span<const shm::PlannedChunk> kept) const noexcept {
  const auto planned =
      std::find_if(kept.begin(), kept.end(), [&](const shm::PlannedChunk& one) { return one.address == address; });
  const Window* const window = chunks_.window_at(address);
  if (planned == kept.end() || window == nullptr) return false;
  const auto page = static_cast<std::size_t>((address - window->base) / chunks_.chunk_bytes());
  if (page < window->chunks.size() && window->chunks[page] != nullptr && window->chunks[page]->kept) return true;
  return chunks_.limit() == 0 && planned->offset >= window_.map.bytes();
}

}  // namespace memopt::agent
