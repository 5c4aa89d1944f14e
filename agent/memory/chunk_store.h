// Physical chunks and the addresses they are mapped at: what the agent holds of the device.
//
// A chunk is one physical allocation (cuMemCreate), always mapped whole; it may be mapped at several addresses at once.
// All addresses come from one range that is reserved at the start, so that a word can be told from a pointer of ours by
// one comparison. Addresses are handed out in whole chunks, with an unmapped one behind each piece.
//
// Not thread-safe: guarded by the arena's lock. Everything here is a driver call or worse: cold.
#pragma once

#include <cuda.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/process/driver.h"

namespace memopt::agent {

struct Window;

struct Chunk {
  CUmemGenericAllocationHandle handle = 0;
  Window* home = nullptr;       // the window of the bootstrap allocator that has it; null: free, or the slab's alone
  std::int64_t slab_slot = -1;  // its place in the slab, or -1
  std::uint32_t page = 0;       // in that window
  std::uint32_t aliases = 0;    // of the slab: how many windows of their own are mapped onto it (own_windows.h)
  bool lent = false;            // the slab's, but a block that was there before lies in it
  bool kept = false;            // likewise, and it stays: the slab has the bytes that no block had or has since
  bool spare = false;           // in the bootstrap allocator's list of free ones
};

// Room for so many more, without a copy of the whole list at each call. Throws std::bad_alloc.
inline void make_room(std::vector<Chunk*>* list, std::size_t more) {
  if (list->capacity() - list->size() < more) list->reserve(list->size() + std::max(more, list->size()));
}

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
  // Behind it nothing of the range is used.
  std::uint64_t used_end() const noexcept;
  std::uint64_t device_bytes() const { return device_bytes_; }

  // As many bytes of addresses as are wanted for one purpose, but no more than the range has for `parts` of them: a
  // large device in a process that has few addresses has a range of hardly more than its memory.
  std::uint64_t share(std::uint64_t wanted, std::uint64_t parts) const noexcept {
    return std::min(wanted, range_bytes_ / chunk_bytes_ / parts * chunk_bytes_ - chunk_bytes_);
  }

  // A piece of the range of at least `bytes`, with an unmapped chunk behind it; 0 if there is none. From the smallest
  // free one that is large enough.
  std::uint64_t reserve(std::uint64_t bytes) noexcept;
  void unreserve(std::uint64_t address, std::uint64_t bytes) noexcept;

  // No more than so many bytes are held from now on, 0: as many as the device has. What is held beyond it stays.
  void set_limit(std::uint64_t bytes) noexcept {
    limit_ = bytes;
    limit_is_device_ = false;
  }
  // The device is full: what is held is the limit, and the whole chunks of what is still free. Where there turns out to
  // be more, so much more is.
  void limit_to_device(std::uint64_t free) noexcept {
    limit_is_device_ = true;
    limit_ = std::max(counts_.held_bytes + free / chunk_bytes_ * chunk_bytes_, chunk_bytes_);
  }
  std::uint64_t limit() const { return limit_; }
  bool limit_is_device() const { return limit_is_device_; }
  // While it is allowed, the limit is none.
  void allow_beyond(bool allowed) noexcept { beyond_ = allowed; }
  bool is_beyond() const { return limit_ != 0 && counts_.held_bytes > limit_; }

  // Throw std::bad_alloc; return the driver's code otherwise, CUDA_ERROR_OUT_OF_MEMORY at the limit too.
  CUresult create(Chunk** chunk);
  // Does the device have room for so many more, within the limit? By the driver's count, which others change too.
  bool could_create(std::size_t count) const noexcept;
  void release(Chunk* chunk);                                              // mapped nowhere any more
  CUresult map(std::uint64_t address, const std::vector<Chunk*>& chunks);  // all or none, with access
  CUresult unmap(std::uint64_t address, std::uint64_t bytes);

  // The window at an address; null where there is none, beyond the range, too.
  Window* window_at(std::uint64_t address) const {
    const std::uint64_t offset = address - range_begin_;
    return offset < range_bytes_ ? pages_[static_cast<std::size_t>(offset / chunk_bytes_)] : nullptr;
  }
  void set_window(std::uint64_t address, std::uint64_t bytes, Window* window);

  const ChunkCounts& counts() const { return counts_; }
  // The most that was held since this was asked last.
  std::uint64_t take_peak() noexcept { return std::exchange(peak_of_late_, counts_.held_bytes); }

 private:
  const Driver& driver_;
  CUdevice device_ = 0;
  CUmemAllocationProp properties_{};
  CUmemAccessDesc access_{};
  std::uint64_t chunk_bytes_ = 0;
  std::uint64_t device_bytes_ = 0;
  std::uint64_t range_begin_ = 0;
  std::uint64_t range_bytes_ = 0;
  using Piece = std::pair<std::uint64_t, std::uint64_t>;
  std::map<std::uint64_t, std::uint64_t> free_;  // address -> bytes, of the range
  std::set<Piece> free_by_bytes_;                // the same: bytes and address
  Window** pages_ = nullptr;                     // per chunk-sized page of the range; mapped memory, mostly untouched
  ChunkCounts counts_{};
  std::uint64_t peak_of_late_ = 0;
  std::uint64_t limit_ = 0;
  bool limit_is_device_ = false;
  bool beyond_ = false;

  bool within_limit(std::size_t count) const noexcept {
    return limit_ == 0 || limit_is_device_ || beyond_ || counts_.held_bytes + count * chunk_bytes_ <= limit_;
  }
};

}  // namespace memopt::agent
