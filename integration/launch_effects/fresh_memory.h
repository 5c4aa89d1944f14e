// Memory for a run that decides which words name blocks: every block has addresses that no block had before it, with a
// hole behind. So a word left over from a block that has been freed names nothing, and a pointer to the end of one
// block is not the next one's beginning.
//
// Frees wait for the device. What such a run takes in time and memory means nothing.
#pragma once
#include <cstddef>
#include <cstdint>
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
    CUmemGenericAllocationHandle handle;
  };
  std::mutex mutex_;
  std::unordered_map<CUdeviceptr, Mapping> mappings_;
};

}  // namespace launch_effects
