// The one device: ordinal 0.
#define __CUDA_API_VERSION_INTERNAL
#include <algorithm>
#include <cstring>
#include <string_view>

#include "api/call.h"
#include "device_attributes.h"

namespace cudasim {
namespace {

constexpr CUdevice kDevice = 0;
constexpr std::string_view kPciBusId = "0000:01:00.0";

CUresult with_device(CallSite& site, CUdevice device, const std::function<CUresult(Driver&)>& body) {
  return call(site, Needs::kInit,
              [&](Driver& driver, ContextId) { return device == kDevice ? body(driver) : CUDA_ERROR_INVALID_DEVICE; });
}

CUresult copy_text(std::string_view text, char* out, int size) {
  if (out == nullptr || size <= 0) return CUDA_ERROR_INVALID_VALUE;
  const std::size_t length = std::min(text.size(), std::size_t(size) - 1);
  std::memcpy(out, text.data(), length);
  out[length] = '\0';
  return CUDA_SUCCESS;
}

int attribute(const Driver& driver, CUdevice_attribute which) {
  return device_attribute(driver.config.device, which).value_or(0);
}

// The same device has the same identity in every process and run: FNV-1a over its name, twice with different
// beginnings.
CUuuid uuid_of(std::string_view name) {
  CUuuid uuid{};
  for (unsigned half = 0; half < 2; ++half) {
    std::uint64_t hash = 0xcbf29ce484222325 + half;
    for (const char c : name) hash = (hash ^ std::uint8_t(c)) * 0x100000001b3;
    std::memcpy(uuid.bytes + 8 * half, &hash, sizeof hash);
  }
  return uuid;
}

CUresult get_uuid(CallSite& site, CUuuid* uuid, CUdevice device) {
  return with_device(site, device, [&](Driver& driver) {
    if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *uuid = uuid_of(driver.config.device.name);
    return CUDA_SUCCESS;
  });
}

// "0000:01:00.0", or without domain or function.
bool is_our_bus_id(std::string_view id) {
  return id == kPciBusId || id == kPciBusId.substr(0, kPciBusId.size() - 2) || id == kPciBusId.substr(5) ||
         id == kPciBusId.substr(5, kPciBusId.size() - 7);
}

CUresult not_supported(CallSite& site, CUdevice device) {
  return with_device(site, device, [](Driver&) { return CUDA_ERROR_NOT_SUPPORTED; });
}

}  // namespace
}  // namespace cudasim

using namespace cudasim;

CUDASIM_API cuDeviceGetCount(int* count) {
  static CallSite site{"cuDeviceGetCount"};
  return call(site, Needs::kInit, [&](Driver&, ContextId) {
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = 1;
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuDeviceGet(CUdevice* device, int ordinal) {
  static CallSite site{"cuDeviceGet"};
  return call(site, Needs::kInit, [&](Driver&, ContextId) {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (ordinal != 0) return CUDA_ERROR_INVALID_DEVICE;
    *device = kDevice;
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuDeviceGetName(char* name, int size, CUdevice device) {
  static CallSite site{"cuDeviceGetName"};
  return with_device(site, device, [&](Driver& driver) { return copy_text(driver.config.device.name, name, size); });
}

CUDASIM_API cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  static CallSite site{"cuDeviceGetUuid"};
  return get_uuid(site, uuid, device);
}

CUDASIM_API cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  static CallSite site{"cuDeviceGetUuid_v2"};
  return get_uuid(site, uuid, device);
}

CUDASIM_API cuDeviceGetLuid(char*, unsigned int*, CUdevice device) {  // an identity of Windows
  static CallSite site{"cuDeviceGetLuid"};
  return not_supported(site, device);
}

CUDASIM_API cuDeviceTotalMem(unsigned int* bytes, CUdevice device) {
  static CallSite site{"cuDeviceTotalMem"};
  return with_device(site, device, [&](Driver& driver) {
    if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *bytes = unsigned(std::min<std::uint64_t>(driver.memory.capacity(), ~0u));
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  static CallSite site{"cuDeviceTotalMem_v2"};
  return with_device(site, device, [&](Driver& driver) {
    if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *bytes = driver.memory.capacity();
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice device) {
  static CallSite site{"cuDeviceGetAttribute"};
  return with_device(site, device, [&](Driver& driver) {
    const auto found = device_attribute(driver.config.device, which);
    if (value == nullptr || !found) return CUDA_ERROR_INVALID_VALUE;
    *value = *found;
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuDeviceGetProperties(CUdevprop* properties, CUdevice device) {
  static CallSite site{"cuDeviceGetProperties"};
  return with_device(site, device, [&](Driver& driver) {
    if (properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *properties = {
        .maxThreadsPerBlock = attribute(driver, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
        .maxThreadsDim = {attribute(driver, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X),
                          attribute(driver, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y),
                          attribute(driver, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)},
        .maxGridSize = {attribute(driver, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X),
                        attribute(driver, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y),
                        attribute(driver, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)},
        .sharedMemPerBlock = attribute(driver, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK),
        .totalConstantMemory = attribute(driver, CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY),
        .SIMDWidth = attribute(driver, CU_DEVICE_ATTRIBUTE_WARP_SIZE),
        .memPitch = attribute(driver, CU_DEVICE_ATTRIBUTE_MAX_PITCH),
        .regsPerBlock = attribute(driver, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK),
        .clockRate = attribute(driver, CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
        .textureAlign = attribute(driver, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT),
    };
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  static CallSite site{"cuDeviceComputeCapability"};
  return with_device(site, device, [&](Driver& driver) {
    if (major == nullptr || minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *major = driver.config.device.compute_major;
    *minor = driver.config.device.compute_minor;
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuDeviceGetPCIBusId(char* id, int size, CUdevice device) {
  static CallSite site{"cuDeviceGetPCIBusId"};
  return with_device(site, device, [&](Driver&) { return copy_text(kPciBusId, id, size); });
}

CUDASIM_API cuDeviceGetByPCIBusId(CUdevice* device, const char* id) {
  static CallSite site{"cuDeviceGetByPCIBusId"};
  return call(site, Needs::kInit, [&](Driver&, ContextId) {
    if (device == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!is_our_bus_id(id)) return CUDA_ERROR_INVALID_DEVICE;
    *device = kDevice;
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  static CallSite site{"cuDeviceCanAccessPeer"};
  return with_device(site, device, [&](Driver&) {
    if (can == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (peer != kDevice) return CUDA_ERROR_INVALID_DEVICE;
    *can = 0;  // a device is no peer of itself
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute, CUdevice source, CUdevice target) {
  static CallSite site{"cuDeviceGetP2PAttribute"};
  return call(site, Needs::kInit, [&](Driver&, ContextId) {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    // The driver takes only two different devices, and there is one.
    return source == target && source == kDevice ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE;
  });
}

CUDASIM_API cuDeviceGetExecAffinitySupport(int* supported, CUexecAffinityType, CUdevice device) {
  static CallSite site{"cuDeviceGetExecAffinitySupport"};
  return with_device(site, device, [&](Driver&) {
    if (supported == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *supported = 0;
    return CUDA_SUCCESS;
  });
}
