// What functions and kernels say of themselves and what can be set.
#pragma once
#include <cuda.h>

#include "module/modules_impl.h"

namespace cudasim {

struct DeviceModel;

CUresult get_attribute(const DeviceModel& device, const Image& image, const KernelImage& kernel,
                       const FunctionSettings& settings, CUfunction_attribute attribute, int* out);
CUresult set_attribute(const DeviceModel& device, const KernelImage& kernel, FunctionSettings& settings,
                       CUfunction_attribute attribute, int value);

// CUDA_ERROR_INVALID_VALUE beyond the last parameter: programs count parameters that way. `size` may be null.
CUresult parameter_info(const KernelImage& kernel, std::size_t index, std::size_t* offset, std::size_t* size);

// How many blocks of `threads` with so much dynamic shared memory one multiprocessor holds.
int active_blocks(const DeviceModel& device, const KernelImage& kernel, int threads, std::size_t dynamic_shared_bytes);
// What a block may have so that `blocks` of them fit; 0 when they don't at all.
std::size_t available_shared_bytes(const DeviceModel& device, const KernelImage& kernel, int blocks, int threads);

}  // namespace cudasim
