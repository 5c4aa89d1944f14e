#include "pool.h"

#include <algorithm>
#include <iterator>

#include "runtime.h"

namespace caching_pool {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kRounding = 512;
constexpr std::size_t kSmallSize = kMiB;
constexpr std::size_t kSmallSegment = 2 * kMiB;
constexpr std::size_t kSharedSegment = 20 * kMiB;
constexpr std::size_t kSharedBelow = 10 * kMiB;
constexpr std::size_t kSegmentRounding = 2 * kMiB;
// How many blocks beside the best fit are looked at for one that nobody is using any more, and how much larger they may
// be.
constexpr int kCandidates = 8;
constexpr std::size_t kCandidateExcess = 8;  // an eighth

std::size_t round_up(std::size_t size, std::size_t multiple) { return (size + multiple - 1) / multiple * multiple; }

std::size_t segment_size(std::size_t size, bool small) {
  if (small) return kSmallSegment;
  return size < kSharedBelow ? kSharedSegment : round_up(size, kSegmentRounding);
}

}  // namespace

Pool& Pool::instance() {
  static auto* pool = new Pool;
  return *pool;
}

// One device: streams and events belong to devices, and memory of another one must not wait for these.
bool Pool::serves_device() {
  int device = 0;
  if (real::get_device(&device) != cudaSuccess) {
    real::clear_last_error();
    return false;
  }
  if (device_ < 0) device_ = device;
  return device == device_;
}

cudaError_t Pool::allocate(void** pointer, std::size_t size) {
  std::lock_guard lock(mutex_);
  ++statistics_.mallocs;
  if (pointer == nullptr || size == 0 || size > SIZE_MAX / 2 || stopped_ || !serves_device()) {
    ++statistics_.passed_through;
    return real::malloc(pointer, size);
  }
  const std::size_t rounded = round_up(size, kRounding);
  const bool small = rounded <= kSmallSize;
  Block* block = take_free(rounded, small);
  if (block != nullptr) {
    ++statistics_.hits;
  } else if (const cudaError_t error = new_segment(segment_size(rounded, small), small, &block); error != cudaSuccess) {
    return error;
  }
  split(block, rounded);
  streams_.owe(block->fence);
  block->fence.clear();
  block->requested = size;
  statistics_.requested_bytes += size;
  statistics_.requested_bytes_peak = std::max(statistics_.requested_bytes_peak, statistics_.requested_bytes);
  statistics_.live_bytes += block->size;
  statistics_.live_bytes_peak = std::max(statistics_.live_bytes_peak, statistics_.live_bytes);
  *pointer = reinterpret_cast<void*>(block->address);
  return cudaSuccess;
}

// Best fit, but rather a slightly larger block that costs no wait: one whose last users are through, or are all on the
// stream that this thread uses, where order comes for free.
Pool::Block* Pool::take_free(std::size_t size, bool small) {
  FreeBlocks& candidates = free_blocks(small);
  const auto best = candidates.lower_bound(size);
  if (best == candidates.end()) return nullptr;
  auto chosen = best;
  const std::size_t largest = (*best)->size + (*best)->size / kCandidateExcess;
  int looked_at = 0;
  for (auto at = best; at != candidates.end() && looked_at < kCandidates && (*at)->size <= largest; ++at, ++looked_at) {
    if ((*at)->fence.only_on(streams_.current()) || (*at)->fence.passed()) {
      chosen = at;
      break;
    }
  }
  Block* block = *chosen;
  candidates.erase(chosen);
  block->free = false;
  return block;
}

cudaError_t Pool::new_segment(std::size_t size, bool small, Block** out) {
  void* memory = nullptr;
  cudaError_t error = real::malloc(&memory, size);
  if (error == cudaErrorMemoryAllocation) {
    ++statistics_.out_of_memory;
    // Only if the retry fails too is this the program's error.
    if (release_cached_locked() > 0) {
      real::clear_last_error();
      error = real::malloc(&memory, size);
    }
  }
  if (error != cudaSuccess) return error;
  auto block = std::make_unique<Block>();
  block->address = reinterpret_cast<std::uintptr_t>(memory);
  block->size = size;
  block->small = small;
  *out = block.get();
  blocks_.emplace(block->address, std::move(block));
  ++statistics_.segments_allocated;
  statistics_.reserved_bytes += size;
  statistics_.reserved_bytes_peak = std::max(statistics_.reserved_bytes_peak, statistics_.reserved_bytes);
  return cudaSuccess;
}

void Pool::split(Block* block, std::size_t size) {
  const std::size_t remaining = block->size - size;
  if (block->small ? remaining < kRounding : remaining <= kSmallSize) return;
  auto rest = std::make_unique<Block>();
  rest->address = block->address + size;
  rest->size = remaining;
  rest->small = block->small;
  rest->free = true;
  rest->fence = block->fence;
  rest->previous = block;
  rest->next = block->next;
  if (rest->next != nullptr) rest->next->previous = rest.get();
  block->next = rest.get();
  block->size = size;
  free_blocks(rest->small).insert(rest.get());
  blocks_.emplace(rest->address, std::move(rest));
}

// `neighbour`, free and right behind `block`, becomes part of it. Neither is among the free blocks.
void Pool::merge(Block* block, Block* neighbour) {
  block->size += neighbour->size;
  block->fence.add(neighbour->fence);
  block->next = neighbour->next;
  if (block->next != nullptr) block->next->previous = block;
  blocks_.erase(neighbour->address);
}

bool Pool::owns(const void* pointer) {
  std::lock_guard lock(mutex_);
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  const auto after = blocks_.upper_bound(address);
  if (after == blocks_.begin()) return false;
  const Block& block = *std::prev(after)->second;
  return address < block.address + block.size;
}

cudaError_t Pool::release(void* pointer) {
  std::lock_guard lock(mutex_);
  const auto found = blocks_.find(reinterpret_cast<std::uintptr_t>(pointer));
  // Freed twice, or a pointer into the middle of a block.
  if (found == blocks_.end() || found->second->free) return cudaErrorInvalidValue;
  Block* block = found->second.get();
  Fence fence;
  if (!stopped_) {
    if (const cudaError_t error = streams_.fence(fence); error != cudaSuccess) return error;
  }
  ++statistics_.frees;
  statistics_.requested_bytes -= block->requested;
  statistics_.live_bytes -= block->size;
  block->requested = 0;
  block->fence = std::move(fence);
  block->free = true;
  if (stopped_) return cudaSuccess;
  FreeBlocks& free = free_blocks(block->small);
  if (block->next != nullptr && block->next->free) {
    free.erase(block->next);
    merge(block, block->next);
  }
  if (block->previous != nullptr && block->previous->free) {
    Block* previous = block->previous;
    free.erase(previous);
    merge(previous, block);
    block = previous;
  }
  free.insert(block);
  return cudaSuccess;
}

// The runtime's cudaFree waits for the device, so no fence has to be looked at.
std::size_t Pool::release_cached_locked() {
  std::size_t released = 0;
  for (FreeBlocks* blocks : {&free_small_, &free_large_}) {
    for (auto at = blocks->begin(); at != blocks->end();) {
      Block* block = *at;
      if (block->previous != nullptr || block->next != nullptr) {
        ++at;
        continue;
      }
      at = blocks->erase(at);
      if (real::free(reinterpret_cast<void*>(block->address)) == cudaSuccess) {
        ++statistics_.segments_released;
        statistics_.reserved_bytes -= block->size;
        released += block->size;
      }
      blocks_.erase(block->address);
    }
  }
  return released;
}

void Pool::release_cached() {
  std::lock_guard lock(mutex_);
  release_cached_locked();
}

std::size_t Pool::cached_bytes() {
  std::lock_guard lock(mutex_);
  return stopped_ ? 0 : statistics_.reserved_bytes - statistics_.live_bytes;
}

cudaError_t Pool::stop_reuse() {
  std::lock_guard lock(mutex_);
  if (stopped_) return cudaSuccess;
  // Whatever is owed is owed no more: a capturing stream must not be made to wait.
  if (const cudaError_t error = real::device_synchronize(); error != cudaSuccess) return error;
  stopped_ = true;
  return cudaSuccess;
}

void Pool::forget_all() {
  std::lock_guard lock(mutex_);
  blocks_.clear();
  free_small_.clear();
  free_large_.clear();
  streams_.forget_all();
  statistics_.requested_bytes = statistics_.live_bytes = statistics_.reserved_bytes = 0;
}

void Pool::synchronised(StreamName name) {
  std::lock_guard lock(mutex_);
  streams_.synchronised(name);
}

void Pool::all_synchronised() {
  std::lock_guard lock(mutex_);
  streams_.all_synchronised();
}

cudaError_t Pool::before_destroy(cudaStream_t stream) {
  std::lock_guard lock(mutex_);
  return streams_.before_destroy(stream);
}

PoolStatistics Pool::statistics() {
  std::lock_guard lock(mutex_);
  return statistics_;
}

StreamStatistics Pool::stream_statistics() {
  std::lock_guard lock(mutex_);
  return streams_.statistics();
}

}  // namespace caching_pool
