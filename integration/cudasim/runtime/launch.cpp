#include "launch.h"

#include "call.h"

namespace cudart {
namespace {

bool is_beyond(unsigned value, CUdevice_attribute limit, int device) {
  int most = 0;
  if (value == 0) return true;
  return driver().cuDeviceGetAttribute(&most, limit, device) == CUDA_SUCCESS && value > static_cast<unsigned>(most);
}

}  // namespace

cudaError_t explain_launch_failure(cudaError_t error, dim3 grid, dim3 block) {
  int device = 0;
  if (error != cudaErrorInvalidValue || current_device(&device) != cudaSuccess) return error;
  const bool impossible = is_beyond(grid.x, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, device) ||
                          is_beyond(grid.y, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, device) ||
                          is_beyond(grid.z, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, device) ||
                          is_beyond(block.x, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, device) ||
                          is_beyond(block.y, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, device) ||
                          is_beyond(block.z, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, device) ||
                          is_beyond(block.x * block.y * block.z, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, device);
  return impossible ? cudaErrorInvalidConfiguration : error;
}

}  // namespace cudart
