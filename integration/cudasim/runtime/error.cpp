#include "error.h"

#include "error_table.h"
#include "thread_state.h"

namespace cudart {
namespace {

// The kernel or the hardware failed and the context with it; only the end of the process helps.
bool is_sticky(cudaError_t error) {
  switch (error) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorTensorMemoryLeak:
    case cudaErrorMpsClientTerminated:
    case cudaErrorExternalDevice:
      return true;
    default:
      return false;
  }
}

}  // namespace

cudaError_t to_runtime_error(CUresult result) {
  if (result == CUDA_SUCCESS) return cudaSuccess;
  const auto error = static_cast<cudaError_t>(result);
  return find_error(error) ? error : cudaErrorUnknown;
}

cudaError_t record(cudaError_t error) {
  if (__builtin_expect(error != cudaSuccess, 0) && !is_sticky(t_state.last_error)) t_state.last_error = error;
  return error;
}

cudaError_t peek_last_error() { return t_state.last_error; }

cudaError_t take_last_error() {
  const cudaError_t error = t_state.last_error;
  if (!is_sticky(error)) t_state.last_error = cudaSuccess;
  return error;
}

void forget_last_error() { t_state.last_error = cudaSuccess; }

}  // namespace cudart
