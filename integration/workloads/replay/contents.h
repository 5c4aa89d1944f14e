// Writes and reads blocks on the device, in the ways that real programs have, and verifies what is read.
//
// A write is a kernel that stamps every page; now and then a memset, or a copy of the block read last. A read verifies
// every page: by one kernel that gets the pointer and the size, by one that gets a begin and an end pointer, by two
// kernels of which the second starts at a pointer to the middle, or in part by a copy (to other device memory or to
// pinned host memory) from the middle. Which of them follows from `choice` alone, so that the same choices make the
// same calls.
#pragma once
#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "driver.h"
#include "simulator.h"
#include "stamp.h"
#include "streams.h"

namespace replay {

struct LiveBlock {
  CUdeviceptr base = 0;
  std::uint64_t bytes = 0;
  unsigned number = 0;
  unsigned version = 0;  // counts the writes
  bool written = false;
  Content content{};  // another block's after a copy
  Work writer;
  std::vector<Work> readers;  // since the last write, one for each stream
};

struct Verified {
  std::uint64_t bytes = 0;
  std::uint64_t pages = 0;
  std::uint64_t mismatches = 0;
  std::uint64_t checksum = 0;
};

// Of one thread; not thread-safe.
class Contents {
 public:
  // `salt` tells its stamps from those of other threads and runs.
  Contents(const Device& device, const Simulator& simulator, unsigned streams, bool legacy_stream, unsigned salt);
  ~Contents();

  unsigned streams() const { return streams_.count(); }

  void write(LiveBlock& block, unsigned stream, std::uint64_t choice);
  void read(LiveBlock& block, unsigned stream, std::uint64_t choice);
  // The block will be freed.
  void forget(const LiveBlock& block);
  // Overwrites one page without a word to the block's state: what verification has to notice.
  void corrupt(LiveBlock& block, unsigned stream);

  // The next kernel takes this long on a simulated device; 0: by its bytes.
  void next_kernel_takes(std::uint64_t ns) { takes_ns_ = ns; }

  // Waits for all work and takes in what the reads found. The first mismatch is printed.
  void settle();
  const Verified& verified() const { return verified_; }

 private:
  // A copy in pinned memory that is verified by settle().
  struct HostCopy {
    std::size_t offset = 0;
    std::uint64_t bytes = 0;
    unsigned first_page = 0;
    Content content{};
  };

  void begin_write(LiveBlock& block, unsigned stream);
  void begin_read(LiveBlock& block, unsigned stream);
  void stamp(unsigned stream, CUdeviceptr begin, std::uint64_t bytes, unsigned first_page, Content content);
  void verify(const LiveBlock& block, unsigned stream, std::uint64_t begin, std::uint64_t end, bool by_range);
  void verify_through_copy(const LiveBlock& block, unsigned stream, std::uint64_t choice, bool to_host);
  void launch_verify(CUfunction function, unsigned stream, CUdeviceptr begin, std::uint64_t bytes, std::uint64_t second,
                     unsigned first_page, Content content);
  void launch(CUfunction function, unsigned stream, std::uint64_t bytes, void** parameters);
  void check(const HostCopy& copy);
  void report(const Content& expected, unsigned page, unsigned valid, const unsigned* found);

  const Device& device_;
  const Simulator& simulator_;
  unsigned salt_;
  Streams streams_;
  DeviceMemory findings_;  // one Findings for each stream
  DeviceMemory scratch_;   // one window for each stream
  PinnedMemory host_findings_;
  PinnedMemory host_windows_;
  std::size_t host_bytes_used_ = 0;
  std::vector<HostCopy> host_copies_;
  LiveBlock* last_read_ = nullptr;  // source of copies
  std::uint64_t takes_ns_ = 0;
  Verified verified_;
  Verified host_;  // of it, by the host
  bool reported_ = false;
};

}  // namespace replay
