// Physical chunks and the addresses they are mapped at: what the agent holds of the device.
//
// A chunk is one physical allocation (cuMemCreate), always mapped whole; it may be mapped at several addresses at once.
// All addresses come from one range that is reserved at the start, so that a word can be told from a pointer of ours by
// one comparison. Addresses are handed out in whole chunks, with an unmapped one behind each piece.
//
// Not thread-safe: guarded by the arena's lock. Everything here is a driver call or worse: cold.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "agent/process/driver.h"

namespace memopt::agent {

struct Window;

struct Chunk {
  CUmemGenericAllocationHandle handle = 0;
  Window* home = nullptr;       // the window of the bootstrap allocator that has it; null: free, or the slab's alone
  std::int64_t slab_slot = -1;  // its place in the slab, or -1
};

struct ChunkCounts {
  std::uint64_t held_bytes = 0;
  std::uint64_t peak_bytes = 0;
  std::uint64_t vmm_calls = 0;
};

class ChunkStore {
 public:
  explicit ChunkStore(const Driver& driver) : driver_(driver) {}
  ChunkStore(const ChunkStore&) = delete;
  ChunkStore& operator=(const ChunkStore&) = delete;

  // Reserves the range. False, with the reason, where the device or the driver has no virtual memory management.
  bool start(CUdevice device, std::string* why);
  // Everything has been released: the range goes back, and nothing else is called any more.
  void end() noexcept;

  std::uint64_t chunk_bytes() const { return chunk_bytes_; }
  std::uint64_t range_begin() const { return range_begin_; }
  std::uint64_t range_bytes() const { return range_bytes_; }
  std::uint64_t device_bytes() const { return device_bytes_; }

  // A piece of the range of at least `bytes`, with an unmapped chunk behind it; 0 if there is none.
  std::uint64_t reserve(std::uint64_t bytes);
  void unreserve(std::uint64_t address, std::uint64_t bytes);

  // Throw std::bad_alloc; return the driver's code otherwise.
  CUresult create(Chunk** chunk);
  // Does the device have room for so many more? By the driver's count, which others change too.
  bool could_create(std::size_t count) const noexcept;
  void release(Chunk* chunk);                                              // mapped nowhere any more
  CUresult map(std::uint64_t address, const std::vector<Chunk*>& chunks);  // all or none, with access
  CUresult unmap(std::uint64_t address, std::uint64_t bytes);

  // The window at an address of the range.
  Window* window_at(std::uint64_t address) const {
    return pages_[static_cast<std::size_t>((address - range_begin_) / chunk_bytes_)];
  }
  void set_window(std::uint64_t address, std::uint64_t bytes, Window* window);

  template <typename Visit>
  void for_each(Visit&& visit) {
    for (Chunk* chunk : chunks_) {
      if (!visit(*chunk)) return;
    }
  }
  const ChunkCounts& counts() const { return counts_; }

 private:
  const Driver& driver_;
  CUdevice device_ = 0;
  CUmemAllocationProp properties_{};
  CUmemAccessDesc access_{};
  std::uint64_t chunk_bytes_ = 0;
  std::uint64_t device_bytes_ = 0;
  std::uint64_t range_begin_ = 0;
  std::uint64_t range_bytes_ = 0;
  std::map<std::uint64_t, std::uint64_t> free_;  // address -> bytes, of the range
  Window** pages_ = nullptr;                     // per chunk-sized page of the range; mapped memory, mostly untouched
  std::vector<Chunk*> chunks_;                   // all, in the order of their making
  ChunkCounts counts_{};
};

}  // namespace memopt::agent
