#include "agent/memory/bootstrap.h"

#include <algorithm>
#include <memory>
#include <new>

#include "shm/plan.h"

namespace memopt::agent {
namespace {

constexpr std::uint64_t kAlignment = shm::kPlanAlignment;
// What is held may go beyond what has been needed by a sixteenth, or this much, before cached windows are taken apart.
constexpr std::uint64_t kSlack = std::uint64_t{8} << 20;
constexpr std::size_t kMostSharedChunks = 16;
// Windows that are asked about at one trim() in vain: work on some of them may go on for long.
constexpr std::size_t kTries = 64;
// So many chunks at once are not asked for without asking first whether there are as many.
constexpr std::size_t kLarge = 64;
// Blocks from this size on are not to need more of the device than they need of the driver.
constexpr std::uint64_t kCounts = std::uint64_t{64} << 10;

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; }

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
    const bool large = block.bytes >= chunks_.chunk_bytes();
    // In the row its end would be in another chunk, which is one more than the driver takes.
    const bool whole_chunks = block.bytes % chunks_.chunk_bytes() == 0;
    if (row_.may_give_up()) shorten_row();
    CUresult result = !large                         ? serve_shared(block, only_held)
                      : row_.open() && !whole_chunks ? serve_in_row(block, only_held)
                                                     : serve_own(block, only_held);
    if (result == CUDA_ERROR_OUT_OF_MEMORY && !only_held && serve_between(block)) result = CUDA_SUCCESS;
    if (result == CUDA_SUCCESS) {
      served_bytes_ += block.span->end - block.span->begin;
      served_peak_ = std::max(served_peak_, served_bytes_);
    }
    return result;
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

bool Bootstrap::take(Window& window, std::uint64_t begin, std::uint64_t end, Block& block) noexcept {
  Block* in_the_way = nullptr;
  Span* const span = window.map.take(begin, end, &block, nullptr, &block.former, &in_the_way);
  if (span == nullptr) return false;
  block.span = span;
  block.window = &window;
  block.base = window.base + begin;
  return true;
}

// The last resort: bytes that are free between blocks of another kind.
bool Bootstrap::serve_between(Block& block) {
  if (row_.serve_again(block)) return true;
  const std::uint64_t bytes = room_of(block.bytes, chunks_.chunk_bytes());
  Window* const window = shared_.find(bytes);
  return window != nullptr && take_shared(*window, bytes, block);
}

CUresult Bootstrap::serve_in_row(Block& block, bool only_held) {
  std::size_t count = 0;
  if (!row_.chunks_for(block.bytes, &count)) return serve_own(block, only_held);
  std::vector<Chunk*> gathered;
  CUresult result = gather(count, only_held, &gathered);
  if (result != CUDA_SUCCESS) return result;
  make_room(&free_, gathered.size());
  try {
    result = row_.append(block, gathered);
  } catch (const std::bad_alloc&) {
    result = CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (result != CUDA_SUCCESS) {
    for (Chunk* const chunk : gathered) {
      if (chunk->home == nullptr) add_free(chunk);
    }
  }
  return result;
}

bool Bootstrap::shorten_row() noexcept {
  const std::size_t before = free_.size();
  bool any = false;
  try {
    any = row_.give_up(&free_);
  } catch (const std::bad_alloc&) {
  }
  for (std::size_t i = before; i < free_.size(); ++i) free_[i]->spare = true;
  return any;
}

void Bootstrap::add_free(Chunk* chunk) noexcept {
  chunk->spare = true;
  free_.push_back(chunk);
}

void Bootstrap::cache(Window& window) noexcept {
  window.freed_at = ++frees_;
  window.searched = 0;
  cached_.push_back(window);
  by_size_.insert(window);
  unsearched_cached_.push_back(window);
  cached_chunks_ += window.chunks.size();
}

void Bootstrap::uncache(Window& window) noexcept {
  cached_.erase(cached_.iterator_to(window));
  by_size_.erase(by_size_.iterator_to(window));
  if (window.unsearched.is_linked()) unsearched_cached_.erase(unsearched_cached_.iterator_to(window));
  cached_chunks_ -= window.chunks.size();
}

void Bootstrap::own(Window& window) noexcept {
  window.searched = 0;
  owned_.push_back(window);
  unsearched_owned_.push_back(window);
}

CUresult Bootstrap::serve_own(Block& block, bool only_held) {
  const std::size_t count =
      static_cast<std::size_t>(round_up(block.bytes, chunks_.chunk_bytes()) / chunks_.chunk_bytes());
  Window* window = find_cached(count);
  if (window != nullptr) {
    uncache(*window);
  } else {
    std::vector<Chunk*> gathered;
    CUresult result = gather(count, only_held, &gathered);
    if (result == CUDA_SUCCESS) result = open(Window::Kind::kOwn, std::move(gathered), &window);
    if (result != CUDA_SUCCESS) return result;
  }
  if (!take(*window, 0, window->bytes, block)) {
    cache(*window);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  own(*window);
  return CUDA_SUCCESS;
}

CUresult Bootstrap::serve_shared(Block& block, bool only_held) {
  const std::uint64_t bytes = room_of(block.bytes, chunks_.chunk_bytes());
  Window* window = shared_.find(bytes);
  if (window == nullptr) {
    shared_.make_room();
    // Larger as more is shared, so that there are few of them. Beyond a part of the device each chunk is a window of
    // its own: a block across two keeps both from others.
    const bool roomy = chunks_.counts().held_bytes < chunks_.device_bytes() / 8;
    const std::size_t count = std::clamp<std::size_t>(
        static_cast<std::size_t>(shared_.bytes() / 8 / chunks_.chunk_bytes()), 1, roomy ? kMostSharedChunks : 1);
    std::vector<Chunk*> gathered;
    CUresult result = gather(count, only_held, &gathered);
    // The device is nearly full: in small steps, then.
    if (result == CUDA_ERROR_OUT_OF_MEMORY && count > 1) result = gather(1, only_held, &gathered);
    if (result == CUDA_SUCCESS) result = open(Window::Kind::kShared, std::move(gathered), &window);
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

// The smallest that is not much too large; of equal ones the one freed last: its work is on the stream that goes on,
// and others can be taken apart.
Window* Bootstrap::find_cached(std::size_t count) noexcept {
  const auto smallest = by_size_.lower_bound(WindowSize::type{count, 0});
  if (smallest == by_size_.end()) return nullptr;
  const std::size_t chunks = smallest->chunks.size();
  if (chunks > count + count / 8) return nullptr;
  return &*std::prev(by_size_.lower_bound(WindowSize::type{chunks + 1, 0}));
}

bool Bootstrap::may_grow(std::uint64_t bytes) const noexcept {
  const std::uint64_t needed = std::max(served_peak_, served_bytes_ + bytes);
  return chunks_.counts().held_bytes + bytes <= needed + std::max(needed / 16, kSlack);
}

// Programs try how much they can have: what cannot be had is not gathered first, chunk by chunk, with everything given
// up for it that is held.
bool Bootstrap::could_have(std::size_t count, bool only_held) const noexcept {
  std::size_t held = free_.size() + cached_chunks_;
  if (row_.may_give_up()) held += static_cast<std::size_t>(row_.free_bytes() / chunks_.chunk_bytes());
  return count <= held || (!only_held && chunks_.could_create(count - held));
}

CUresult Bootstrap::gather(std::size_t count, bool only_held, std::vector<Chunk*>* gathered) {
  if (count >= kLarge && !could_have(count, only_held)) return CUDA_ERROR_OUT_OF_MEMORY;
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
    const bool grow = !only_held && result == CUDA_SUCCESS && may_grow(chunks_.chunk_bytes());
    if (!grow) {
      Window* const window = cached_.empty() ? nullptr : &cached_.front();  // freed before the others
      if ((row_.may_give_up() && shorten_row()) || (window != nullptr && dismantle(window))) {
        take_free();
        continue;
      }
      awaited_ = {};
      if (result != CUDA_SUCCESS && give_up_shared_chunks(&awaited_)) {
        take_free();
        continue;
      }
      if (row_.may_give_up()) awaited_ = row_.awaited();
      if (window != nullptr) awaited_ = window->last_uses();
      // A host function may be among what would be waited for, and be waiting for this very thread: rather more memory
      // than that, as long as there is some.
      const bool may_wait = result != CUDA_SUCCESS || !streams_.has_visible();
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
    } else if (result != CUDA_ERROR_OUT_OF_MEMORY) {
      break;
    }
  }
  if (gathered->size() == count) return CUDA_SUCCESS;
  for (Chunk* const chunk : *gathered) add_free(chunk);
  gathered->clear();
  return result != CUDA_SUCCESS ? result : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult Bootstrap::open(Window::Kind kind, std::vector<Chunk*> chunks, Window** opened) noexcept {
  std::unique_ptr<Window> window;
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  try {
    window = std::make_unique<Window>();
    window->kind = kind;
    window->bytes = chunks.size() * chunks_.chunk_bytes();
    window->map.grow(window->bytes, Release{});
    if (kind == Window::Kind::kShared) window->space = std::make_unique<SharedSpace>(window->map);
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
  for (Chunk* const chunk : window->chunks) chunk->home = window.get();
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
  if (window->kind == Window::Kind::kShared) {
    shared_.remove(window);
    empty_shared_.erase(empty_shared_.iterator_to(*window));
  } else {
    uncache(*window);
  }
  forget(window);
  return true;
}

void Bootstrap::take_back(Block& block, const Release& uses) noexcept {
  Window* const window = block.window;
  served_bytes_ -= block.span->end - block.span->begin;
  if (window->kind == Window::Kind::kRow) {
    row_.take_back(block, uses);
    return;
  }
  if (window->kind == Window::Kind::kShared) {
    shared_owned_ -= block.span->end - block.span->begin;
    window->space->give_back(block.span, uses);
    shared_.changed(*window);
    if (!has_block(*window)) empty_shared_.push_back(*window);
    return;
  }
  window->map.give_back(block.span, uses);
  owned_.erase(owned_.iterator_to(*window));
  if (window->unsearched.is_linked()) unsearched_owned_.erase(unsearched_owned_.iterator_to(*window));
  cache(*window);
}

void Bootstrap::begin_slab_search() noexcept {
  unsearched_owned_.clear();
  for (Window& window : owned_) {
    window.searched = 0;
    unsearched_owned_.push_back(window);
  }
}

Chunk* Bootstrap::find_free_chunk() noexcept {
  searched_free_ = std::min(searched_free_, free_.size());
  for (; searched_free_ < free_.size(); ++searched_free_) {
    if (free_[searched_free_]->slab_slot < 0) return free_[searched_free_];
  }
  while (!unsearched_cached_.empty()) {
    if (Chunk* const chunk = next_unsearched(unsearched_cached_.front())) return chunk;
    unsearched_cached_.pop_front();
  }
  return nullptr;
}

Chunk* Bootstrap::next_unsearched(Window& window) noexcept {
  for (; window.searched < window.chunks.size(); ++window.searched) {
    Chunk* const chunk = window.chunks[window.searched];
    if (chunk->slab_slot < 0) return chunk;
  }
  return nullptr;
}

void Bootstrap::hand_over(OwnershipMap& slab_map, std::uint64_t chunk_bytes) {
  const auto is_slabs = [](const Chunk* chunk) { return chunk->slab_slot >= 0; };
  for (auto at = cached_.begin(); at != cached_.end();) {
    Window& window = *at++;
    if (std::none_of(window.chunks.begin(), window.chunks.end(), is_slabs)) continue;
    const Release uses = window.last_uses();
    for (Chunk* const chunk : window.chunks) {
      if (!is_slabs(chunk)) continue;
      const std::uint64_t begin = static_cast<std::uint64_t>(chunk->slab_slot) * chunk_bytes;
      slab_map.add_release(begin, begin + chunk_bytes, uses);
    }
    uncache(window);
    window.retiring = true;
    retiring_.push_back(window);
  }
  std::erase_if(free_, [&](Chunk* chunk) {
    if (is_slabs(chunk)) chunk->spare = false;
    return is_slabs(chunk);
  });
  searched_free_ = 0;
}

void Bootstrap::keep(Chunk* chunk) noexcept {
  if (Window* const home = chunk->home) {
    // The search has passed it.
    if (home->kind != Window::Kind::kOwn || home->retiring) return;
    home->searched = 0;
    if (home->unsearched.is_linked()) return;
    if (home->map.has_owner()) {
      unsearched_owned_.push_back(*home);
    } else {
      unsearched_cached_.push_back(*home);
    }
    return;
  }
  searched_free_ = 0;
  if (chunk->spare) return;
  try {
    free_.push_back(chunk);
    chunk->spare = true;
  } catch (const std::bad_alloc&) {
    chunks_.release(chunk);
  }
}

bool Bootstrap::trim(std::size_t limit) noexcept {
  std::size_t done = 0;
  std::size_t tries = limit < ~kTries ? limit + kTries : limit;
  if (row_.may_give_up() && shorten_row()) ++done;
  for (auto at = retiring_.begin(); at != retiring_.end() && done < limit && tries != 0;) {
    Window& window = *at++;
    --tries;
    if (!streams_.is_over(window.last_uses(), true)) continue;
    retiring_.erase(retiring_.iterator_to(window));
    if (chunks_.unmap(window.base, window.bytes) == CUDA_SUCCESS) {
      for (Chunk* const chunk : window.chunks) {
        chunk->home = nullptr;
        if (chunk->slab_slot < 0) chunks_.release(chunk);
      }
      forget(&window);
    }
    ++done;
  }
  for (Listed* const list : {&cached_, &empty_shared_}) {
    for (auto at = list->begin(); at != list->end() && done < limit && tries != 0;) {
      Window& window = *at++;
      --tries;
      if (dismantle(&window)) ++done;
    }
  }
  while (!free_.empty() && done < limit) {
    Chunk* const chunk = free_.back();
    free_.pop_back();
    chunk->spare = false;
    if (chunk->slab_slot < 0) chunks_.release(chunk);
    ++done;
  }
  return done == limit || !retiring_.empty() || !cached_.empty() || !empty_shared_.empty() || row_.may_give_up();
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
  trim(~std::size_t{0});
  if (row_.may_give_up()) await_also(row_.awaited(), awaited);
  for (Listed* const list : {&retiring_, &cached_}) {
    for (Window& window : *list) await_also(window.last_uses(), awaited);
  }
}

std::uint64_t Bootstrap::idle_bytes() const noexcept {
  const std::uint64_t chunk_bytes = chunks_.chunk_bytes();
  std::uint64_t sum = cached_chunks_ * chunk_bytes + memopt::agent::idle_bytes(row_.window(), chunk_bytes);
  shared_.for_each([&](const Window& window) {
    if (window.space->largest() >= chunk_bytes) sum += memopt::agent::idle_bytes(window, chunk_bytes);
  });
  // What a slab has of these it counts itself.
  const auto count_own = [&](const Chunk* chunk) { sum += chunk->slab_slot < 0 ? chunk_bytes : 0; };
  for (const Window& window : retiring_) std::for_each(window.chunks.begin(), window.chunks.end(), count_own);
  std::for_each(free_.begin(), free_.end(), count_own);
  return sum;
}

void Bootstrap::release_all() noexcept {
  const auto give_up = [&](Window& window) {
    unmap_window(window, chunks_);
    for (Chunk* const chunk : window.chunks) {
      if (chunk != nullptr && chunk->slab_slot < 0) chunks_.release(chunk);
    }
    forget(&window);
  };
  unsearched_cached_.clear();
  unsearched_owned_.clear();
  by_size_.clear();
  empty_shared_.clear();
  for (Listed* const list : {&cached_, &owned_, &retiring_}) {
    list->clear_and_dispose([&](Window* window) { give_up(*window); });
  }
  shared_.for_each([&](Window& window) {
    shared_.remove(&window);
    give_up(window);
  });
  row_.release_all();
  for (Chunk* const chunk : free_) {
    if (chunk->slab_slot < 0) chunks_.release(chunk);
  }
  free_.clear();
  searched_free_ = 0;
  cached_chunks_ = 0;
  shared_owned_ = 0;
  served_bytes_ = 0;
}

std::uint64_t Bootstrap::cached_bytes() const noexcept {
  return (free_.size() + cached_chunks_) * chunks_.chunk_bytes() + row_.free_bytes() + shared_.bytes() - shared_owned_;
}

}  // namespace memopt::agent
