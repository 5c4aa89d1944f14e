#include "agent/memory/slab.h"

#include <algorithm>
#include <iterator>
#include <new>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "agent/process/log.h"

namespace memopt::agent {
namespace {

// At a limit blocks that cross the switch may have chunks that the slab lacks until they are freed: up to this part of
// it is made later (Slab::refill), but not less than so many chunks.
constexpr std::size_t kLaterPart = 8;
constexpr std::size_t kLater = 4;

}  // namespace

bool Slab::want(std::uint64_t bytes, std::function<bool(std::uint64_t)> stays,
                std::span<const shm::PlannedChunk> kept) {
  if (driver_block_) {
    if (window_.base != 0 && bytes > window_.map.bytes()) return false;
    wanted_bytes_ = bytes;
    return true;
  }
  if (window_.base == 0) {
    // So that it can grow where it is.
    window_.kind = Window::Kind::kSlab;
    window_.base = chunks_.reserve(addresses());
    if (window_.base == 0) return false;
    chunks_.set_window(window_.base, addresses(), &window_);
  }
  const std::uint64_t chunk = chunks_.chunk_bytes();
  if (bytes > addresses()) return false;
  // What was begun for another plan is of no use to this one if it reaches further.
  drop_beyond(static_cast<std::size_t>((bytes + chunk - 1) / chunk));
  const std::size_t wanted = static_cast<std::size_t>((bytes + chunk - 1) / chunk);
  std::unordered_map<std::size_t, std::uint64_t> slots;
  for (const shm::PlannedChunk& one : kept) slots.emplace(static_cast<std::size_t>(one.offset / chunk), one.address);
  if (slots != kept_) drop_beyond(0);
  kept_ = std::move(slots);
  window_.chunks.reserve(wanted);
  wanted_ = wanted;
  stays_ = std::move(stays);
  bootstrap_.begin_slab_search();
  return true;
}

bool Slab::add(Chunk* chunk) noexcept {
  const std::size_t slot = window_.chunks.size();
  if (chunks_.map(window_.base + slot * chunks_.chunk_bytes(), {chunk}) != CUDA_SUCCESS) return false;
  chunk->slab_slot = static_cast<std::int64_t>(slot);
  window_.chunks.push_back(chunk);
  return true;
}

bool Slab::build(std::size_t limit) noexcept {
  if (driver_block_) return true;
  try {
    for (std::size_t i = 0; i < limit; ++i) {
      if (window_.chunks.size() >= wanted_) return true;
      Chunk* chunk = kept_chunk(window_.chunks.size());
      if (chunk == nullptr) chunk = bootstrap_.find_chunk_for_slab(stays_);
      if (chunk == nullptr || !add(chunk)) return true;  // go_live() makes what is missing
    }
  } catch (const std::bad_alloc&) {
    return true;
  }
  return window_.chunks.size() >= wanted_;
}

CUresult Slab::make_driver_block() noexcept {
  if (window_.base != 0) return CUDA_SUCCESS;
  CUdeviceptr address = 0;
  const CUresult result = driver_.mem_alloc(&address, wanted_bytes_);
  if (result != CUDA_SUCCESS) return result;
  try {
    window_.map.grow(wanted_bytes_, Release{});
  } catch (const std::bad_alloc&) {
    driver_.mem_free(address);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  window_.kind = Window::Kind::kSlab;
  window_.base = address;
  window_.bytes = wanted_bytes_;
  return CUDA_SUCCESS;
}

CUresult Slab::go_live(const SwitchTimes* times, bool some_later) noexcept {
  if (driver_block_) return make_driver_block();
  const std::uint64_t chunk_bytes = chunks_.chunk_bytes();
  const std::size_t live = static_cast<std::size_t>(window_.map.bytes() / chunk_bytes);
  // Blocks were freed behind the search.
  bootstrap_.begin_slab_search();
  try {
    Made made;
    std::vector<std::size_t> crossing;
    std::vector<std::size_t> kept;
    std::vector<std::size_t> later;
    std::vector<std::size_t> slots = slots_to_make(live);
    if (slots.empty()) {
      drop_gone_end();
      return CUDA_SUCCESS;
    }
    remade_.reserve(slots.size());
    const std::size_t most_later = some_later ? std::max(kLater, wanted_ / kLaterPart) : 0;
    for (const std::size_t slot : slots) {
      Chunk* const there = slot < window_.chunks.size() ? window_.chunks[slot] : nullptr;
      if (kept_.contains(slot) && slot >= live) {
        Chunk* const chunk = there != nullptr ? there : kept_chunk(slot);
        const bool may = chunk != nullptr && chunk->home != nullptr && bootstrap_.address_of(*chunk) == kept_[slot] &&
                         may_keep(*chunk, slot, times);
        if (may) kept.push_back(slot);
        if (there != nullptr && (may || bootstrap_.is_free(*there))) continue;
        if (const CUresult result = fill(slot, may ? chunk : nullptr, &made); result != CUDA_SUCCESS) return result;
        continue;
      }
      if (there != nullptr && bootstrap_.is_free(*there)) continue;
      if (there != nullptr && there->home != nullptr && there->home->kind == Window::Kind::kRegion) {
        crossing.push_back(slot);
        continue;
      }
      if (there == nullptr && slot >= live && later.size() < most_later && !can_fill()) {
        if (slot == window_.chunks.size()) window_.chunks.push_back(nullptr);
        later.push_back(slot);
        continue;
      }
      Chunk* const crosses = there == nullptr && times != nullptr ? find_crossing_chunk(*times) : nullptr;
      Chunk* chunk = crosses;
      if (slot < live && chunk == nullptr) {
        chunk = bootstrap_.find_free_chunk();
        // Then it stays gone, and is no reason to go without the plan.
        if (chunk == nullptr && chunks_.create(&chunk) != CUDA_SUCCESS) continue;
      }
      if (const CUresult result = fill(slot, chunk, &made); result != CUDA_SUCCESS) return result;
      if (slot < live) remade_.push_back(slot);
      if (crosses != nullptr) crossing.push_back(slot);
    }
    std::erase_if(slots, [&](std::size_t slot) { return slot < live && window_.chunks[slot] == nullptr; });
    // Chunks of blocks that cross the switch stay theirs until they are freed. Free ones take their slots as long as
    // there are some, first where a block stays longest.
    if (times != nullptr) {
      std::unordered_map<std::size_t, std::uint64_t> freed;
      for (const std::size_t slot : crossing) freed[slot] = bootstrap_.freed_at(*window_.chunks[slot], *times);
      std::sort(crossing.begin(), crossing.end(),
                [&](std::size_t a, std::size_t b) { return std::tuple(freed[a], b) > std::tuple(freed[b], a); });
    }
    std::size_t filled = 0;
    for (Chunk* chunk = nullptr; filled < crossing.size() && (chunk = bootstrap_.find_free_chunk()) != nullptr;) {
      if (const CUresult result = fill(crossing[filled++], chunk, &made); result != CUDA_SUCCESS) return result;
    }
    crossing.erase(crossing.begin(), crossing.begin() + static_cast<std::ptrdiff_t>(filled));
    const std::size_t lent = crossing.size();
    if (times != nullptr && lent != 0) {
      std::vector<std::size_t> taken;
      std::merge(kept.begin(), kept.end(), later.begin(), later.end(), std::back_inserter(taken));
      if (const CUresult result = arrange(std::move(crossing), slots, taken, *times, &made); result != CUDA_SUCCESS)
        return result;
    }
    log(LogLevel::kDebug,
        "slab of {} chunks, {} live before, {} of these made anew, {} made for it, {} replaced, {} moved, {} kept, "
        "{} to be lent, {} later",
        wanted_, live, remade_.size(), made.made, made.replaced, made.moved, kept.size(), lent, later.size());
    std::vector<Chunk*> added;
    added.reserve(slots.size());
    for (const std::size_t slot : slots) added.push_back(window_.chunks[slot]);
    window_.map.grow((std::max(wanted_, live) - live) * chunk_bytes, Release{});
    for (const std::size_t slot : remade_) give_parts_back(slot);
    std::vector<Part> free;
    try {
      for (const std::size_t slot : later) {
        if (take_away(window_, slot * chunk_bytes, (slot + 1) * chunk_bytes) == nullptr) throw std::bad_alloc();
      }
      take_kept(kept, &free);
      if (lent != 0) lend(slots);
      bootstrap_.hand_over(added, window_.map);
    } catch (const std::bad_alloc&) {
      for (const std::size_t slot : slots) end_loan_of(slot);
      drop_kept(kept);
      for (const std::size_t slot : later) give_parts_back(slot);
      window_.map.shrink(live * chunk_bytes);
      for (const std::size_t slot : remade_) take_parts_away(slot);
      throw;
    }
    keep_parts(kept, free);
    window_.gone_bytes += later.size() * chunk_bytes;
    window_.gone_bytes -= remade_.size() * chunk_bytes;
    window_.bytes = window_.map.bytes();
    remade_.clear();
    drop_gone_end();
  } catch (const std::bad_alloc&) {
    drop_unfinished();
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return CUDA_SUCCESS;
}

// Chunks of the end that are gone, and that are not wanted any more, need not be made anew.
void Slab::drop_gone_end() noexcept {
  const std::uint64_t chunk_bytes = chunks_.chunk_bytes();
  std::size_t live = static_cast<std::size_t>(window_.map.bytes() / chunk_bytes);
  if (window_.gone_bytes == 0 || window_.chunks.size() != live) return;
  for (; live > wanted_ && window_.chunks.back() == nullptr; --live) {
    give_parts_back(live - 1);
    window_.map.shrink((live - 1) * chunk_bytes);
    window_.chunks.pop_back();
    window_.gone_bytes -= chunk_bytes;
  }
  window_.bytes = window_.map.bytes();
}

// Slots that a plan which goes live lacks: those beyond what is live, which it can't do without, and what is gone of
// that. Not at a limit, where so many chunks were made free as are missing beyond it.
std::vector<std::size_t> Slab::slots_to_make(std::size_t live) const {
  std::vector<std::size_t> slots;
  for (std::size_t slot = live; slot < wanted_; ++slot) slots.push_back(slot);
  if (window_.gone_bytes == 0 || chunks_.limit() != 0) return slots;
  for (std::size_t slot = 0; slot < std::min(live, wanted_); ++slot) {
    if (window_.chunks[slot] == nullptr) slots.push_back(slot);
  }
  return slots;
}

// Of a slot whose chunk is gone: its bytes are nobody's, and new. They may be several parts, where the chunk was kept.
void Slab::give_parts_back(std::size_t slot) noexcept {
  const std::uint64_t end = (slot + 1) * chunks_.chunk_bytes();
  for (Span* part = window_.map.find(slot * chunks_.chunk_bytes(), nullptr); part != nullptr && part->begin < end;
       part = part->next) {
    if (is_gone(*part)) window_.map.give_back(part, Release{});
  }
}

// The opposite: as it divides no part, it needs no memory.
void Slab::take_parts_away(std::size_t slot) noexcept {
  const std::uint64_t end = (slot + 1) * chunks_.chunk_bytes();
  for (Span* part = window_.map.find(slot * chunks_.chunk_bytes(), nullptr); part != nullptr && part->begin < end;
       part = part->next) {
    take_away(window_, part->begin, part->end, part);
  }
}

bool Slab::can_fill() noexcept { return bootstrap_.find_free_chunk() != nullptr || chunks_.could_create(1); }

// Gives a slot that is not live yet the chunk, or a free one, or one that is made. The driver's code, and then all that
// is unfinished has been dropped.
CUresult Slab::fill(std::size_t slot, Chunk* chunk, Made* made) {
  const std::uint64_t chunk_bytes = chunks_.chunk_bytes();
  Chunk* const there = slot < window_.chunks.size() ? window_.chunks[slot] : nullptr;
  made->replaced += there != nullptr ? 1 : 0;
  if (chunk == nullptr) chunk = bootstrap_.find_free_chunk();
  if (chunk == nullptr && bootstrap_.free_empty_window()) chunk = bootstrap_.find_free_chunk();
  if (chunk == nullptr) {
    ++made->made;
    if (const CUresult result = chunks_.create(&chunk); result != CUDA_SUCCESS) {
      log(LogLevel::kDebug, "slab: no chunk for slot {} of {} ({} held)", slot, wanted_, chunks_.counts().held_bytes);
      drop_unfinished();
      return result;
    }
  }
  const std::uint64_t address = window_.base + slot * chunk_bytes;
  if (there != nullptr) {
    // Nobody has used this alias yet: there is nothing to wait for.
    chunks_.unmap(address, chunk_bytes);
    there->slab_slot = -1;
  }
  const CUresult result = chunks_.map(address, {chunk});
  if (result != CUDA_SUCCESS) {
    bootstrap_.keep(chunk);
    if (there != nullptr) {
      bootstrap_.keep(there);
      window_.chunks[slot] = nullptr;
    }
    drop_unfinished();
    return result;
  }
  chunk->slab_slot = static_cast<std::int64_t>(slot);
  if (slot < window_.chunks.size()) {
    window_.chunks[slot] = chunk;
  } else {
    window_.chunks.push_back(chunk);
  }
  return CUDA_SUCCESS;
}

bool Slab::shorten(std::size_t limit) noexcept {
  if (driver_block_) return false;
  const std::uint64_t chunk_bytes = chunks_.chunk_bytes();
  const std::size_t live = static_cast<std::size_t>(window_.map.bytes() / chunk_bytes);
  // With chunks beyond the live ones a larger plan is being built.
  if (live <= wanted_ || window_.chunks.size() > live || window_.gone_bytes != 0) return false;
  std::size_t count = live;
  Release uses;
  while (count > wanted_ && live - count < limit) {
    Release more = uses;
    if (!window_.map.is_free_from((count - 1) * chunk_bytes, &more) || !streams_.is_over(more, true)) break;
    uses = more;
    --count;
  }
  if (count == live) return true;
  if (chunks_.unmap(window_.base + count * chunk_bytes, (live - count) * chunk_bytes) != CUDA_SUCCESS) return false;
  window_.map.shrink(count * chunk_bytes);
  window_.bytes = window_.map.bytes();
  while (window_.chunks.size() > count) {
    Chunk* const chunk = window_.chunks.back();
    window_.chunks.pop_back();
    own_windows_.unmap_chunk(chunk);
    chunk->slab_slot = -1;
    if (chunk->kept) bootstrap_.end_keeping(chunk);
    if (chunk->home == nullptr) chunks_.release(chunk);
  }
  return count > wanted_;
}

void Slab::give_up_idle(Release* awaited) noexcept {
  if (driver_block_ || window_.base == 0) return;
  std::vector<Chunk*> freed;
  try {
    give_up_chunks(window_, chunks_, streams_, &freed, awaited);
  } catch (const std::bad_alloc&) {
    // What was unmapped until then is in `freed`.
  }
  for (Chunk* const chunk : freed) {
    own_windows_.unmap_chunk(chunk);
    if (chunk->kept) bootstrap_.end_keeping(chunk);
    if (chunk->home == nullptr) chunks_.release(chunk);
  }
}

void Slab::give_up(std::uint64_t begin, std::uint64_t bytes, std::vector<Chunk*>* freed) {
  const std::uint64_t chunk_bytes = chunks_.chunk_bytes();
  const std::uint64_t end = std::min(begin + bytes, window_.map.bytes());
  for (std::uint64_t at = begin / chunk_bytes * chunk_bytes; at < end; at += chunk_bytes) {
    const auto slot = static_cast<std::size_t>(at / chunk_bytes);
    Chunk* const chunk = window_.chunks[slot];
    if (chunk == nullptr || chunk->lent || chunk->kept) continue;
    bool idle = true;
    for (const Span* span = window_.map.find(at, nullptr); span != nullptr && span->begin < at + chunk_bytes;
         span = span->next) {
      idle = idle && span->owner == nullptr && streams_.is_over(span->release, true);
    }
    if (!idle) continue;
    make_room(freed, 1);
    if (take_away(window_, at, at + chunk_bytes) == nullptr) throw std::bad_alloc();
    window_.gone_bytes += chunk_bytes;
    // Refused (and said so): nothing is ever served from these bytes.
    if (chunks_.unmap(window_.base + at, chunk_bytes) != CUDA_SUCCESS) continue;
    own_windows_.unmap_chunk(chunk);
    chunk->slab_slot = -1;
    window_.chunks[slot] = nullptr;
    freed->push_back(chunk);
  }
}

void Slab::give_up_some(std::size_t count, std::vector<Chunk*>* freed) {
  if (driver_block_ || window_.base == 0) return;
  const std::uint64_t chunk_bytes = chunks_.chunk_bytes();
  for (std::uint64_t slot = window_.map.bytes() / chunk_bytes; slot-- > 0 && freed->size() < count;) {
    give_up(slot * chunk_bytes, chunk_bytes, freed);
  }
}

void Slab::give_up_unswapped(std::size_t count, std::uint64_t begin, std::uint64_t bytes, std::vector<Chunk*>* freed) {
  if (driver_block_ || window_.base == 0) return;
  const std::uint64_t chunk_bytes = chunks_.chunk_bytes();
  const auto [first, last] = slots_at(begin, bytes);
  for (std::uint64_t slot = window_.map.bytes() / chunk_bytes; slot-- > 0 && freed->size() < count;) {
    const Chunk* const chunk = window_.chunks[slot];
    // A window onto it would have to be mapped anew, which waits for what was done by its addresses.
    if ((slot >= first && slot < last) || chunk == nullptr || chunk->aliases != 0) continue;
    give_up(slot * chunk_bytes, chunk_bytes, freed);
  }
}

bool Slab::dissolve(Release* awaited) noexcept {
  if (driver_block_ || window_.base == 0) return true;
  drop_beyond(0);
  give_up_kept({}, awaited);
  give_up_idle(awaited);
  if (window_.gone_bytes != window_.map.bytes()) return false;
  window_.map.shrink(0);
  window_.bytes = 0;
  window_.chunks.clear();
  window_.gone_bytes = 0;
  wanted_ = 0;
  return true;
}

std::uint64_t Slab::idle_bytes() const noexcept {
  if (driver_block_) {
    // As the driver rounds it.
    constexpr std::uint64_t kGranule = std::uint64_t{2} << 20;
    return window_.base == 0 || has_block(window_) ? 0 : (window_.map.bytes() + kGranule - 1) / kGranule * kGranule;
  }
  if (window_.base == 0) return 0;
  const std::uint64_t chunk_bytes = chunks_.chunk_bytes();
  std::uint64_t sum = memopt::agent::idle_bytes(window_, chunk_bytes);
  for (std::size_t slot = static_cast<std::size_t>(window_.map.bytes() / chunk_bytes); slot < window_.chunks.size();
       ++slot) {
    // The others are in a window of the bootstrap allocator, which counts them.
    const Chunk* const chunk = window_.chunks[slot];
    if (chunk != nullptr && chunk->home == nullptr) sum += chunk_bytes;
  }
  return sum;
}

bool Slab::refill(std::size_t limit) noexcept {
  for (std::size_t slot = 0; window_.gone_bytes != 0 && limit != 0 && slot < window_.chunks.size(); ++slot) {
    if (window_.chunks[slot] != nullptr) continue;
    if (!refill_slot(slot)) break;
    --limit;
  }
  return window_.gone_bytes == 0;
}

std::pair<std::size_t, std::size_t> Slab::slots_at(std::uint64_t begin, std::uint64_t bytes) const noexcept {
  const std::uint64_t chunk_bytes = chunks_.chunk_bytes();
  const std::uint64_t end = bytes == 0 ? begin / chunk_bytes : (begin + bytes - 1) / chunk_bytes + 1;
  return {static_cast<std::size_t>(begin / chunk_bytes),
          static_cast<std::size_t>(std::min<std::uint64_t>(end, window_.chunks.size()))};
}

std::size_t Slab::gone_chunks_at(std::uint64_t begin, std::uint64_t bytes) const noexcept {
  if (window_.gone_bytes == 0 || driver_block_) return 0;
  std::size_t gone = 0;
  const auto [first, last] = slots_at(begin, bytes);
  for (std::size_t slot = first; slot < last; ++slot) gone += window_.chunks[slot] == nullptr ? 1 : 0;
  return gone;
}

bool Slab::refill_at(std::uint64_t begin, std::uint64_t bytes) noexcept {
  if (window_.gone_bytes == 0 || driver_block_) return true;
  const auto [first, last] = slots_at(begin, bytes);
  for (std::size_t slot = first; slot < last; ++slot) {
    if (window_.chunks[slot] == nullptr && !refill_slot(slot)) return false;
  }
  return true;
}

// The chunk is gone. False: there is no other, or its bytes are nobody's to use.
bool Slab::refill_slot(std::size_t slot) noexcept {
  const std::uint64_t chunk_bytes = chunks_.chunk_bytes();
  Span* const span = window_.map.find(slot * chunk_bytes, nullptr);
  if (span == nullptr || !is_gone(*span)) return false;
  Chunk* chunk = bootstrap_.take_free_chunk();
  if (chunk == nullptr && chunks_.create(&chunk) != CUDA_SUCCESS) return false;
  try {
    if (chunks_.map(window_.base + slot * chunk_bytes, {chunk}) != CUDA_SUCCESS) {
      chunks_.release(chunk);
      return false;
    }
  } catch (const std::bad_alloc&) {
    bootstrap_.keep(chunk);
    return false;
  }
  chunk->slab_slot = static_cast<std::int64_t>(slot);
  window_.chunks[slot] = chunk;
  // Bytes that are new: there is nothing to wait for.
  give_parts_back(slot);
  window_.gone_bytes -= chunk_bytes;
  return true;
}

CUdeviceptr Slab::give_up_driver_block() noexcept {
  if (!driver_block_ || window_.base == 0 || has_block(window_)) return 0;
  const CUdeviceptr block = window_.base;
  window_.map.shrink(0);
  window_.base = 0;
  window_.bytes = 0;
  return block;
}

void Slab::release() noexcept {
  if (driver_block_) {
    // The context took it along.
    window_.base = 0;
    return;
  }
  // What is being built is made of the bootstrap's chunks, which gives them back itself.
  drop_beyond(0);
  for (std::size_t slot = 0; slot < window_.chunks.size(); ++slot) end_loan_of(slot);
  own_windows_.release();
  for (std::size_t slot = 0; slot < window_.chunks.size(); ++slot) {
    Chunk* const chunk = window_.chunks[slot];
    if (chunk == nullptr) continue;
    chunks_.unmap(window_.base + slot * chunks_.chunk_bytes(), chunks_.chunk_bytes());
    chunk->slab_slot = -1;
    if (chunk->home == nullptr) chunks_.release(chunk);
  }
  window_.chunks.clear();
  window_.gone_bytes = 0;
}

void Slab::drop_unfinished() noexcept {
  for (const std::size_t slot : remade_) {
    Chunk* const chunk = std::exchange(window_.chunks[slot], nullptr);
    if (chunk == nullptr) continue;
    chunks_.unmap(window_.base + slot * chunks_.chunk_bytes(), chunks_.chunk_bytes());
    chunk->slab_slot = -1;
    bootstrap_.keep(chunk);
  }
  remade_.clear();
  drop_beyond(0);
  wanted_ = window_.chunks.size();
}

void Slab::drop_beyond(std::size_t count) noexcept {
  // Where memory is the driver's, the chunks were never started, and have no size.
  if (window_.chunks.empty()) return;
  const std::size_t live = static_cast<std::size_t>(window_.map.bytes() / chunks_.chunk_bytes());
  while (window_.chunks.size() > std::max(live, count)) {
    Chunk* const chunk = window_.chunks.back();
    window_.chunks.pop_back();
    if (chunk == nullptr) continue;
    chunks_.unmap(window_.base + window_.chunks.size() * chunks_.chunk_bytes(), chunks_.chunk_bytes());
    chunk->slab_slot = -1;
    bootstrap_.keep(chunk);
  }
}

}  // namespace memopt::agent
