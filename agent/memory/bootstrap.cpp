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

void erase_value(auto& list, auto value) {
  const auto at = std::find(list.begin(), list.end(), value);
  if (at == list.end()) return;
  *at = list.back();
  list.pop_back();
}

}  // namespace

CUresult Bootstrap::serve(Block& block, bool only_held) noexcept {
  try {
    const bool large = block.bytes >= chunks_.chunk_bytes();
    // In the row its end would be in another chunk, which is one more than the driver takes.
    const bool whole_chunks = block.bytes % chunks_.chunk_bytes() == 0;
    if (row_.may_give_up()) shorten_row(false);
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
bool Bootstrap::serve_between(Block& block) noexcept {
  if (row_.serve_again(block)) return true;
  const std::uint64_t bytes = room_of(block.bytes, chunks_.chunk_bytes());
  for (Window* const window : shared_) {
    std::uint64_t begin = 0;
    if (window->map.find_free(bytes, &begin) && take(*window, begin, begin + bytes, block)) return true;
  }
  return false;
}

CUresult Bootstrap::serve_in_row(Block& block, bool only_held) {
  std::size_t count = 0;
  if (!row_.chunks_for(block.bytes, &count)) return serve_own(block, only_held);
  std::vector<Chunk*> gathered;
  CUresult result = gather(count, only_held, &gathered);
  if (result != CUDA_SUCCESS) return result;
  free_.reserve(free_.size() + gathered.size());
  try {
    result = row_.append(block, gathered);
  } catch (const std::bad_alloc&) {
    result = CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (result != CUDA_SUCCESS) {
    for (Chunk* const chunk : gathered) {
      if (chunk->home == nullptr) free_.push_back(chunk);
    }
  }
  return result;
}

bool Bootstrap::shorten_row(bool wait) noexcept {
  try {
    return row_.give_up(wait, &free_);
  } catch (const std::bad_alloc&) {
    return false;
  }
}

CUresult Bootstrap::serve_own(Block& block, bool only_held) {
  const std::size_t count =
      static_cast<std::size_t>(round_up(block.bytes, chunks_.chunk_bytes()) / chunks_.chunk_bytes());
  Window* window = find_cached(count);
  if (window != nullptr) {
    erase_value(cached_, window);
  } else {
    std::vector<Chunk*> gathered;
    CUresult result = gather(count, only_held, &gathered);
    if (result == CUDA_SUCCESS) result = open(Window::Kind::kOwn, std::move(gathered), &window);
    if (result != CUDA_SUCCESS) return result;
  }
  owned_.push_back(window);
  if (take(*window, 0, window->bytes, block)) return CUDA_SUCCESS;
  owned_.pop_back();
  cached_.push_back(window);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult Bootstrap::serve_shared(Block& block, bool only_held) {
  const std::uint64_t bytes = room_of(block.bytes, chunks_.chunk_bytes());
  for (Window* const window : shared_) {
    std::uint64_t begin = 0;
    if (window->map.find_free(bytes, &begin)) {
      return take(*window, begin, begin + bytes, block) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }
  }
  // Larger as more is shared, so that there are few of them.
  std::uint64_t shared_bytes = 0;
  for (const Window* const window : shared_) shared_bytes += window->bytes;
  // Beyond a part of the device each chunk is a window of its own: a block across two keeps both from others.
  const bool roomy = chunks_.counts().held_bytes < chunks_.device_bytes() / 8;
  const std::size_t count = std::clamp<std::size_t>(static_cast<std::size_t>(shared_bytes / 8 / chunks_.chunk_bytes()),
                                                    1, roomy ? kMostSharedChunks : 1);
  std::vector<Chunk*> gathered;
  CUresult result = gather(count, only_held, &gathered);
  // The device is nearly full: in small steps, then.
  if (result == CUDA_ERROR_OUT_OF_MEMORY && count > 1) result = gather(1, only_held, &gathered);
  Window* window = nullptr;
  if (result == CUDA_SUCCESS) result = open(Window::Kind::kShared, std::move(gathered), &window);
  if (result != CUDA_SUCCESS) return result;
  shared_.push_back(window);
  return take(*window, 0, bytes, block) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

Window* Bootstrap::find_cached(std::size_t count) noexcept {
  Window* best = nullptr;
  for (Window* const window : cached_) {
    const std::size_t chunks = window->chunks.size();
    if (chunks < count || chunks > count + count / 8) continue;
    // Of equal ones the one freed last: its work is on the stream that goes on, and others can be taken apart.
    if (best == nullptr || chunks < best->chunks.size() ||
        (chunks == best->chunks.size() && window->freed_at > best->freed_at)) {
      best = window;
    }
  }
  return best;
}

bool Bootstrap::may_grow(std::uint64_t bytes) const noexcept {
  const std::uint64_t needed = std::max(served_peak_, served_bytes_ + bytes);
  return chunks_.counts().held_bytes + bytes <= needed + std::max(needed / 16, kSlack);
}

// Programs try how much they can have: what cannot be had is not gathered first, chunk by chunk, with everything given
// up for it that is held.
bool Bootstrap::could_have(std::size_t count, bool only_held) const noexcept {
  std::size_t held = free_.size();
  for (const Window* const window : cached_) held += window->chunks.size();
  if (row_.may_give_up()) held += static_cast<std::size_t>(row_.free_bytes() / chunks_.chunk_bytes());
  return count <= held || (!only_held && chunks_.could_create(count - held));
}

CUresult Bootstrap::gather(std::size_t count, bool only_held, std::vector<Chunk*>* gathered) {
  if (count >= kLarge && !could_have(count, only_held)) return CUDA_ERROR_OUT_OF_MEMORY;
  gathered->reserve(count);
  const auto take_free = [&] {
    while (gathered->size() < count && !free_.empty()) {
      gathered->push_back(free_.back());
      free_.pop_back();
    }
  };
  const auto oldest = [&]() -> Window* {
    Window* found = nullptr;
    for (Window* const window : cached_) {
      if (found == nullptr || window->freed_at < found->freed_at) found = window;
    }
    return found;
  };
  free_.reserve(free_.size() + count);
  CUresult result = CUDA_SUCCESS;
  take_free();
  while (gathered->size() < count) {
    const bool grow = !only_held && result == CUDA_SUCCESS && may_grow(chunks_.chunk_bytes());
    if (!grow) {
      Window* const window = oldest();
      if ((row_.may_give_up() && shorten_row(true)) || (window != nullptr && dismantle(window, true))) {
        take_free();
        continue;
      }
      if (result != CUDA_SUCCESS && give_up_shared_chunks(true)) {
        take_free();
        continue;
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
  free_.insert(free_.end(), gathered->begin(), gathered->end());
  gathered->clear();
  return result != CUDA_SUCCESS ? result : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult Bootstrap::open(Window::Kind kind, std::vector<Chunk*> chunks, Window** opened) {
  auto window = std::make_unique<Window>();
  window->kind = kind;
  window->bytes = chunks.size() * chunks_.chunk_bytes();
  window->map.grow(window->bytes, Release{});
  cached_.reserve(cached_.size() + retiring_.size() + 16);
  shared_.reserve(shared_.size() + 1);
  owned_.reserve(owned_.size() + 1);
  cached_.reserve(cached_.size() + owned_.size() + 2);
  retiring_.reserve(cached_.capacity() + shared_.capacity() + retiring_.size());
  window->base = chunks_.reserve(window->bytes);
  const CUresult result = window->base == 0 ? CUDA_ERROR_OUT_OF_MEMORY : chunks_.map(window->base, chunks);
  if (result != CUDA_SUCCESS) {
    if (window->base != 0) chunks_.unreserve(window->base, window->bytes);
    free_.insert(free_.end(), chunks.begin(), chunks.end());
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

bool Bootstrap::dismantle(Window* window, bool wait) noexcept {
  Release uses = window->map.last_uses();
  if (wait ? !streams_.finish(uses) : !streams_.is_over(uses, true)) return false;
  try {
    free_.reserve(free_.size() + window->chunks.size());
  } catch (const std::bad_alloc&) {
    return false;
  }
  if (unmap_window(*window, chunks_) != CUDA_SUCCESS) return false;
  for (Chunk* const chunk : window->chunks) {
    if (chunk == nullptr) continue;
    chunk->home = nullptr;
    free_.push_back(chunk);
  }
  erase_value(cached_, window);
  erase_value(shared_, window);
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
  window->map.give_back(block.span, uses);
  if (window->kind == Window::Kind::kOwn) {
    window->freed_at = ++frees_;
    erase_value(owned_, window);
    cached_.push_back(window);
  }
}

void Bootstrap::hand_over(OwnershipMap& slab_map, std::uint64_t chunk_bytes) {
  retiring_.reserve(retiring_.size() + cached_.size());
  const auto is_slabs = [](const Chunk* chunk) { return chunk->slab_slot >= 0; };
  std::vector<Window*> kept;
  kept.reserve(cached_.size());
  for (Window* const window : cached_) {
    if (std::none_of(window->chunks.begin(), window->chunks.end(), is_slabs)) {
      kept.push_back(window);
      continue;
    }
    const Release uses = window->map.last_uses();
    for (Chunk* const chunk : window->chunks) {
      if (!is_slabs(chunk)) continue;
      const std::uint64_t begin = static_cast<std::uint64_t>(chunk->slab_slot) * chunk_bytes;
      slab_map.add_release(begin, begin + chunk_bytes, uses);
    }
    window->retiring = true;
    retiring_.push_back(window);
  }
  cached_ = std::move(kept);
  cached_.reserve(retiring_.size() + cached_.size() + 16);
  std::erase_if(free_, is_slabs);
}

void Bootstrap::keep(Chunk* chunk) noexcept {
  if (chunk->home != nullptr || std::find(free_.begin(), free_.end(), chunk) != free_.end()) return;
  try {
    free_.push_back(chunk);
  } catch (const std::bad_alloc&) {
    chunks_.release(chunk);
  }
}

bool Bootstrap::trim(std::size_t limit) noexcept {
  std::size_t done = 0;
  if (row_.may_give_up() && shorten_row(false)) ++done;
  for (std::size_t i = 0; i < retiring_.size() && done < limit;) {
    Window* const window = retiring_[i];
    if (!streams_.is_over(window->map.last_uses(), true)) {
      ++i;
      continue;
    }
    if (chunks_.unmap(window->base, window->bytes) == CUDA_SUCCESS) {
      for (Chunk* const chunk : window->chunks) {
        chunk->home = nullptr;
        if (chunk->slab_slot < 0) chunks_.release(chunk);
      }
      forget(window);
    }
    erase_value(retiring_, window);
    ++done;
  }
  for (std::size_t i = 0; i < cached_.size() && done < limit;) {
    if (dismantle(cached_[i], false)) {
      ++done;
    } else {
      ++i;
    }
  }
  bool left = false;  // shared ones whose work is not over
  for (std::size_t i = 0; i < shared_.size() && done < limit;) {
    if (has_block(*shared_[i])) {
      ++i;
    } else if (dismantle(shared_[i], false)) {
      ++done;
    } else {
      left = true;
      ++i;
    }
  }
  while (!free_.empty() && done < limit) {
    if (free_.back()->slab_slot < 0) chunks_.release(free_.back());
    free_.pop_back();
    ++done;
  }
  return done == limit || left || !retiring_.empty() || !cached_.empty() || row_.may_give_up();
}

// What is free between blocks that share windows, as whole chunks, becomes free chunks.
bool Bootstrap::give_up_shared_chunks(bool wait) noexcept {
  const std::size_t before = free_.size();
  try {
    for (Window* const window : shared_) give_up_chunks(*window, chunks_, streams_, wait, &free_);
  } catch (const std::bad_alloc&) {
  }
  return free_.size() != before;
}

void Bootstrap::give_up_idle() noexcept {
  give_up_shared_chunks(false);
  trim(~std::size_t{0});
}

std::uint64_t Bootstrap::idle_bytes() const noexcept {
  const std::uint64_t chunk_bytes = chunks_.chunk_bytes();
  std::uint64_t sum = memopt::agent::idle_bytes(row_.window(), chunk_bytes);
  for (const Window* const window : cached_) sum += window->bytes;
  for (const Window* const window : shared_) sum += memopt::agent::idle_bytes(*window, chunk_bytes);
  // What a slab has of these it counts itself.
  const auto count_own = [&](const Chunk* chunk) { sum += chunk->slab_slot < 0 ? chunk_bytes : 0; };
  for (const Window* const window : retiring_) std::for_each(window->chunks.begin(), window->chunks.end(), count_own);
  std::for_each(free_.begin(), free_.end(), count_own);
  return sum;
}

void Bootstrap::release_all() noexcept {
  for (std::vector<Window*>* const list : {&cached_, &shared_, &owned_, &retiring_}) {
    for (Window* const window : *list) {
      unmap_window(*window, chunks_);
      for (Chunk* const chunk : window->chunks) {
        if (chunk != nullptr && chunk->slab_slot < 0) chunks_.release(chunk);
      }
      forget(window);
    }
    list->clear();
  }
  row_.release_all();
  for (Chunk* const chunk : free_) {
    if (chunk->slab_slot < 0) chunks_.release(chunk);
  }
  free_.clear();
  served_bytes_ = 0;
}

std::uint64_t Bootstrap::cached_bytes() const noexcept {
  std::uint64_t sum = free_.size() * chunks_.chunk_bytes() + row_.free_bytes();
  for (const Window* const window : cached_) sum += window->bytes;
  for (const Window* const window : shared_) sum += window->bytes - window->map.owned_bytes();
  return sum;
}

}  // namespace memopt::agent
