// Driver entry points for programs that call the driver themselves.

#include "api.h"
#include "call.h"
#include "version.h"

using namespace cudart;

namespace {

static_assert(static_cast<int>(cudaEnableLegacyStream) == static_cast<int>(CU_GET_PROC_ADDRESS_LEGACY_STREAM) &&
              static_cast<int>(cudaEnablePerThreadDefaultStream) ==
                  static_cast<int>(CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM));

cudaError_t find(const char* symbol, void** function, int version, unsigned long long flags,
                 cudaDriverEntryPointQueryResult* status) {
  if (!symbol || !function) return cudaErrorInvalidValue;
  if (flags > cudaEnablePerThreadDefaultStream) return cudaErrorInvalidValue;
  if (const cudaError_t error = load_driver(); error != cudaSuccess) return error;
  if (flags == cudaEnableDefault) {
    flags = kDefaultStream == DefaultStream::kPerThread ? cudaEnablePerThreadDefaultStream : cudaEnableLegacyStream;
  }
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  *function = nullptr;
  const CUresult result = driver_look_up()(symbol, function, version, flags, &found);
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_FOUND) return to_runtime_error(result);
  if (result == CUDA_ERROR_NOT_FOUND && found == CU_GET_PROC_ADDRESS_SUCCESS)
    found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  if (found != CU_GET_PROC_ADDRESS_SUCCESS) *function = nullptr;
  if (status) {
    *status = static_cast<cudaDriverEntryPointQueryResult>(found);
    return cudaSuccess;
  }
  return found == CU_GET_PROC_ADDRESS_SUCCESS ? cudaSuccess : cudaErrorSymbolNotFound;
}

}  // namespace

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** funcPtr, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult* driverStatus) {
  return record(find(symbol, funcPtr, kRuntimeVersion, flags, driverStatus));
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** funcPtr, unsigned int cudaVersion,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult* driverStatus) {
  return record(find(symbol, funcPtr, static_cast<int>(cudaVersion), flags, driverStatus));
}
