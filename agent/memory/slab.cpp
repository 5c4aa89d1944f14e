#include "agent/memory/slab.h"

#include <algorithm>
#include <new>
#include <utility>

#include "agent/process/log.h"

namespace memopt::agent {

bool Slab::want(std::uint64_t bytes, std::function<bool(std::uint64_t)> stays) {
  if (driver_block_) {
    if (window_.base != 0 && bytes > window_.map.bytes()) return false;
    wanted_bytes_ = bytes;
    return true;
  }
  if (window_.base == 0) {
    // Addresses for all the device has, so that it can grow where it is.
    window_.kind = Window::Kind::kSlab;
    window_.base = chunks_.reserve(chunks_.device_bytes());
    if (window_.base == 0) return false;
    chunks_.set_window(window_.base, chunks_.device_bytes(), &window_);
  }
  const std::uint64_t chunk = chunks_.chunk_bytes();
  if (bytes > chunks_.device_bytes()) return false;
  // What was begun for another plan is of no use to this one if it reaches further.
  drop_beyond(static_cast<std::size_t>((bytes + chunk - 1) / chunk));
  const std::size_t wanted = static_cast<std::size_t>((bytes + chunk - 1) / chunk);
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
      Chunk* const chunk = bootstrap_.find_chunk_for_slab(stays_);
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

CUresult Slab::go_live() noexcept {
  if (driver_block_) return make_driver_block();
  const std::uint64_t chunk_bytes = chunks_.chunk_bytes();
  const std::size_t live = static_cast<std::size_t>(window_.map.bytes() / chunk_bytes);
  if (wanted_ <= live) return CUDA_SUCCESS;
  // Blocks were freed behind the search.
  bootstrap_.begin_slab_search();
  try {
    // Chunks of blocks that cross the switch stay theirs until they are freed. Free ones take their slots as long as
    // there are some.
    std::size_t made = 0;
    std::size_t replaced = 0;
    std::size_t lent = 0;
    for (std::size_t slot = live; slot < wanted_; ++slot) {
      Chunk* const there = slot < window_.chunks.size() ? window_.chunks[slot] : nullptr;
      if (there != nullptr && bootstrap_.is_free(*there)) continue;
      Chunk* chunk = bootstrap_.find_free_chunk();
      if (chunk == nullptr && there != nullptr && there->home != nullptr &&
          there->home->kind == Window::Kind::kRegion) {
        ++lent;
        continue;
      }
      replaced += there != nullptr ? 1 : 0;
      if (chunk == nullptr) {
        ++made;
        const CUresult result = chunks_.create(&chunk);
        if (result != CUDA_SUCCESS) {
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
      if (there != nullptr) {
        window_.chunks[slot] = chunk;
      } else {
        window_.chunks.push_back(chunk);
      }
    }
    log(LogLevel::kDebug, "slab of {} chunks, {} live before, {} made for it, {} replaced, {} lent", wanted_, live,
        made, replaced, lent);
    window_.map.grow((wanted_ - live) * chunk_bytes, Release{});
    try {
      if (lent != 0) lend(live);
      bootstrap_.hand_over(window_.chunks, live, window_.map);
    } catch (const std::bad_alloc&) {
      end_loans(live);
      window_.map.shrink(live * chunk_bytes);
      throw;
    }
    window_.bytes = window_.map.bytes();
  } catch (const std::bad_alloc&) {
    drop_unfinished();
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return CUDA_SUCCESS;
}

// Nothing is served from slots whose chunk a block of before lies in.
void Slab::lend(std::size_t first) {
  const std::uint64_t chunk_bytes = chunks_.chunk_bytes();
  for (std::size_t slot = first; slot < window_.chunks.size(); ++slot) {
    Chunk* const chunk = window_.chunks[slot];
    if (chunk == nullptr || bootstrap_.is_free(*chunk)) continue;
    if (take_away(window_, slot * chunk_bytes, (slot + 1) * chunk_bytes) == nullptr) throw std::bad_alloc();
    chunk->lent = true;
    bootstrap_.lend(1, window_.map);
  }
}

void Slab::end_loans(std::size_t first) noexcept {
  for (std::size_t slot = first; slot < window_.chunks.size(); ++slot) {
    Chunk* const chunk = window_.chunks[slot];
    if (chunk == nullptr || !chunk->lent) continue;
    window_.map.give_back(window_.map.find(slot * chunks_.chunk_bytes(), nullptr), Release{});
    bootstrap_.end_loan(chunk);
  }
}

void Slab::give_up_lent() noexcept {
  if (lent_chunks() == 0) return;
  const std::uint64_t chunk_bytes = chunks_.chunk_bytes();
  for (std::size_t slot = 0; slot < window_.chunks.size(); ++slot) {
    Chunk* const chunk = window_.chunks[slot];
    // Refused (and said so): nothing is ever served from these bytes.
    if (chunk == nullptr || !chunk->lent ||
        chunks_.unmap(window_.base + slot * chunk_bytes, chunk_bytes) != CUDA_SUCCESS)
      continue;
    chunk->slab_slot = -1;
    window_.chunks[slot] = nullptr;
    window_.gone_bytes += chunk_bytes;
    bootstrap_.end_loan(chunk);
  }
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
    chunk->slab_slot = -1;
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
    if (chunk->home == nullptr) chunks_.release(chunk);
  }
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
  const std::uint64_t chunk_bytes = chunks_.chunk_bytes();
  try {
    for (std::size_t slot = 0; window_.gone_bytes != 0 && limit != 0 && slot < window_.chunks.size(); ++slot) {
      if (window_.chunks[slot] != nullptr) continue;
      Span* const span = window_.map.find(slot * chunk_bytes, nullptr);
      if (span == nullptr || !is_gone(*span)) continue;
      Chunk* chunk = nullptr;
      if (chunks_.create(&chunk) != CUDA_SUCCESS) break;
      if (chunks_.map(window_.base + slot * chunk_bytes, {chunk}) != CUDA_SUCCESS) {
        chunks_.release(chunk);
        break;
      }
      chunk->slab_slot = static_cast<std::int64_t>(slot);
      window_.chunks[slot] = chunk;
      // Bytes that are new: there is nothing to wait for.
      window_.map.give_back(span, Release{});
      window_.gone_bytes -= chunk_bytes;
      --limit;
    }
  } catch (const std::bad_alloc&) {
  }
  return window_.gone_bytes == 0;
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
  end_loans(0);
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
