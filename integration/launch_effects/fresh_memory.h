// Memory for a run that decides which words name blocks: every block has addresses that no block had before it, with a
// hole behind. So a word left over from a block that has been freed names nothing, and a pointer to the end of one
// block is not the next one's beginning. Where a long run has used up all addresses, those that have been free for
// longest serve again.
//
// Frees wait for the device. What such a run takes in time and memory means nothing.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <unordered_map>

#include "entry_points.h"

namespace launch_effects {

class FreshMemory {
 public:
  // Null where addresses are the driver's own affair: in all runs but the first that decides.
  static FreshMemory* get();

  CUresult allocate(CUdeviceptr* address, std::size_t size);
  // False: not from here.
  bool owns(CUdeviceptr address);
  CUresult free(CUdeviceptr address);

 private:
  struct Mapping {
    std::size_t size;
    std::size_t addresses;  // that were reserved for it
    CUmemGenericAllocationHandle handle;
  };
  struct Former {
    CUdeviceptr address;
    std::size_t bytes;
  };
  // Gives back the addresses of blocks that were freed first.
  void forget_half();

  std::mutex mutex_;
  std::unordered_map<CUdeviceptr, Mapping> mappings_;
  std::deque<Former> former_;  // reserved still, in the order in which they were freed
};

}  // namespace launch_effects
