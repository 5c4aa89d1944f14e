// The slab's chunks in which blocks lie that were there before it went live, and that will be freed: they are lent to
// these until then, in slots that the plan uses later (switch_over.h).
#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "agent/memory/slab.h"

namespace memopt::agent {

// One that blocks lie in of which the plan knows when they are freed, where no chunk is free: a new one would be held
// beside it until then. Null: there is none, or a free one.
Chunk* Slab::find_crossing_chunk(const SwitchTimes& times) {
  if (bootstrap_.find_free_chunk() != nullptr) return nullptr;
  return bootstrap_.find_chunk_for_slab(
      [&](std::uint64_t block) { return times.freed_of(block) == kNeverInPlan || (stays_ && stays_(block)); });
}

// The chunks in slots `crossing`, in which blocks lie, go to slots that are first used when these are freed. Where
// there is none, the slot gets a new chunk: one more is held until the block is freed, while a place that can't be had
// would cost all that was to lie there. Without memory for it the chunk is lent where it is.
CUresult Slab::arrange(std::vector<std::size_t> crossing, const std::vector<std::size_t>& among,
                       const std::vector<std::size_t>& taken, const SwitchTimes& times, Made* made) {
  std::vector<LentChunk> lent;
  for (std::size_t i = 0; i < crossing.size(); ++i) {
    lent.push_back({bootstrap_.freed_at(*window_.chunks[crossing[i]], times), i});
  }
  std::vector<SlotInTime> slots;
  for (const std::size_t slot : among) {
    if (!std::binary_search(taken.begin(), taken.end(), slot)) slots.push_back({times.first_use_of(slot), slot});
  }
  const std::vector<std::size_t> matched = match_slots(std::move(lent), std::move(slots), crossing.size());
  std::vector<Chunk*> arranged = window_.chunks;
  for (const std::size_t slot : crossing) arranged[slot] = nullptr;
  // What lies in the slots that are taken, free all of it, goes to those that were given up.
  std::vector<Chunk*> homeless;
  std::vector<std::size_t> unmatched;
  for (std::size_t i = 0; i < crossing.size(); ++i) {
    if (matched[i] == kNoSlot) {
      unmatched.push_back(crossing[i]);
      continue;
    }
    if (arranged[matched[i]] != nullptr) homeless.push_back(arranged[matched[i]]);
    arranged[matched[i]] = window_.chunks[crossing[i]];
  }
  std::vector<std::size_t> empty;
  for (const std::size_t slot : crossing) {
    if (arranged[slot] == nullptr) empty.push_back(slot);
  }
  for (Chunk* const chunk : homeless) {
    arranged[empty.back()] = chunk;
    empty.pop_back();
  }
  // As many are left as chunks that nothing fits.
  std::vector<Chunk*> fresh;
  fresh.reserve(empty.size());
  CUresult result = CUDA_SUCCESS;
  try {
    for (std::size_t i = 0; i < empty.size(); ++i) {
      Chunk* chunk = nullptr;
      arranged[empty[i]] = window_.chunks[unmatched[i]];
      if (chunks_.create(&chunk) != CUDA_SUCCESS) continue;
      fresh.push_back(chunk);
      arranged[empty[i]] = chunk;
    }
    for (const std::size_t slot : among) made->moved += arranged[slot] != window_.chunks[slot] ? 1 : 0;
    made->made += fresh.size();
    result = move_to(arranged);
  } catch (const std::bad_alloc&) {
    result = CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (result == CUDA_SUCCESS) return result;
  for (Chunk* const chunk : fresh) {
    if (chunk->slab_slot < 0) bootstrap_.keep(chunk);
  }
  drop_unfinished();
  return result;
}

// Slots, which are not live where their chunk is another one, get these. The driver's code; then some have none.
CUresult Slab::move_to(const std::vector<Chunk*>& arranged) noexcept {
  const std::uint64_t chunk_bytes = chunks_.chunk_bytes();
  struct Run {  // of slots that change
    std::size_t begin, end;
  };
  try {
    std::vector<Run> runs;
    for (std::size_t slot = 0; slot < arranged.size(); ++slot) {
      if (arranged[slot] == window_.chunks[slot]) continue;
      if (runs.empty() || runs.back().end != slot) runs.push_back({slot, slot});
      runs.back().end = slot + 1;
    }
    for (const Run& run : runs) {
      const std::uint64_t bytes = (run.end - run.begin) * chunk_bytes;
      // Nobody has used these aliases yet: there is nothing to wait for.
      const CUresult result = chunks_.unmap(window_.base + run.begin * chunk_bytes, bytes);
      if (result != CUDA_SUCCESS) return result;
      for (std::size_t slot = run.begin; slot < run.end; ++slot) {
        window_.chunks[slot]->slab_slot = -1;
        bootstrap_.keep(window_.chunks[slot]);
        window_.chunks[slot] = nullptr;
      }
    }
    for (const Run& run : runs) {
      const auto begin = arranged.begin();
      const std::vector<Chunk*> chunks(begin + static_cast<std::ptrdiff_t>(run.begin),
                                       begin + static_cast<std::ptrdiff_t>(run.end));
      const CUresult result = chunks_.map(window_.base + run.begin * chunk_bytes, chunks);
      if (result != CUDA_SUCCESS) return result;
      for (std::size_t slot = run.begin; slot < run.end; ++slot) {
        arranged[slot]->slab_slot = static_cast<std::int64_t>(slot);
        window_.chunks[slot] = arranged[slot];
      }
    }
    return CUDA_SUCCESS;
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

// Nothing is served from slots whose chunk a block of before lies in.
void Slab::lend(const std::vector<std::size_t>& slots) {
  const std::uint64_t chunk_bytes = chunks_.chunk_bytes();
  for (const std::size_t slot : slots) {
    Chunk* const chunk = window_.chunks[slot];
    if (chunk == nullptr || chunk->kept || bootstrap_.is_free(*chunk)) continue;
    if (take_away(window_, slot * chunk_bytes, (slot + 1) * chunk_bytes) == nullptr) throw std::bad_alloc();
    chunk->lent = true;
    bootstrap_.lend(1, window_.map);
  }
}

void Slab::end_loan_of(std::size_t slot) noexcept {
  Chunk* const chunk = slot < window_.chunks.size() ? window_.chunks[slot] : nullptr;
  if (chunk == nullptr || !chunk->lent) return;
  give_parts_back(slot);
  bootstrap_.end_loan(chunk);
}

void Slab::give_up_lent() noexcept {
  if (lent_chunks() == 0) return;
  const std::uint64_t chunk_bytes = chunks_.chunk_bytes();
  for (std::size_t slot = 0; slot < window_.chunks.size(); ++slot) {
    Chunk* const chunk = window_.chunks[slot];
    // Refused (and said so): nothing is ever served from these bytes.
    if (chunk != nullptr && chunk->lent) own_windows_.unmap_chunk(chunk);
    if (chunk == nullptr || !chunk->lent ||
        chunks_.unmap(window_.base + slot * chunk_bytes, chunk_bytes) != CUDA_SUCCESS)
      continue;
    chunk->slab_slot = -1;
    window_.chunks[slot] = nullptr;
    window_.gone_bytes += chunk_bytes;
    bootstrap_.end_loan(chunk);
  }
}

}  // namespace memopt::agent
