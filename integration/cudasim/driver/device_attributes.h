// What cuDeviceGetAttribute says: facts of the compute capability, what this driver can do, and the device file's own
// "attributes".
#pragma once
#include <cuda.h>

#include <optional>
#include <string_view>

namespace cudasim {

struct DeviceModel;

// Nothing for a number that is no attribute of this CUDA version.
std::optional<int> device_attribute(const DeviceModel& model, int attribute);

// "l2_cache_size" is CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: what a device file may set. False also for those that other
// keys of the file give.
bool is_settable_attribute(std::string_view name);

}  // namespace cudasim
