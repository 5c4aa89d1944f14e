// Looks for addresses in device memory: what a kernel stores there, another may follow, and no launch shows it. A small
// kernel of ours (scan_kernel.h) runs behind a launch on its stream, over the blocks that the launch names, and writes
// the words that are addresses of ours to page-locked memory; the host reads them when the launch is over.
//
// Not every launch: a kernel that has stored no address will hardly begin to. Small blocks, as tables of addresses are,
// are looked at the first, second, fourth, eighth, … time that a function names them; large ones likewise, where those
// of a size count as one. Behind functions behind which there was an address before, small blocks are each time, and
// large ones as small ones are else.
//
// Guarded by the arena's lock, but for what says otherwise. Page-locked memory and the list of scans live as long as
// the process; a forked child, and another context, begin anew.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "agent/order/streams.h"
#include "agent/process/driver.h"
#include "agent/process/open_table.h"
#include "agent/scan/scan_slot.h"

namespace memopt::agent {

// The kernel in a context, and memory that it writes to.
struct ScanKernel {
  CUfunction function = nullptr;
  // The slots, and behind them the pages (scan_slot.h).
  ScanSlot* slots = nullptr;
  CUdeviceptr slots_on_device = 0;
};

// A block that a launch names: an address that it stores is of one of these, as a rule.
struct NamedBlock {
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;
  std::uint64_t number = 0;
};

struct Scan {
  enum class State : std::uint8_t {
    kFree,
    kFilling,  // of a launch that is being made: to the next two by the thread that makes it, without the lock
    kQueued,
    kRefused,  // by the driver
    kBeingRead,
  };

  State state = State::kFree;
  std::uint32_t serial = 0;
  std::uint32_t function = 0;  // as FunctionLayout::id
  std::uint32_t ranges = 0;
  std::uint32_t named = 0;
  std::uint64_t most_words = 0;  // of a range
  CUfunction kernel = nullptr;
  CUdeviceptr pages = 0;
  std::uint64_t range_begin = 0;
  std::uint64_t range_bytes = 0;
  StreamName stream;
  StreamUse use;  // of the launch
  ScanSlot* slot = nullptr;
  CUdeviceptr slot_on_device = 0;
  NamedBlock blocks[ScanSlot::kMostRanges];
};

class AddressScan {
 public:
  // At once.
  static constexpr std::size_t kScans = 256;

  AddressScan() = default;
  AddressScan(const AddressScan&) = delete;
  AddressScan& operator=(const AddressScan&) = delete;

  // Makes the kernel ready in the current context, without the lock: the driver may wait for work. False, with the
  // reason; never tried again in that context.
  static bool make(const Driver& driver, std::uint64_t range_bytes, ScanKernel* kernel, std::string* why) noexcept;
  // False: out of memory.
  bool use(const ScanKernel& kernel, std::uint64_t range_begin) noexcept;
  bool is_ready() const { return kernel_.function != nullptr; }
  // It does not work.
  void stop() noexcept;
  // The context goes, and the kernel with it.
  void end(const Driver& driver) noexcept;
  // A forked child has none of it.
  static void forget_after_fork() noexcept;

  // Is the block of a launch of the function to be looked at behind it?
  bool is_due(std::uint32_t function, std::uint64_t base, std::uint64_t bytes) noexcept;
  void found_behind(std::uint32_t function) noexcept;

  // For words that are addresses up to `range_end`. Null: all are in use, or there is no kernel.
  Scan* begin(std::uint32_t function, StreamName stream, StreamUse use, std::uint64_t range_end) noexcept;
  // False: it has no room for another.
  static bool add(Scan& scan, std::uint64_t base, std::uint64_t bytes) noexcept;
  static void name(Scan& scan, const NamedBlock& block) noexcept;
  // Without the lock, by the thread that has begun it: behind its launch, on its stream.
  static CUresult queue(const Driver& driver, Scan& scan) noexcept;
  // It has been read, or was not to be queued.
  static void end(Scan& scan) noexcept;
  Scan* scans() noexcept { return scans_; }
  // Is there a word among the many of some scan that lies in [base, base + bytes], or near?
  bool is_marked(std::uint64_t base, std::uint64_t bytes) const noexcept;

 private:
  struct Times {
    std::uint64_t key = 0;
    std::uint64_t times = 0;

    static std::size_t home(std::uint64_t key) noexcept { return static_cast<std::size_t>(key); }
  };
  std::uint64_t count(std::uint64_t key) noexcept;

  ScanKernel kernel_;
  std::uint64_t range_begin_ = 0;
  std::uint32_t serial_ = 0;
  OpenTable<Times> times_;
  std::size_t counted_ = 0;
  Scan* scans_ = nullptr;
};

// Functions behind which there was an address, by their numbers modulo so many: any thread, without the lock.
inline constexpr std::uint32_t kSuspectBits = 4096;
extern constinit std::uint64_t suspect_functions[kSuspectBits / 64];
inline bool is_suspect(std::uint32_t function) noexcept {
  const std::uint32_t bit = function % kSuspectBits;
  return (__atomic_load_n(&suspect_functions[bit / 64], __ATOMIC_RELAXED) >> (bit % 64) & 1) != 0;
}

}  // namespace memopt::agent
