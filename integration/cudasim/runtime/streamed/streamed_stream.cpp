// Streams and events, as far as stream 0 can be named.

#include "api.h"
#include "call.h"

using namespace cudart;

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return call_context<&DriverTable::cuStreamSynchronize>(kDefaultStream, stream);
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return call_context<&DriverTable::cuStreamQuery>(kDefaultStream, stream);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
  return call_context<&DriverTable::cuStreamWaitEvent>(kDefaultStream, stream, event, flags);
}

cudaError_t cudaStreamGetFlags(cudaStream_t hStream, unsigned int* flags) {
  return call_context<&DriverTable::cuStreamGetFlags>(kDefaultStream, hStream, flags);
}

cudaError_t cudaStreamGetPriority(cudaStream_t hStream, int* priority) {
  return call_context<&DriverTable::cuStreamGetPriority>(kDefaultStream, hStream, priority);
}

cudaError_t cudaStreamGetId(cudaStream_t hStream, unsigned long long* streamId) {
  return call_context<&DriverTable::cuStreamGetId>(kDefaultStream, hStream, streamId);
}

cudaError_t cudaStreamGetDevice(cudaStream_t hStream, int* device) {
  return call_context<&DriverTable::cuStreamGetDevice>(kDefaultStream, hStream, device);
}

// The runtime's attributes are the driver's under other names.
static_assert(sizeof(cudaLaunchAttributeValue) == sizeof(CUlaunchAttributeValue) &&
              static_cast<int>(cudaLaunchAttributePriority) == static_cast<int>(CU_LAUNCH_ATTRIBUTE_PRIORITY) &&
              static_cast<int>(cudaLaunchAttributeMemSyncDomain) ==
                  static_cast<int>(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN));

cudaError_t cudaStreamSetAttribute(cudaStream_t hStream, cudaStreamAttrID attr, const cudaStreamAttrValue* value) {
  return call_context<&DriverTable::cuStreamSetAttribute>(kDefaultStream, hStream, static_cast<CUstreamAttrID>(attr),
                                                          reinterpret_cast<const CUstreamAttrValue*>(value));
}

cudaError_t cudaStreamGetAttribute(cudaStream_t hStream, cudaStreamAttrID attr, cudaStreamAttrValue* value_out) {
  return call_context<&DriverTable::cuStreamGetAttribute>(kDefaultStream, hStream, static_cast<CUstreamAttrID>(attr),
                                                          reinterpret_cast<CUstreamAttrValue*>(value_out));
}

cudaError_t cudaStreamCopyAttributes(cudaStream_t dst, cudaStream_t src) {
  return call_context<&DriverTable::cuStreamCopyAttributes>(kDefaultStream, dst, src);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus* pCaptureStatus) {
  return call_context<&DriverTable::cuStreamIsCapturing>(kDefaultStream, stream,
                                                         reinterpret_cast<CUstreamCaptureStatus*>(pCaptureStatus));
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus* captureStatus_out,
                                     unsigned long long* id_out, cudaGraph_t* graph_out,
                                     const cudaGraphNode_t** dependencies_out, const cudaGraphEdgeData** edgeData_out,
                                     size_t* numDependencies_out) {
  // The driver's number of a capture is an unsigned long long as well, under another name.
  static_assert(sizeof(cuuint64_t) == sizeof(unsigned long long) &&
                sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData));
  return call_context<&DriverTable::cuStreamGetCaptureInfo>(
      kDefaultStream, stream, reinterpret_cast<CUstreamCaptureStatus*>(captureStatus_out),
      reinterpret_cast<cuuint64_t*>(id_out), graph_out, dependencies_out,
      reinterpret_cast<const CUgraphEdgeData**>(edgeData_out), numDependencies_out);
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* devPtr, size_t length, unsigned int flags) {
  return call_context<&DriverTable::cuStreamAttachMemAsync>(kDefaultStream, stream, device_pointer(devPtr), length,
                                                            flags);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call_context<&DriverTable::cuEventRecord>(kDefaultStream, event, stream);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags) {
  return call_context<&DriverTable::cuEventRecordWithFlags>(kDefaultStream, event, stream, flags);
}
