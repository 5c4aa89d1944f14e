// The allocator: segments from the runtime, cut into blocks, kept when the program frees them.
//
// Sizes are rounded up to 512 bytes. Blocks up to 1 MiB come from segments of 2 MiB; larger ones below 10 MiB from
// segments of 20 MiB; anything else gets a segment of its own, rounded to 2 MiB. A free block is chosen by best fit,
// split where enough remains, and merged with its neighbours when it is freed. These are the rules of the large
// frameworks' allocators. Thread-safe.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "streams.h"

namespace caching_pool {

struct PoolStatistics {
  std::uint64_t mallocs = 0;
  std::uint64_t hits = 0;  // served without the runtime
  std::uint64_t frees = 0;
  std::uint64_t passed_through = 0;  // allocations left to the runtime
  std::uint64_t segments_allocated = 0;
  std::uint64_t segments_released = 0;
  std::uint64_t out_of_memory = 0;  // answers of the runtime, each followed by a release of cached segments
  std::size_t requested_bytes = 0;  // as the program asked
  std::size_t requested_bytes_peak = 0;
  std::size_t live_bytes = 0;  // blocks in the program's hands, rounded
  std::size_t live_bytes_peak = 0;
  std::size_t reserved_bytes = 0;  // segments
  std::size_t reserved_bytes_peak = 0;
};

class Pool {
 public:
  // Never destroyed: programs free until the very end.
  static Pool& instance();

  cudaError_t allocate(void** pointer, std::size_t size);
  // False: not from here.
  bool owns(const void* pointer);
  cudaError_t release(void* pointer);
  // Gives all free segments back to the runtime.
  void release_cached();
  std::size_t cached_bytes();
  // From now on everything is left to the runtime, and freed blocks are not used again: a graph may have recorded their
  // addresses.
  cudaError_t stop_reuse();
  // The device has been reset: nothing of ours exists any more.
  void forget_all();

  // Runs an operation on a stream between the two halves of the bookkeeping. The mutex is not held while it runs.
  template <typename Operation>
  cudaError_t on_stream(StreamName name, bool touches_host, Operation operation) {
    {
      std::lock_guard lock(mutex_);
      if (!stopped_) {
        if (const cudaError_t error = streams_.before_operation(name); error != cudaSuccess) return error;
      }
    }
    const cudaError_t result = operation();
    std::lock_guard lock(mutex_);
    if (!stopped_) streams_.after_operation(name, touches_host);
    return result;
  }
  void synchronised(StreamName name);
  void all_synchronised();
  cudaError_t before_destroy(cudaStream_t stream);

  PoolStatistics statistics();
  StreamStatistics stream_statistics();

 private:
  struct Block {
    std::uintptr_t address = 0;
    std::size_t size = 0;
    std::size_t requested = 0;
    bool small = false;
    bool free = false;
    Block* previous = nullptr;  // neighbours in the segment
    Block* next = nullptr;
    Fence fence;  // of a free block: who may still be using it
  };
  struct BySize {
    using is_transparent = void;
    bool operator()(const Block* a, const Block* b) const {
      return a->size != b->size ? a->size < b->size : a->address < b->address;
    }
    bool operator()(const Block* a, std::size_t size) const { return a->size < size; }
    bool operator()(std::size_t size, const Block* b) const { return size < b->size; }
  };
  using FreeBlocks = std::set<Block*, BySize>;

  Pool() = default;
  FreeBlocks& free_blocks(bool small) { return small ? free_small_ : free_large_; }
  Block* take_free(std::size_t size, bool small);
  cudaError_t new_segment(std::size_t size, bool small, Block** out);
  void split(Block* block, std::size_t size);
  void merge(Block* block, Block* neighbour);
  std::size_t release_cached_locked();
  bool serves_device();

  std::mutex mutex_;
  std::map<std::uintptr_t, std::unique_ptr<Block>> blocks_;  // all, by address
  FreeBlocks free_small_, free_large_;
  Streams streams_;
  int device_ = -1;
  bool stopped_ = false;
  PoolStatistics statistics_;
};

}  // namespace caching_pool
