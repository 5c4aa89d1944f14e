// cuOccupancy*: by the limits of the device's compute capability and the registers and shared memory that the image
// states.
#define __CUDA_API_VERSION_INTERNAL
#include <algorithm>
#include <climits>

#include "api/call.h"
#include "module/function_attributes.h"

using namespace cudasim;

namespace {

CUresult with_function(CallSite& site, CUfunction handle,
                       const std::function<CUresult(Driver&, LoadedFunction&)>& body) {
  return call(site, Needs::kContext, [&](Driver& driver, ContextId context) {
    LoadedFunction* function = nullptr;
    const CUresult result = driver.modules.impl().function_of(handle, context, &function);
    return result == CUDA_SUCCESS ? body(driver, *function) : result;
  });
}

CUresult max_active_blocks(CallSite& site, int* out, CUfunction handle, int threads, std::size_t shared) {
  return with_function(site, handle, [&](Driver& driver, LoadedFunction& function) {
    if (out == nullptr || threads <= 0) return CUDA_ERROR_INVALID_VALUE;
    *out = active_blocks(driver.config.device, *function.image, threads, shared);
    return CUDA_SUCCESS;
  });
}

// The block size that keeps most threads active; of equals the largest.
CUresult potential_block_size(CallSite& site, int* grid, int* block, CUfunction handle, CUoccupancyB2DSize shared_of,
                              std::size_t shared, int most) {
  KernelImage kernel;
  DeviceModel device;
  const CUresult found = with_function(site, handle, [&](Driver& driver, LoadedFunction& function) {
    if (grid == nullptr || block == nullptr) return CUDA_ERROR_INVALID_VALUE;
    kernel = *function.image;
    device = driver.config.device;
    return CUDA_SUCCESS;
  });
  if (found != CUDA_SUCCESS) return found;
  // Without the driver's lock: shared_of is the program's.
  const int limit = std::min(static_cast<int>(kernel.max_threads), most > 0 ? most : INT_MAX);
  int best_threads = 0;
  for (int threads = (limit + 31) / 32 * 32; threads > 0; threads -= 32) {
    const int size = std::min(threads, limit);
    const int blocks = active_blocks(device, kernel, size, shared_of != nullptr ? shared_of(size) : shared);
    if (blocks * size <= best_threads) continue;
    best_threads = blocks * size;
    *block = size;
    *grid = blocks * device.multiprocessors;
  }
  return best_threads == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

}  // namespace

CUDASIM_API cuOccupancyMaxActiveBlocksPerMultiprocessor(int* out, CUfunction function, int threads, size_t shared) {
  static CallSite site{"cuOccupancyMaxActiveBlocksPerMultiprocessor"};
  return max_active_blocks(site, out, function, threads, shared);
}

CUDASIM_API cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* out, CUfunction function, int threads,
                                                                 size_t shared, unsigned int flags) {
  static CallSite site{"cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags"};
  return max_active_blocks(site, (flags & ~unsigned{CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE}) != 0 ? nullptr : out,
                           function, threads, shared);
}

CUDASIM_API cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction function, CUoccupancyB2DSize shared_of,
                                             size_t shared, int most) {
  static CallSite site{"cuOccupancyMaxPotentialBlockSize"};
  return potential_block_size(site, grid, block, function, shared_of, shared, most);
}

CUDASIM_API cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, CUfunction function,
                                                      CUoccupancyB2DSize shared_of, size_t shared, int most,
                                                      unsigned int flags) {
  static CallSite site{"cuOccupancyMaxPotentialBlockSizeWithFlags"};
  if ((flags & ~unsigned{CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE}) != 0) grid = nullptr;
  return potential_block_size(site, grid, block, function, shared_of, shared, most);
}

CUDASIM_API cuOccupancyAvailableDynamicSMemPerBlock(size_t* out, CUfunction handle, int blocks, int threads) {
  static CallSite site{"cuOccupancyAvailableDynamicSMemPerBlock"};
  return with_function(site, handle, [&](Driver& driver, LoadedFunction& function) {
    if (out == nullptr || blocks <= 0 || threads <= 0) return CUDA_ERROR_INVALID_VALUE;
    *out = available_shared_bytes(driver.config.device, *function.image, blocks, threads);
    return CUDA_SUCCESS;
  });
}
