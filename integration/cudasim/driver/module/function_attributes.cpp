#include "module/function_attributes.h"

#include <algorithm>

#include "config.h"
#include "device_attributes.h"

namespace cudasim {
namespace {

constexpr int kWarp = 32;
constexpr int kRegisterUnit = 256;        // registers are given to warps in such units
constexpr std::size_t kSharedUnit = 128;  // bytes
// PTX says no register count; what ptxas would make of a small kernel.
constexpr std::uint32_t kUnknownRegisters = 32;

int limit(const DeviceModel& device, CUdevice_attribute attribute) {
  return device_attribute(device, attribute).value_or(0);
}

int opt_in_shared_bytes(const DeviceModel& device) {
  return std::max(limit(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
                  limit(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK));
}

std::uint32_t registers_of(const KernelImage& kernel) {
  return kernel.registers == 0 ? kUnknownRegisters : kernel.registers;
}

std::size_t rounded(std::size_t n, std::size_t unit) { return (n + unit - 1) / unit * unit; }

// Without what shared memory allows.
int blocks_by_threads_and_registers(const DeviceModel& device, const KernelImage& kernel, int threads) {
  const int warps = (threads + kWarp - 1) / kWarp;
  const int registers_of_warp = static_cast<int>(rounded(std::min(registers_of(kernel), 255u) * kWarp, kRegisterUnit));
  const int warps_by_registers =
      limit(device, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR) / registers_of_warp;
  const int warps_by_threads = limit(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) / kWarp;
  return std::min({limit(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR), warps_by_registers / warps,
                   warps_by_threads / warps});
}

}  // namespace

CUresult get_attribute(const DeviceModel& device, const Image& image, const KernelImage& kernel,
                       const FunctionSettings& settings, CUfunction_attribute attribute, int* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *out = static_cast<int>(kernel.max_threads);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *out = static_cast<int>(kernel.static_shared_bytes);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
      *out = static_cast<int>(kernel.constant_bytes);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      *out = static_cast<int>(kernel.local_bytes);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *out = static_cast<int>(registers_of(kernel));
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
      *out = image.arch;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *out = image.form == Image::Form::kCubin ? image.arch : 10 * device.compute_major + device.compute_minor;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
      *out = 0;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *out = settings.max_dynamic_shared_bytes;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      *out = settings.preferred_carveout;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: {
      const auto found = settings.others.find(attribute);
      *out = found == settings.others.end() ? 0 : found->second;
      return CUDA_SUCCESS;
    }
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult set_attribute(const DeviceModel& device, const KernelImage& kernel, FunctionSettings& settings,
                       CUfunction_attribute attribute, int value) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      if (value < 0 || static_cast<std::int64_t>(value) + kernel.static_shared_bytes > opt_in_shared_bytes(device))
        return CUDA_ERROR_INVALID_VALUE;
      settings.max_dynamic_shared_bytes = value;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      if (value < -1 || value > 100) return CUDA_ERROR_INVALID_VALUE;
      settings.preferred_carveout = value;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      if (value < 0) return CUDA_ERROR_INVALID_VALUE;
      settings.others[attribute] = value;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult parameter_info(const KernelImage& kernel, std::size_t index, std::size_t* offset, std::size_t* size) {
  if (offset == nullptr || index >= kernel.parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = kernel.parameters[index].offset;
  if (size != nullptr) *size = kernel.parameters[index].size;
  return CUDA_SUCCESS;
}

int active_blocks(const DeviceModel& device, const KernelImage& kernel, int threads, std::size_t dynamic_shared_bytes) {
  if (threads <= 0 || threads > static_cast<int>(kernel.max_threads)) return 0;
  const int blocks = blocks_by_threads_and_registers(device, kernel, threads);
  const std::size_t reserved =
      static_cast<std::size_t>(limit(device, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK));
  const std::size_t wanted = kernel.static_shared_bytes + dynamic_shared_bytes;
  if (wanted > static_cast<std::size_t>(opt_in_shared_bytes(device))) return 0;
  const std::size_t shared = rounded(wanted + reserved, kSharedUnit);
  if (shared == 0) return blocks;
  const auto by_shared =
      static_cast<std::size_t>(limit(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)) / shared;
  return static_cast<int>(std::min<std::size_t>(static_cast<std::size_t>(blocks), by_shared));
}

std::size_t available_shared_bytes(const DeviceModel& device, const KernelImage& kernel, int blocks, int threads) {
  if (blocks <= 0 || blocks > active_blocks(device, kernel, threads, 0)) return 0;
  const std::size_t reserved =
      static_cast<std::size_t>(limit(device, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK));
  const auto whole = static_cast<std::size_t>(limit(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR));
  const std::size_t share = whole / static_cast<std::size_t>(blocks) / kSharedUnit * kSharedUnit;
  const std::size_t taken = kernel.static_shared_bytes + reserved;
  return std::min(share - std::min(share, taken),
                  static_cast<std::size_t>(opt_in_shared_bytes(device)) - kernel.static_shared_bytes);
}

}  // namespace cudasim
