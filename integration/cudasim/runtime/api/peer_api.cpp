// Other devices and other processes: peer access, peer copies, shared handles.

#include <string.h>

#include "api.h"
#include "call.h"

using namespace cudart;

static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(CUipcMemHandle) &&
              sizeof(cudaIpcEventHandle_t) == sizeof(CUipcEventHandle));

cudaError_t cudaDeviceCanAccessPeer(int* canAccessPeer, int device, int peerDevice) {
  if (!canAccessPeer) return record(cudaErrorInvalidValue);
  if (const cudaError_t error = check_device(device); error != cudaSuccess) return record(error);
  if (const cudaError_t error = check_device(peerDevice); error != cudaSuccess) return record(error);
  return call_driver<&DriverTable::cuDeviceCanAccessPeer>(kDefaultStream, canAccessPeer, device, peerDevice);
}

cudaError_t cudaDeviceGetP2PAttribute(int* value, enum cudaDeviceP2PAttr attr, int srcDevice, int dstDevice) {
  return call_driver<&DriverTable::cuDeviceGetP2PAttribute>(
      kDefaultStream, value, static_cast<CUdevice_P2PAttribute>(attr), srcDevice, dstDevice);
}

cudaError_t cudaDeviceEnablePeerAccess(int peerDevice, unsigned int flags) {
  CUcontext peer = nullptr;
  if (const cudaError_t error = check_device(peerDevice); error != cudaSuccess) return record(error);
  if (const cudaError_t error = retain_primary(peerDevice, &peer); error != cudaSuccess) return record(error);
  return call_context<&DriverTable::cuCtxEnablePeerAccess>(kDefaultStream, peer, flags);
}

cudaError_t cudaDeviceDisablePeerAccess(int peerDevice) {
  CUcontext peer = nullptr;
  if (const cudaError_t error = check_device(peerDevice); error != cudaSuccess) return record(error);
  if (const cudaError_t error = retain_primary(peerDevice, &peer); error != cudaSuccess) return record(error);
  return call_context<&DriverTable::cuCtxDisablePeerAccess>(kDefaultStream, peer);
}

namespace {

cudaError_t find_contexts(int to, int from, CUcontext* to_context, CUcontext* from_context) {
  if (const cudaError_t error = check_device(to); error != cudaSuccess) return error;
  if (const cudaError_t error = check_device(from); error != cudaSuccess) return error;
  if (const cudaError_t error = retain_primary(to, to_context); error != cudaSuccess) return error;
  return retain_primary(from, from_context);
}

}  // namespace

cudaError_t cudaMemcpyPeer(void* dst, int dstDevice, const void* src, int srcDevice, size_t count) {
  CUcontext to = nullptr;
  CUcontext from = nullptr;
  if (const cudaError_t error = find_contexts(dstDevice, srcDevice, &to, &from); error != cudaSuccess)
    return record(error);
  if (!count) return record(enter_context());
  return call_context<&DriverTable::cuMemcpyPeer>(kDefaultStream, device_pointer(dst), to, device_pointer(src), from,
                                                  count);
}

cudaError_t cudaMemcpyPeerAsync(void* dst, int dstDevice, const void* src, int srcDevice, size_t count,
                                cudaStream_t stream) {
  CUcontext to = nullptr;
  CUcontext from = nullptr;
  if (const cudaError_t error = find_contexts(dstDevice, srcDevice, &to, &from); error != cudaSuccess)
    return record(error);
  if (!count) return record(enter_context());
  return call_context<&DriverTable::cuMemcpyPeerAsync>(kDefaultStream, device_pointer(dst), to, device_pointer(src),
                                                       from, count, stream);
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* devPtr) {
  return call_context<&DriverTable::cuIpcGetMemHandle>(kDefaultStream, reinterpret_cast<CUipcMemHandle*>(handle),
                                                       device_pointer(devPtr));
}

cudaError_t cudaIpcOpenMemHandle(void** devPtr, cudaIpcMemHandle_t handle, unsigned int flags) {
  if (!devPtr) return record(cudaErrorInvalidValue);
  CUipcMemHandle driver_handle;
  memcpy(&driver_handle, &handle, sizeof handle);
  CUdeviceptr address = 0;
  const cudaError_t error =
      ask_context<&DriverTable::cuIpcOpenMemHandle>(kDefaultStream, &address, driver_handle, flags);
  if (error == cudaSuccess) *devPtr = reinterpret_cast<void*>(address);
  return record(error);
}

cudaError_t cudaIpcCloseMemHandle(void* devPtr) {
  return call_context<&DriverTable::cuIpcCloseMemHandle>(kDefaultStream, device_pointer(devPtr));
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  return call_context<&DriverTable::cuIpcGetEventHandle>(kDefaultStream, reinterpret_cast<CUipcEventHandle*>(handle),
                                                         event);
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  CUipcEventHandle driver_handle;
  memcpy(&driver_handle, &handle, sizeof handle);
  return call_context<&DriverTable::cuIpcOpenEventHandle>(kDefaultStream, event, driver_handle);
}
