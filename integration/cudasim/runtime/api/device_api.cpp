// Devices and their contexts, versions, limits.

#include "api.h"
#include "call.h"
#include "version.h"

using namespace cudart;

cudaError_t cudaGetDeviceCount(int* count) {
  if (!count) return record(cudaErrorInvalidValue);
  int found = 0;
  const cudaError_t error = ask_driver<&DriverTable::cuDeviceGetCount>(kDefaultStream, &found);
  if (error != cudaSuccess) return record(error);
  *count = found;
  return record(found ? cudaSuccess : cudaErrorNoDevice);
}

cudaError_t cudaGetDevice(int* device) {
  if (!device) return record(cudaErrorInvalidValue);
  return record(current_device(device));
}

cudaError_t cudaSetDevice(int device) { return record(select_device(device)); }

cudaError_t cudaSetValidDevices(int* device_arr, int len) {
  if (len < 0 || (len && !device_arr)) return record(cudaErrorInvalidValue);
  for (int i = 0; i < len; ++i) {
    if (const cudaError_t error = check_device(device_arr[i]); error != cudaSuccess) return record(error);
  }
  return record(load_driver());
}

cudaError_t cudaInitDevice(int device, unsigned int deviceFlags, unsigned int flags) {
  if (const cudaError_t error = check_device(device); error != cudaSuccess) return record(error);
  if (flags & cudaInitDeviceFlagsAreValid) {
    const cudaError_t error = ask_driver<&DriverTable::cuDevicePrimaryCtxSetFlags>(kDefaultStream, device, deviceFlags);
    if (error != cudaSuccess) return record(error);
  }
  CUcontext context = nullptr;
  return record(retain_primary(device, &context));
}

cudaError_t cudaSetDeviceFlags(unsigned int flags) {
  int device = 0;
  if (const cudaError_t error = current_device(&device); error != cudaSuccess) return record(error);
  return call_driver<&DriverTable::cuDevicePrimaryCtxSetFlags>(kDefaultStream, device, flags);
}

cudaError_t cudaGetDeviceFlags(unsigned int* flags) {
  if (!flags) return record(cudaErrorInvalidValue);
  int device = 0;
  if (const cudaError_t error = current_device(&device); error != cudaSuccess) return record(error);
  int active = 0;
  return call_driver<&DriverTable::cuDevicePrimaryCtxGetState>(kDefaultStream, device, flags, &active);
}

cudaError_t cudaDeviceGetAttribute(int* value, enum cudaDeviceAttr attr, int device) {
  if (!value) return record(cudaErrorInvalidValue);
  if (const cudaError_t error = check_device(device); error != cudaSuccess) return record(error);
  // The runtime's attribute numbers are the driver's.
  return call_driver<&DriverTable::cuDeviceGetAttribute>(kDefaultStream, value, static_cast<CUdevice_attribute>(attr),
                                                         device);
}

cudaError_t cudaDeviceSynchronize(void) { return call_context<&DriverTable::cuCtxSynchronize>(kDefaultStream); }

cudaError_t cudaDeviceReset(void) {
  const cudaError_t error = reset_device();
  if (error == cudaSuccess) forget_last_error();
  return record(error);
}

cudaError_t cudaDeviceGetLimit(size_t* pValue, enum cudaLimit limit) {
  return call_context<&DriverTable::cuCtxGetLimit>(kDefaultStream, pValue, static_cast<CUlimit>(limit));
}

cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value) {
  return call_context<&DriverTable::cuCtxSetLimit>(kDefaultStream, static_cast<CUlimit>(limit), value);
}

cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache* pCacheConfig) {
  if (!pCacheConfig) return record(cudaErrorInvalidValue);
  CUfunc_cache config = CU_FUNC_CACHE_PREFER_NONE;
  const cudaError_t error = ask_context<&DriverTable::cuCtxGetCacheConfig>(kDefaultStream, &config);
  if (error == cudaSuccess) *pCacheConfig = static_cast<cudaFuncCache>(config);
  return record(error);
}

cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache cacheConfig) {
  return call_context<&DriverTable::cuCtxSetCacheConfig>(kDefaultStream, static_cast<CUfunc_cache>(cacheConfig));
}

// Banks have had one width since Maxwell: the setting is accepted and means nothing, as on such a device.
cudaError_t cudaDeviceGetSharedMemConfig(enum cudaSharedMemConfig* pConfig) {
  if (!pConfig) return record(cudaErrorInvalidValue);
  *pConfig = cudaSharedMemBankSizeFourByte;
  return record(enter_context());
}

cudaError_t cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig) { return record(enter_context()); }

cudaError_t cudaDeviceGetStreamPriorityRange(int* leastPriority, int* greatestPriority) {
  return call_context<&DriverTable::cuCtxGetStreamPriorityRange>(kDefaultStream, leastPriority, greatestPriority);
}

cudaError_t cudaCtxResetPersistingL2Cache(void) {
  return call_context<&DriverTable::cuCtxResetPersistingL2Cache>(kDefaultStream);
}

cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* pciBusId) {
  return call_driver<&DriverTable::cuDeviceGetByPCIBusId>(kDefaultStream, device, pciBusId);
}

cudaError_t cudaDeviceGetPCIBusId(char* pciBusId, int len, int device) {
  if (const cudaError_t error = check_device(device); error != cudaSuccess) return record(error);
  return call_driver<&DriverTable::cuDeviceGetPCIBusId>(kDefaultStream, pciBusId, len, device);
}

cudaError_t cudaDriverGetVersion(int* driverVersion) {
  if (!driverVersion) return record(cudaErrorInvalidValue);
  *driverVersion = driver_version();  // 0, and no error, without a driver
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* runtimeVersion) {
  if (!runtimeVersion) return record(cudaErrorInvalidValue);
  *runtimeVersion = kRuntimeVersion;
  return cudaSuccess;
}

// Tables between NVIDIA's own libraries; this runtime has none.
cudaError_t cudaGetExportTable(const void** ppExportTable, const cudaUUID_t*) {
  if (!ppExportTable) return record(cudaErrorInvalidValue);
  *ppExportTable = nullptr;
  return record(cudaErrorNotSupported);
}

cudaError_t cudaProfilerStart(void) { return call_context<&DriverTable::cuProfilerStart>(kDefaultStream); }

cudaError_t cudaProfilerStop(void) { return call_context<&DriverTable::cuProfilerStop>(kDefaultStream); }

struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, enum cudaChannelFormatKind f) {
  return {x, y, z, w, f};
}
