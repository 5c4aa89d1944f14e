// cudaGetDeviceProperties, in the layout of CUDA 13 and that of CUDA 12.

#include <string.h>

#include "api.h"
#include "call.h"
#include "device_properties_12.h"

using namespace cudart;

namespace {

// Reads one attribute into one member. What an older driver does not know stays 0.
class Attributes {
 public:
  explicit Attributes(int device) : device_(device) {}

  template <typename Member>
  void operator()(Member& member, CUdevice_attribute attribute) const {
    int value = 0;
    if (driver().cuDeviceGetAttribute(&value, attribute, device_) == CUDA_SUCCESS) member = static_cast<Member>(value);
  }

 private:
  int device_;
};

template <typename Properties>
cudaError_t fill_common(Properties* properties, int device) {
  if (!properties) return cudaErrorInvalidValue;
  if (const cudaError_t error = check_device(device); error != cudaSuccess) return error;
  *properties = {};
  const DriverTable& table = driver();
  if (const CUresult result = table.cuDeviceGetName(properties->name, sizeof properties->name, device);
      result != CUDA_SUCCESS) {
    return to_runtime_error(result);
  }
  if (const CUresult result = table.cuDeviceTotalMem(&properties->totalGlobalMem, device); result != CUDA_SUCCESS) {
    return to_runtime_error(result);
  }
  CUuuid uuid{};
  if (table.cuDeviceGetUuid && table.cuDeviceGetUuid(&uuid, device) == CUDA_SUCCESS) {
    memcpy(&properties->uuid, &uuid, sizeof uuid);
  }
  const Attributes ask(device);
  ask(properties->regsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  ask(properties->sharedMemPerBlock, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  ask(properties->warpSize, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  ask(properties->memPitch, CU_DEVICE_ATTRIBUTE_MAX_PITCH);
  ask(properties->maxThreadsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  ask(properties->maxThreadsDim[0], CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
  ask(properties->maxThreadsDim[1], CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y);
  ask(properties->maxThreadsDim[2], CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
  ask(properties->maxGridSize[0], CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
  ask(properties->maxGridSize[1], CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
  ask(properties->maxGridSize[2], CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
  ask(properties->totalConstMem, CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
  ask(properties->major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  ask(properties->minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  ask(properties->textureAlignment, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
  ask(properties->texturePitchAlignment, CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT);
  ask(properties->multiProcessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  ask(properties->integrated, CU_DEVICE_ATTRIBUTE_INTEGRATED);
  ask(properties->canMapHostMemory, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY);
  ask(properties->maxTexture1D, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH);
  ask(properties->maxTexture1DMipmap, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH);
  ask(properties->maxTexture2D[0], CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH);
  ask(properties->maxTexture2D[1], CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT);
  ask(properties->maxTexture2DMipmap[0], CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH);
  ask(properties->maxTexture2DMipmap[1], CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT);
  ask(properties->maxTexture2DLinear[0], CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH);
  ask(properties->maxTexture2DLinear[1], CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT);
  ask(properties->maxTexture2DLinear[2], CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH);
  ask(properties->maxTexture2DGather[0], CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH);
  ask(properties->maxTexture2DGather[1], CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT);
  ask(properties->maxTexture3D[0], CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH);
  ask(properties->maxTexture3D[1], CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT);
  ask(properties->maxTexture3D[2], CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH);
  ask(properties->maxTexture3DAlt[0], CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE);
  ask(properties->maxTexture3DAlt[1], CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE);
  ask(properties->maxTexture3DAlt[2], CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE);
  ask(properties->maxTextureCubemap, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH);
  ask(properties->maxTexture1DLayered[0], CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH);
  ask(properties->maxTexture1DLayered[1], CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS);
  ask(properties->maxTexture2DLayered[0], CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH);
  ask(properties->maxTexture2DLayered[1], CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT);
  ask(properties->maxTexture2DLayered[2], CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS);
  ask(properties->maxTextureCubemapLayered[0], CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH);
  ask(properties->maxTextureCubemapLayered[1], CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS);
  ask(properties->maxSurface1D, CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH);
  ask(properties->maxSurface2D[0], CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH);
  ask(properties->maxSurface2D[1], CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT);
  ask(properties->maxSurface3D[0], CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH);
  ask(properties->maxSurface3D[1], CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT);
  ask(properties->maxSurface3D[2], CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH);
  ask(properties->maxSurface1DLayered[0], CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_WIDTH);
  ask(properties->maxSurface1DLayered[1], CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_LAYERS);
  ask(properties->maxSurface2DLayered[0], CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_WIDTH);
  ask(properties->maxSurface2DLayered[1], CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_HEIGHT);
  ask(properties->maxSurface2DLayered[2], CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS);
  ask(properties->maxSurfaceCubemap, CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH);
  ask(properties->maxSurfaceCubemapLayered[0], CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH);
  ask(properties->maxSurfaceCubemapLayered[1], CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS);
  ask(properties->surfaceAlignment, CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT);
  ask(properties->concurrentKernels, CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS);
  ask(properties->ECCEnabled, CU_DEVICE_ATTRIBUTE_ECC_ENABLED);
  ask(properties->pciBusID, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
  ask(properties->pciDeviceID, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
  ask(properties->pciDomainID, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
  ask(properties->tccDriver, CU_DEVICE_ATTRIBUTE_TCC_DRIVER);
  ask(properties->asyncEngineCount, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
  ask(properties->unifiedAddressing, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING);
  ask(properties->memoryBusWidth, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  ask(properties->l2CacheSize, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  ask(properties->persistingL2CacheMaxSize, CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE);
  ask(properties->maxThreadsPerMultiProcessor, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  ask(properties->streamPrioritiesSupported, CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED);
  ask(properties->globalL1CacheSupported, CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED);
  ask(properties->localL1CacheSupported, CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED);
  ask(properties->sharedMemPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  ask(properties->regsPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  ask(properties->managedMemory, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
  ask(properties->isMultiGpuBoard, CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD);
  ask(properties->multiGpuBoardGroupID, CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID);
  ask(properties->hostNativeAtomicSupported, CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED);
  ask(properties->pageableMemoryAccess, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS);
  ask(properties->concurrentManagedAccess, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
  ask(properties->computePreemptionSupported, CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED);
  ask(properties->canUseHostPointerForRegisteredMem, CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM);
  ask(properties->cooperativeLaunch, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH);
  ask(properties->sharedMemPerBlockOptin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  ask(properties->pageableMemoryAccessUsesHostPageTables,
      CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES);
  ask(properties->directManagedMemAccessFromHost, CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST);
  ask(properties->maxBlocksPerMultiProcessor, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
  ask(properties->accessPolicyMaxWindowSize, CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE);
  ask(properties->reservedSharedMemPerBlock, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
  ask(properties->hostRegisterSupported, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED);
  ask(properties->sparseCudaArraySupported, CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED);
  ask(properties->hostRegisterReadOnlySupported, CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED);
  ask(properties->timelineSemaphoreInteropSupported, CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED);
  ask(properties->memoryPoolsSupported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
  ask(properties->gpuDirectRDMASupported, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED);
  ask(properties->gpuDirectRDMAFlushWritesOptions, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS);
  ask(properties->gpuDirectRDMAWritesOrdering, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING);
  ask(properties->memoryPoolSupportedHandleTypes, CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES);
  ask(properties->deferredMappingCudaArraySupported, CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED);
  ask(properties->ipcEventSupported, CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED);
  ask(properties->clusterLaunch, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH);
  ask(properties->unifiedFunctionPointers, CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS);
  return cudaSuccess;
}

}  // namespace

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp* properties, int device) {
  if (const cudaError_t error = fill_common(properties, device); error != cudaSuccess) return record(error);
  const Attributes ask(device);
  ask(properties->deviceNumaConfig, CU_DEVICE_ATTRIBUTE_NUMA_CONFIG);
  ask(properties->deviceNumaId, CU_DEVICE_ATTRIBUTE_NUMA_ID);
  ask(properties->mpsEnabled, CU_DEVICE_ATTRIBUTE_MPS_ENABLED);
  ask(properties->hostNumaId, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID);
  ask(properties->gpuPciDeviceID, CU_DEVICE_ATTRIBUTE_GPU_PCI_DEVICE_ID);
  ask(properties->gpuPciSubsystemID, CU_DEVICE_ATTRIBUTE_GPU_PCI_SUBSYSTEM_ID);
  ask(properties->hostNumaMultinodeIpcSupported, CU_DEVICE_ATTRIBUTE_HOST_NUMA_MULTINODE_IPC_SUPPORTED);
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties_v2(void* prop, int device) {
  auto* properties = static_cast<DeviceProperties12*>(prop);
  if (const cudaError_t error = fill_common(properties, device); error != cudaSuccess) return record(error);
  const Attributes ask(device);
  ask(properties->clockRate, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  ask(properties->deviceOverlap, CU_DEVICE_ATTRIBUTE_GPU_OVERLAP);
  ask(properties->kernelExecTimeoutEnabled, CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT);
  ask(properties->computeMode, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE);
  ask(properties->maxTexture1DLinear, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH);
  ask(properties->memoryClockRate, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  ask(properties->singleToDoublePrecisionPerfRatio, CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO);
  ask(properties->cooperativeMultiDeviceLaunch, CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH);
  return cudaSuccess;
}

// The first device that has at least what was asked for, else the first device.
cudaError_t cudaChooseDevice(int* device, const struct cudaDeviceProp* prop) {
  if (!device || !prop) return record(cudaErrorInvalidValue);
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) return error;
  *device = 0;
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp has;
    if (const cudaError_t error = cudaGetDeviceProperties(&has, i); error != cudaSuccess) return error;
    if (has.major * 100 + has.minor >= prop->major * 100 + prop->minor && has.totalGlobalMem >= prop->totalGlobalMem &&
        has.multiProcessorCount >= prop->multiProcessorCount) {
      *device = i;
      return cudaSuccess;
    }
  }
  return cudaSuccess;
}
