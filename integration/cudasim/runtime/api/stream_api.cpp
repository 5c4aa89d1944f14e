// Making and ending streams and events.

#include "api.h"
#include "call.h"

using namespace cudart;

cudaError_t cudaStreamCreate(cudaStream_t* pStream) {
  return call_context<&DriverTable::cuStreamCreate>(kDefaultStream, pStream, CU_STREAM_DEFAULT);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* pStream, unsigned int flags) {
  return call_context<&DriverTable::cuStreamCreate>(kDefaultStream, pStream, flags);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* pStream, unsigned int flags, int priority) {
  return call_context<&DriverTable::cuStreamCreateWithPriority>(kDefaultStream, pStream, flags, priority);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  // The special streams can't be destroyed; asking the driver would depend on what it takes 0 for.
  if (!stream || stream == cudaStreamLegacy || stream == cudaStreamPerThread)
    return record(cudaErrorInvalidResourceHandle);
  return call_context<&DriverTable::cuStreamDestroy>(kDefaultStream, stream);
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode* mode) {
  return call_context<&DriverTable::cuThreadExchangeStreamCaptureMode>(kDefaultStream,
                                                                       reinterpret_cast<CUstreamCaptureMode*>(mode));
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return call_context<&DriverTable::cuEventCreate>(kDefaultStream, event, CU_EVENT_DEFAULT);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  return call_context<&DriverTable::cuEventCreate>(kDefaultStream, event, flags);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return call_context<&DriverTable::cuEventDestroy>(kDefaultStream, event);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return call_context<&DriverTable::cuEventQuery>(kDefaultStream, event);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return call_context<&DriverTable::cuEventSynchronize>(kDefaultStream, event);
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  return call_context<&DriverTable::cuEventElapsedTime>(kDefaultStream, ms, start, end);
}

cudaError_t cudaEventElapsedTime_v2(float* ms, cudaEvent_t start, cudaEvent_t end) {
  return cudaEventElapsedTime(ms, start, end);
}
