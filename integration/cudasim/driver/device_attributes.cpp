#include "device_attributes.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "config.h"

namespace cudasim {
namespace {

struct Attribute {
  CUdevice_attribute number;
  std::string_view name;
  int value;  // where neither the device file nor facts_of_capability() has one; 0 is also what this driver can't do
};

constexpr Attribute kAttributes[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, "max_threads_per_block", 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, "max_block_dim_x", 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, "max_block_dim_y", 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, "max_block_dim_z", 64},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, "max_grid_dim_x", 2147483647},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, "max_grid_dim_y", 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, "max_grid_dim_z", 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, "max_shared_memory_per_block", 49152},
    {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, "total_constant_memory", 65536},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, "warp_size", 32},
    {CU_DEVICE_ATTRIBUTE_MAX_PITCH, "max_pitch", 2147483647},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, "max_registers_per_block", 65536},
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, "clock_rate", 0},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, "texture_alignment", 512},
    {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, "gpu_overlap", 1},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, "multiprocessor_count", 0},
    {CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT, "kernel_exec_timeout", 0},
    {CU_DEVICE_ATTRIBUTE_INTEGRATED, "integrated", 0},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, "can_map_host_memory", 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, "compute_mode", 0},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH, "maximum_texture1d_width", 131072},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH, "maximum_texture2d_width", 131072},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT, "maximum_texture2d_height", 65536},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH, "maximum_texture3d_width", 16384},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT, "maximum_texture3d_height", 16384},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH, "maximum_texture3d_depth", 16384},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH, "maximum_texture2d_layered_width", 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT, "maximum_texture2d_layered_height", 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS, "maximum_texture2d_layered_layers", 2048},
    {CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, "surface_alignment", 512},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, "concurrent_kernels", 1},
    {CU_DEVICE_ATTRIBUTE_ECC_ENABLED, "ecc_enabled", 0},
    {CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, "pci_bus_id", 1},
    {CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, "pci_device_id", 0},
    {CU_DEVICE_ATTRIBUTE_TCC_DRIVER, "tcc_driver", 0},
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, "memory_clock_rate", 0},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, "global_memory_bus_width", 0},
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, "l2_cache_size", 0},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, "max_threads_per_multiprocessor", 2048},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, "async_engine_count", 2},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, "unified_addressing", 1},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH, "maximum_texture1d_layered_width", 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS, "maximum_texture1d_layered_layers", 2048},
    {CU_DEVICE_ATTRIBUTE_CAN_TEX2D_GATHER, "can_tex2d_gather", 0},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH, "maximum_texture2d_gather_width", 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT, "maximum_texture2d_gather_height", 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE, "maximum_texture3d_width_alternate", 8192},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE, "maximum_texture3d_height_alternate", 8192},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE, "maximum_texture3d_depth_alternate", 32768},
    {CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, "pci_domain_id", 0},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, "texture_pitch_alignment", 32},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH, "maximum_texturecubemap_width", 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH, "maximum_texturecubemap_layered_width", 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS, "maximum_texturecubemap_layered_layers", 2046},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH, "maximum_surface1d_width", 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH, "maximum_surface2d_width", 131072},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT, "maximum_surface2d_height", 65536},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH, "maximum_surface3d_width", 16384},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT, "maximum_surface3d_height", 16384},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH, "maximum_surface3d_depth", 16384},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_WIDTH, "maximum_surface1d_layered_width", 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_LAYERS, "maximum_surface1d_layered_layers", 2048},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_WIDTH, "maximum_surface2d_layered_width", 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_HEIGHT, "maximum_surface2d_layered_height", 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS, "maximum_surface2d_layered_layers", 2048},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH, "maximum_surfacecubemap_width", 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH, "maximum_surfacecubemap_layered_width", 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS, "maximum_surfacecubemap_layered_layers", 2046},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH, "maximum_texture1d_linear_width", 268435456},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH, "maximum_texture2d_linear_width", 131072},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT, "maximum_texture2d_linear_height", 65000},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH, "maximum_texture2d_linear_pitch", 2097120},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH, "maximum_texture2d_mipmapped_width", 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT, "maximum_texture2d_mipmapped_height", 32768},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, "compute_capability_major", 0},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, "compute_capability_minor", 0},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH, "maximum_texture1d_mipmapped_width", 32768},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, "stream_priorities_supported", 1},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, "global_l1_cache_supported", 1},
    {CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, "local_l1_cache_supported", 1},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, "max_shared_memory_per_multiprocessor", 0},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, "max_registers_per_multiprocessor", 65536},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, "managed_memory", 1},
    {CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD, "multi_gpu_board", 0},
    {CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID, "multi_gpu_board_group_id", 0},
    {CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED, "host_native_atomic_supported", 0},
    {CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, "single_to_double_precision_perf_ratio", 0},
    {CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, "pageable_memory_access", 0},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, "concurrent_managed_access", 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, "compute_preemption_supported", 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, "can_use_host_pointer_for_registered_mem", 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1, "can_use_stream_mem_ops_v1", 0},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1, "can_use_64_bit_stream_mem_ops_v1", 0},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1, "can_use_stream_wait_value_nor_v1", 0},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, "cooperative_launch", 1},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH, "cooperative_multi_device_launch", 0},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, "max_shared_memory_per_block_optin", 0},
    {CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES, "can_flush_remote_writes", 0},
    {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, "host_register_supported", 1},
    {CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, "pageable_memory_access_uses_host_page_tables",
     0},
    {CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST, "direct_managed_mem_access_from_host", 0},
    {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, "virtual_memory_management_supported", 1},
    {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, "handle_type_posix_file_descriptor_supported", 0},
    {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_WIN32_HANDLE_SUPPORTED, "handle_type_win32_handle_supported", 0},
    {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_WIN32_KMT_HANDLE_SUPPORTED, "handle_type_win32_kmt_handle_supported", 0},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, "max_blocks_per_multiprocessor", 0},
    {CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED, "generic_compression_supported", 0},
    {CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, "max_persisting_l2_cache_size", 0},
    {CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE, "max_access_policy_window_size", 0},
    {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, "gpu_direct_rdma_with_cuda_vmm_supported", 0},
    {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, "reserved_shared_memory_per_block", 0},
    {CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED, "sparse_cuda_array_supported", 0},
    {CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED, "read_only_host_register_supported", 0},
    {CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED, "timeline_semaphore_interop_supported", 0},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, "memory_pools_supported", 1},
    {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, "gpu_direct_rdma_supported", 0},
    {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS, "gpu_direct_rdma_flush_writes_options", 0},
    {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING, "gpu_direct_rdma_writes_ordering", 0},
    {CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, "mempool_supported_handle_types", 0},
    {CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, "cluster_launch", 0},
    {CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED, "deferred_mapping_cuda_array_supported", 0},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, "can_use_64_bit_stream_mem_ops", 0},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR, "can_use_stream_wait_value_nor", 0},
    {CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, "dma_buf_supported", 0},
    {CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, "ipc_event_supported", 0},
    {CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT, "mem_sync_domain_count", 0},
    {CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED, "tensor_map_access_supported", 0},
    {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, "handle_type_fabric_supported", 0},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS, "unified_function_pointers", 1},
    {CU_DEVICE_ATTRIBUTE_NUMA_CONFIG, "numa_config", 0},
    {CU_DEVICE_ATTRIBUTE_NUMA_ID, "numa_id", -1},
    {CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, "multicast_supported", 0},
    {CU_DEVICE_ATTRIBUTE_MPS_ENABLED, "mps_enabled", 0},
    {CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, "host_numa_id", -1},
    {CU_DEVICE_ATTRIBUTE_D3D12_CIG_SUPPORTED, "d3d12_cig_supported", 0},
    {CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK, "mem_decompress_algorithm_mask", 0},
    {CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_MAXIMUM_LENGTH, "mem_decompress_maximum_length", 0},
    {CU_DEVICE_ATTRIBUTE_VULKAN_CIG_SUPPORTED, "vulkan_cig_supported", 0},
    {CU_DEVICE_ATTRIBUTE_GPU_PCI_DEVICE_ID, "gpu_pci_device_id", 0},
    {CU_DEVICE_ATTRIBUTE_GPU_PCI_SUBSYSTEM_ID, "gpu_pci_subsystem_id", 0},
    {CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, "host_numa_virtual_memory_management_supported",
     0},
    {CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED, "host_numa_memory_pools_supported", 0},
    {CU_DEVICE_ATTRIBUTE_HOST_NUMA_MULTINODE_IPC_SUPPORTED, "host_numa_multinode_ipc_supported", 0},
    {CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED, "host_memory_pools_supported", 0},
    {CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, "host_virtual_memory_management_supported", 0},
    {CU_DEVICE_ATTRIBUTE_HOST_ALLOC_DMA_BUF_SUPPORTED, "host_alloc_dma_buf_supported", 0},
    {CU_DEVICE_ATTRIBUTE_ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED, "only_partial_host_native_atomic_supported", 0},
};

// Values that the CUDA Programming Guide's table of technical specifications gives per compute capability.
struct CapabilityFacts {
  int capability;  // 10 * major + minor; used for this one and those above, up to the next
  int blocks_per_multiprocessor;
  int threads_per_multiprocessor;
  int shared_per_multiprocessor;
  int shared_per_block_optin;
  int shared_reserved_per_block;
  int single_to_double;
};

constexpr CapabilityFacts kCapabilities[] = {
    {60, 32, 2048, 64 << 10, 48 << 10, 0, 2},          {61, 32, 2048, 96 << 10, 48 << 10, 0, 32},
    {70, 32, 2048, 96 << 10, 96 << 10, 0, 2},          {75, 16, 1024, 64 << 10, 64 << 10, 0, 32},
    {80, 32, 2048, 164 << 10, 163 << 10, 1 << 10, 2},  {86, 16, 1536, 100 << 10, 99 << 10, 1 << 10, 64},
    {89, 24, 1536, 100 << 10, 99 << 10, 1 << 10, 64},  {90, 32, 2048, 228 << 10, 227 << 10, 1 << 10, 2},
    {100, 32, 2048, 228 << 10, 227 << 10, 1 << 10, 2}, {120, 24, 1536, 100 << 10, 99 << 10, 1 << 10, 64},
};

const CapabilityFacts& facts_of_capability(const DeviceModel& model) {
  const int capability = 10 * model.compute_major + model.compute_minor;
  const auto above = std::find_if(std::begin(kCapabilities), std::end(kCapabilities),
                                  [&](const CapabilityFacts& facts) { return facts.capability > capability; });
  return above == std::begin(kCapabilities) ? *above : *std::prev(above);
}

// What other keys of the device file or its compute capability give; nothing for all others.
std::optional<int> derived(const DeviceModel& model, int attribute) {
  const CapabilityFacts& facts = facts_of_capability(model);
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      return model.multiprocessors;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return model.compute_major;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      return model.compute_minor;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
      return facts.threads_per_multiprocessor;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
      return facts.blocks_per_multiprocessor;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
      return facts.shared_per_multiprocessor;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      return facts.shared_per_block_optin;
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
      return facts.shared_reserved_per_block;
    case CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO:
      return facts.single_to_double;
    default:
      return std::nullopt;
  }
}

const Attribute* find(int number) {
  const auto* found = std::find_if(std::begin(kAttributes), std::end(kAttributes),
                                   [&](const Attribute& a) { return int(a.number) == number; });
  return found == std::end(kAttributes) ? nullptr : found;
}

}  // namespace

std::optional<int> device_attribute(const DeviceModel& model, int attribute) {
  const Attribute* const known = find(attribute);
  if (known == nullptr) return std::nullopt;
  if (const auto set = model.attributes.find(known->name); set != model.attributes.end()) return set->second;
  if (const auto value = derived(model, attribute)) return value;
  return known->value;
}

bool is_settable_attribute(std::string_view name) {
  static constexpr std::array kGivenByKeys{CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                                           CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                           CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR};
  const auto* found =
      std::find_if(std::begin(kAttributes), std::end(kAttributes), [&](const Attribute& a) { return a.name == name; });
  return found != std::end(kAttributes) &&
         std::find(kGivenByKeys.begin(), kGivenByKeys.end(), found->number) == kGivenByKeys.end();
}

}  // namespace cudasim
