#include "agent/memory/bootstrap.h"

#include <algorithm>
#include <memory>
#include <new>

#include "agent/memory/rounding.h"
#include "shm/plan.h"

namespace memopt::agent {
namespace {

constexpr std::uint64_t kAlignment = shm::kPlanAlignment;
// What is held may go beyond what has been needed by this part, or this much, before cached windows are taken apart.
// Where that would have to wait for the device, a host that runs ahead of it loses that: behind so many blocks, by
// which a program that repeats has its plan, by the other part.
constexpr std::uint64_t kSlackPart = 16;
constexpr std::uint64_t kSlackPartForWait = 4;
constexpr std::uint64_t kManyBlocks = 8192;
constexpr std::uint64_t kSlack = std::uint64_t{8} << 20;
constexpr std::size_t kMostSharedChunks = 16;
// To move a chunk takes calls of the driver as to make one, and a program whose blocks have other sizes each time moves
// some in each iteration. Behind as many moves as chunks are needed, one more may be held for so many further ones, up
// to that part of what is needed, and to what the program's own allocator would hold less this part. Where that is not
// known it could be more than natively.
constexpr std::uint64_t kMovesForOne = 4;
constexpr std::uint64_t kBelowReferencePart = 16;
constexpr std::uint64_t kSlackPartForMoves = 2;
// Blocks that are made one after the other, none being freed, until further ones stand side by side. Between two frees
// of a network's forward or backward pass there are hardly more.
constexpr std::uint64_t kRow = 8;
// So many chunks at once are not asked for without asking first whether there are as many.
constexpr std::size_t kLarge = 64;
// Blocks from this size on are not to need more of the device than they need of the driver.
constexpr std::uint64_t kCounts = std::uint64_t{64} << 10;

// One byte more than asked: a pointer to the block's end then lies in the block's own span, and what launches name is
// the same in each iteration, whichever block is the neighbour. Not where a chunk then has room for one block fewer: a
// device that is filled with such blocks would be full too soon.
std::uint64_t room_of(std::uint64_t bytes, std::uint64_t chunk_bytes) {
  const std::uint64_t exact = round_up(bytes, kAlignment);
  const std::uint64_t roomy = round_up(bytes + 1, kAlignment);
  return bytes >= kCounts && chunk_bytes / exact != chunk_bytes / roomy ? exact : roomy;
}

}  // namespace

CUresult Bootstrap::serve(Block& block, bool only_held) noexcept {
  try {
    wanted_ = round_up(block.bytes, chunks_.chunk_bytes());
    CUresult result = CUDA_SUCCESS;
    if (!serve_in_row(block))
      result = block.bytes >= chunks_.chunk_bytes() ? serve_large(block, only_held) : serve_shared(block, only_held);
    if (result == CUDA_ERROR_OUT_OF_MEMORY && !only_held && serve_between(block)) result = CUDA_SUCCESS;
    if (result == CUDA_SUCCESS) {
      ++served_blocks_;
      ++made_in_a_row_;
      served_bytes_ += block.span->end - block.span->begin;
      served_peak_ = std::max(served_peak_, served_bytes_);
      needs_.served(served_bytes_);
    }
    return result;
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

// Many blocks that are made while none is freed stay, as a rule, as an optimizer's states do, or go together. Where
// each fits best is between blocks that go, and chunks of which these have a part would be in the way of whatever needs
// whole ones. At a limit pages leave for host memory, and it matters more what is used together.
bool Bootstrap::serve_in_row(Block& block) {
  return made_in_a_row_ >= kRow && chunks_.limit() == 0 &&
         region_.serve_in_row(block, room_of(block.bytes, chunks_.chunk_bytes()));
}

// The last resort: bytes that are free between blocks of another kind.
bool Bootstrap::serve_between(Block& block) {
  if (region_.serve(block, true)) return true;
  const std::uint64_t bytes = room_of(block.bytes, chunks_.chunk_bytes());
  Window* const window = shared_.find(bytes);
  return window != nullptr && take_shared(*window, bytes, block);
}

CUresult Bootstrap::serve_large(Block& block, bool only_held) {
  if (region_.serve(block, false)) return CUDA_SUCCESS;
  // What is free at the end of the region counts with the rest: it may have to be moved.
  const auto all = static_cast<std::size_t>(wanted_ / chunks_.chunk_bytes());
  if (all >= kLarge && !could_have(all, only_held)) return CUDA_ERROR_OUT_OF_MEMORY;
  std::vector<Chunk*> gathered;
  CUresult result = CUDA_SUCCESS;
  Region::Growth growth;
  // Gathering takes chunks out of the region, and perhaps such as were to be part of it.
  while (result == CUDA_SUCCESS) {
    if (!region_.plan_growth(block, &growth) &&
        (region_.retire(~std::size_t{0}, true) == 0 || !region_.plan_growth(block, &growth))) {
      result = CUDA_ERROR_OUT_OF_MEMORY;
    } else if (growth.chunks <= gathered.size()) {
      break;
    } else {
      std::vector<Chunk*> more;
      gathered.reserve(growth.chunks);
      result = gather(growth.chunks - gathered.size(), only_held, &more);
      gathered.insert(gathered.end(), more.begin(), more.end());
    }
  }
  const auto put_back = [&](std::size_t from) {
    for (std::size_t i = from; i < gathered.size(); ++i) add_free(gathered[i]);
    gathered.resize(from);
  };
  make_room(&free_, gathered.size());
  if (result == CUDA_SUCCESS) {
    put_back(growth.chunks);
    try {
      result = region_.grow(growth, gathered, block);
    } catch (const std::bad_alloc&) {
      result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result != CUDA_SUCCESS && !gathered.empty() && gathered.front()->home != nullptr) gathered.clear();
  }
  if (result != CUDA_SUCCESS) put_back(0);
  return result;
}

// Chunks that are free as a whole, out of the region. Returns how many.
std::size_t Bootstrap::free_region_chunks(std::size_t limit, bool of_slab, Release* awaited) noexcept {
  const std::size_t before = free_.size();
  try {
    region_.give_up(limit, of_slab, &free_, awaited);
  } catch (const std::bad_alloc&) {
  }
  for (std::size_t i = before; i < free_.size(); ++i) free_[i]->spare = true;
  return free_.size() - before;
}

void Bootstrap::add_free(Chunk* chunk) noexcept {
  chunk->spare = true;
  free_.push_back(chunk);
}

CUresult Bootstrap::serve_shared(Block& block, bool only_held) {
  const std::uint64_t bytes = room_of(block.bytes, chunks_.chunk_bytes());
  Window* window = shared_.find(bytes);
  if (window == nullptr) {
    // Where no chunk is at hand for a window, rather bytes of the region than a chunk out of it. Not where the device
    // fills: blocks of several sizes keep more from each other than each sort would by itself.
    const bool spacious = chunks_.counts().held_bytes < chunks_.device_bytes() / 2;
    if (spacious && region_.serve_small(block, bytes, free_.empty())) return CUDA_SUCCESS;
    shared_.make_room();
    // Larger as more is shared, so that there are few of them. Beyond a part of the device each chunk is a window of
    // its own: a block across two keeps both from others.
    const bool roomy = chunks_.counts().held_bytes < chunks_.device_bytes() / 8;
    const std::size_t count = std::clamp<std::size_t>(
        static_cast<std::size_t>(shared_.bytes() / 32 / chunks_.chunk_bytes()), 1, roomy ? kMostSharedChunks : 1);
    std::vector<Chunk*> gathered;
    CUresult result = gather(count, only_held, &gathered);
    // The device is nearly full: in small steps, then.
    if (result == CUDA_ERROR_OUT_OF_MEMORY && count > 1) result = gather(1, only_held, &gathered);
    if (result == CUDA_SUCCESS) result = open(std::move(gathered), &window);
    if (result != CUDA_SUCCESS) return result;
    shared_.add(window);
    empty_shared_.push_back(*window);
  }
  return take_shared(*window, bytes, block) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

bool Bootstrap::take_shared(Window& window, std::uint64_t bytes, Block& block) noexcept {
  Span* const span = window.space->take(bytes, &block, &block.former);
  if (span == nullptr) return false;
  shared_.changed(window);
  shared_owned_ += bytes;
  if (window.listed.is_linked()) empty_shared_.erase(empty_shared_.iterator_to(window));
  block.span = span;
  block.window = &window;
  block.base = window.base + span->begin;
  return true;
}

bool Bootstrap::may_grow(std::uint64_t part) const noexcept {
  const std::uint64_t needed = std::max(served_peak_, served_bytes_ + wanted_);
  return chunks_.counts().held_bytes + chunks_.chunk_bytes() <= needed + std::max(needed / part, kSlack);
}

bool Bootstrap::may_grow_for_moves() const noexcept {
  const std::uint64_t chunk_bytes = chunks_.chunk_bytes();
  const std::uint64_t needed = std::max(needs_.peak(), served_bytes_ + wanted_);
  const std::uint64_t free_of_charge = needed / chunk_bytes;
  if (moved_ <= free_of_charge || chunks_.limit() != 0) return false;
  // Nothing where it is not known.
  const std::uint64_t below = reference_bytes_ - reference_bytes_ / kBelowReferencePart;
  if (chunks_.counts().held_bytes + chunk_bytes > below) return false;
  const std::uint64_t earned = (moved_ - free_of_charge) / kMovesForOne * chunk_bytes;
  return served_bytes_ + cached_bytes() + chunk_bytes <= needed + std::min(earned, needed / kSlackPartForMoves);
}

// Programs try how much they can have: what cannot be had is not gathered first, chunk by chunk, with everything given
// up for it that is held.
bool Bootstrap::could_have(std::size_t count, bool only_held) const noexcept {
  const std::size_t held = idle_chunks();
  return count <= held || (!only_held && chunks_.could_create(count - held));
}

CUresult Bootstrap::gather(std::size_t count, bool only_held, std::vector<Chunk*>* gathered, bool at_once, bool keeps) {
  gathered->reserve(count);
  const auto take_free = [&] {
    while (gathered->size() < count && !free_.empty()) {
      gathered->push_back(free_.back());
      free_.back()->spare = false;
      free_.pop_back();
    }
  };
  make_room(&free_, count);
  CUresult result = CUDA_SUCCESS;
  take_free();
  while (gathered->size() < count) {
    const bool rather_more = result == CUDA_SUCCESS && may_grow_for_moves();
    if (only_held && rather_more) break;
    const bool grow = !only_held && result == CUDA_SUCCESS && (at_once || rather_more || may_grow(kSlackPart));
    if (!grow) {
      awaited_ = {};
      const std::size_t freed = free_region_chunks(count - gathered->size(), true, &awaited_);
      moved_ += freed;
      if (freed != 0 || (result != CUDA_SUCCESS && give_up_shared_chunks(&awaited_))) {
        take_free();
        continue;
      }
      // A host function may be among what would be waited for, and be waiting for this very thread: rather more memory
      // than that, as long as there is some.
      const bool rather_grow = served_blocks_ > kManyBlocks && may_grow(kSlackPartForWait);
      const bool may_wait = result != CUDA_SUCCESS || !(streams_.has_visible() || rather_grow);
      if (may_wait && !streams_.is_over(awaited_, false)) {
        result = CUDA_ERROR_NOT_READY;
        break;
      }
      if (only_held || result != CUDA_SUCCESS) break;
    }
    Chunk* chunk = nullptr;
    result = chunks_.create(&chunk);
    if (result == CUDA_SUCCESS) {
      gathered->push_back(chunk);
      needs_.chunk_made();
    } else if (result != CUDA_ERROR_OUT_OF_MEMORY) {
      break;
    }
  }
  if (gathered->size() >= count) return CUDA_SUCCESS;
  if (!keeps) {
    for (Chunk* const chunk : *gathered) add_free(chunk);
    gathered->clear();
  }
  return result != CUDA_SUCCESS ? result : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult Bootstrap::take_chunks(std::size_t count, bool at_once, std::vector<Chunk*>* taken) noexcept {
  try {
    wanted_ = count * chunks_.chunk_bytes();
    return gather(count, false, taken, at_once, true);
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

CUresult Bootstrap::open(std::vector<Chunk*> chunks, Window** opened) noexcept {
  std::unique_ptr<Window> window;
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  try {
    window = std::make_unique<Window>();
    window->bytes = chunks.size() * chunks_.chunk_bytes();
    window->map.grow(window->bytes, Release{});
    window->space = std::make_unique<SharedSpace>(window->map);
    window->base = chunks_.reserve(window->bytes);
    if (window->base != 0) result = chunks_.map(window->base, chunks);
  } catch (const std::bad_alloc&) {
  }
  if (result != CUDA_SUCCESS) {
    if (window != nullptr && window->base != 0) chunks_.unreserve(window->base, window->bytes);
    for (Chunk* const chunk : chunks) add_free(chunk);  // gather() has made room for them
    return result;
  }
  window->chunks = std::move(chunks);
  std::uint32_t page = 0;
  for (Chunk* const chunk : window->chunks) {
    chunk->home = window.get();
    chunk->page = page++;
  }
  chunks_.set_window(window->base, window->bytes, window.get());
  *opened = window.release();
  return CUDA_SUCCESS;
}

void Bootstrap::forget(Window* window) noexcept {
  chunks_.set_window(window->base, window->bytes, nullptr);
  chunks_.unreserve(window->base, window->bytes);
  delete window;
}

bool Bootstrap::dismantle(Window* window) noexcept {
  if (window->kept_chunks != 0) return false;
  if (!streams_.is_over(window->last_uses(), true)) return false;
  try {
    make_room(&free_, window->chunks.size());
  } catch (const std::bad_alloc&) {
    return false;
  }
  if (unmap_window(*window, chunks_) != CUDA_SUCCESS) return false;
  for (Chunk* const chunk : window->chunks) {
    if (chunk == nullptr) continue;
    chunk->home = nullptr;
    add_free(chunk);
  }
  shared_.remove(window);
  empty_shared_.erase(empty_shared_.iterator_to(*window));
  forget(window);
  return true;
}

void Bootstrap::take_back(Block& block, const Release& uses) noexcept {
  Window* const window = block.window;
  const std::uint64_t begin = block.span->begin;
  const std::uint64_t end = block.span->end;
  served_bytes_ -= end - begin;
  made_in_a_row_ = 0;
  if (window->kind == Window::Kind::kRegion) {
    region_.take_back(block, uses);
    if (kept_chunks_ != 0) return_kept(*window, begin, end, uses);
    return;
  }
  shared_owned_ -= end - begin;
  window->space->give_back(block.span, uses);
  if (window->kept_chunks != 0) return_kept(*window, begin, end, uses);
  shared_.changed(*window);
  if (!has_block(*window) && window->kept_chunks == 0) empty_shared_.push_back(*window);
}

bool Bootstrap::trim(std::size_t limit, std::uint64_t keep, Release* awaited) noexcept {
  Release ignored;
  const std::size_t kept = static_cast<std::size_t>((keep + chunks_.chunk_bytes() - 1) / chunks_.chunk_bytes());
  const auto surplus = [&] { return idle_chunks() - std::min(kept, idle_chunks()); };
  std::size_t done = 0;
  // What is mapped for a slab that is being built is held for that anyway, and serves blocks until it goes live.
  free_region_chunks(std::min(limit, surplus()), false, awaited != nullptr ? awaited : &ignored);
  std::size_t tries = kTries;
  for (auto at = empty_shared_.begin(); keep == 0 && at != empty_shared_.end() && done < limit && tries != 0;) {
    Window& window = *at++;
    --tries;
    if (dismantle(&window)) ++done;
  }
  for (std::size_t i = free_.size(); i-- > 0 && done < limit && surplus() != 0;) {
    Chunk* const chunk = free_[i];
    if (chunk->slab_slot >= 0) continue;
    free_[i] = free_.back();
    free_.pop_back();
    chunks_.release(chunk);
    needs_.chunk_given_back();
    ++done;
  }
  if (done < limit) done += region_.retire(limit - done);
  return done == limit || region_.retiring() != 0 || surplus() != 0 || (keep == 0 && !empty_shared_.empty());
}

// What is free between blocks that share windows, as whole chunks, becomes free chunks.
bool Bootstrap::give_up_shared_chunks(Release* awaited) noexcept {
  const std::size_t before = free_.size();
  try {
    shared_.for_each([&](Window& window) {
      if (window.space->largest() < chunks_.chunk_bytes()) return;
      // As a whole, with its addresses.
      if (!has_block(window) && dismantle(&window)) return;
      const std::uint64_t gone = window.gone_bytes;
      const std::size_t freed = free_.size();
      const auto note = [&] {
        for (std::size_t i = freed; i < free_.size(); ++i) free_[i]->spare = true;
        shared_.gave_up(window, window.gone_bytes - gone);
      };
      try {
        give_up_chunks(window, chunks_, streams_, &free_, awaited);
      } catch (const std::bad_alloc&) {
        note();
        throw;
      }
      note();
    });
  } catch (const std::bad_alloc&) {
  }
  return free_.size() != before;
}

void Bootstrap::give_up_idle(Release* awaited) noexcept {
  give_up_shared_chunks(awaited);
  trim(~std::size_t{0}, 0, awaited);
  region_.await_retiring(awaited);
}

std::uint64_t Bootstrap::idle_bytes() const noexcept {
  const std::uint64_t chunk_bytes = chunks_.chunk_bytes();
  std::uint64_t sum = region_.free_chunks() * chunk_bytes;
  shared_.for_each([&](const Window& window) {
    if (window.space->largest() >= chunk_bytes) sum += memopt::agent::idle_bytes(window, chunk_bytes);
  });
  // What a slab has of these it counts itself.
  const auto count_own = [&](const Chunk* chunk) { sum += chunk->slab_slot < 0 ? chunk_bytes : 0; };
  region_.for_each_retiring(count_own);
  std::for_each(free_.begin(), free_.end(), count_own);
  return sum;
}

void Bootstrap::release_all() noexcept {
  empty_shared_.clear();
  shared_.for_each([&](Window& window) {
    shared_.remove(&window);
    unmap_window(window, chunks_);
    for (Chunk* const chunk : window.chunks) {
      if (chunk != nullptr && chunk->slab_slot < 0) chunks_.release(chunk);
    }
    forget(&window);
  });
  region_.release_all();
  for (Chunk* const chunk : free_) {
    if (chunk->slab_slot < 0) chunks_.release(chunk);
  }
  free_.clear();
  searched_free_ = 0;
  shared_owned_ = 0;
  kept_chunks_ = 0;
  served_bytes_ = 0;
  needs_.forget(0);
}

std::uint64_t Bootstrap::cached_bytes() const noexcept {
  return free_.size() * chunks_.chunk_bytes() + region_.free_bytes() + shared_.bytes() - shared_owned_;
}

}  // namespace memopt::agent
