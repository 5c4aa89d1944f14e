// cuInit, versions, errors.
#define __CUDA_API_VERSION_INTERNAL
#include <cudaProfiler.h>
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <span>

#include "api/call.h"
#include "entry_table.h"

namespace cudasim {
namespace {

struct ErrorText {
  CUresult code;
  const char* name;
  const char* text;
};

// Texts are our own words: programs print them, none parses them.
#define CUDASIM_ERROR(code, text) \
  { code, #code, text }
constexpr ErrorText kErrors[] = {
    CUDASIM_ERROR(CUDA_SUCCESS, "no error"),
    CUDASIM_ERROR(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    CUDASIM_ERROR(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    CUDASIM_ERROR(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    CUDASIM_ERROR(CUDA_ERROR_DEINITIALIZED, "driver shutting down"),
    CUDASIM_ERROR(CUDA_ERROR_PROFILER_DISABLED, "profiler disabled"),
    CUDASIM_ERROR(CUDA_ERROR_PROFILER_NOT_INITIALIZED, "profiler not initialized"),
    CUDASIM_ERROR(CUDA_ERROR_PROFILER_ALREADY_STARTED, "profiler already started"),
    CUDASIM_ERROR(CUDA_ERROR_PROFILER_ALREADY_STOPPED, "profiler already stopped"),
    CUDASIM_ERROR(CUDA_ERROR_STUB_LIBRARY, "the CUDA library is a stub"),
    CUDASIM_ERROR(CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER, "API call requires a newer driver"),
    CUDASIM_ERROR(CUDA_ERROR_DEVICE_UNAVAILABLE, "device is busy or unavailable"),
    CUDASIM_ERROR(CUDA_ERROR_NO_DEVICE, "no device"),
    CUDASIM_ERROR(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    CUDASIM_ERROR(CUDA_ERROR_DEVICE_NOT_LICENSED, "device not licensed"),
    CUDASIM_ERROR(CUDA_ERROR_INVALID_IMAGE, "invalid kernel image"),
    CUDASIM_ERROR(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
    CUDASIM_ERROR(CUDA_ERROR_CONTEXT_ALREADY_CURRENT, "context already current"),
    CUDASIM_ERROR(CUDA_ERROR_MAP_FAILED, "mapping of a buffer failed"),
    CUDASIM_ERROR(CUDA_ERROR_UNMAP_FAILED, "unmapping of a buffer failed"),
    CUDASIM_ERROR(CUDA_ERROR_ARRAY_IS_MAPPED, "array is mapped"),
    CUDASIM_ERROR(CUDA_ERROR_ALREADY_MAPPED, "resource already mapped"),
    CUDASIM_ERROR(CUDA_ERROR_NO_BINARY_FOR_GPU, "no kernel image for this device"),
    CUDASIM_ERROR(CUDA_ERROR_ALREADY_ACQUIRED, "resource already acquired"),
    CUDASIM_ERROR(CUDA_ERROR_NOT_MAPPED, "resource not mapped"),
    CUDASIM_ERROR(CUDA_ERROR_NOT_MAPPED_AS_ARRAY, "resource not mapped as array"),
    CUDASIM_ERROR(CUDA_ERROR_NOT_MAPPED_AS_POINTER, "resource not mapped as pointer"),
    CUDASIM_ERROR(CUDA_ERROR_ECC_UNCORRECTABLE, "uncorrectable ECC error"),
    CUDASIM_ERROR(CUDA_ERROR_UNSUPPORTED_LIMIT, "limit is not supported on this device"),
    CUDASIM_ERROR(CUDA_ERROR_CONTEXT_ALREADY_IN_USE, "context is current to another thread"),
    CUDASIM_ERROR(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "peer access is not supported between these devices"),
    CUDASIM_ERROR(CUDA_ERROR_INVALID_PTX, "PTX compilation failed"),
    CUDASIM_ERROR(CUDA_ERROR_INVALID_GRAPHICS_CONTEXT, "invalid graphics context"),
    CUDASIM_ERROR(CUDA_ERROR_NVLINK_UNCORRECTABLE, "uncorrectable NVLink error"),
    CUDASIM_ERROR(CUDA_ERROR_JIT_COMPILER_NOT_FOUND, "PTX compiler library not found"),
    CUDASIM_ERROR(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "PTX version is not supported"),
    CUDASIM_ERROR(CUDA_ERROR_JIT_COMPILATION_DISABLED, "PTX compilation is disabled"),
    CUDASIM_ERROR(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, "execution affinity is not supported"),
    CUDASIM_ERROR(CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC, "device-side synchronization is not supported"),
    CUDASIM_ERROR(CUDA_ERROR_CONTAINED, "contained exception on the device"),
    CUDASIM_ERROR(CUDA_ERROR_INVALID_SOURCE, "invalid kernel source"),
    CUDASIM_ERROR(CUDA_ERROR_FILE_NOT_FOUND, "file not found"),
    CUDASIM_ERROR(CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, "symbol of a shared object not found"),
    CUDASIM_ERROR(CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, "shared object failed to initialize"),
    CUDASIM_ERROR(CUDA_ERROR_OPERATING_SYSTEM, "a call of the operating system failed"),
    CUDASIM_ERROR(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    CUDASIM_ERROR(CUDA_ERROR_ILLEGAL_STATE, "not permitted in this state"),
    CUDASIM_ERROR(CUDA_ERROR_LOSSY_QUERY, "lossy query"),
    CUDASIM_ERROR(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    CUDASIM_ERROR(CUDA_ERROR_NOT_READY, "device not ready"),
    CUDASIM_ERROR(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    CUDASIM_ERROR(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"),
    CUDASIM_ERROR(CUDA_ERROR_LAUNCH_TIMEOUT, "the launch timed out"),
    CUDASIM_ERROR(CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING, "incompatible texturing mode at launch"),
    CUDASIM_ERROR(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is already enabled"),
    CUDASIM_ERROR(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "peer access is not enabled"),
    CUDASIM_ERROR(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, "the primary context is active"),
    CUDASIM_ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
    CUDASIM_ERROR(CUDA_ERROR_ASSERT, "device-side assert triggered"),
    CUDASIM_ERROR(CUDA_ERROR_TOO_MANY_PEERS, "too many peers"),
    CUDASIM_ERROR(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "host memory is already registered"),
    CUDASIM_ERROR(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "host memory is not registered"),
    CUDASIM_ERROR(CUDA_ERROR_HARDWARE_STACK_ERROR, "hardware stack error"),
    CUDASIM_ERROR(CUDA_ERROR_ILLEGAL_INSTRUCTION, "illegal instruction"),
    CUDASIM_ERROR(CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address"),
    CUDASIM_ERROR(CUDA_ERROR_INVALID_ADDRESS_SPACE, "operation not supported on this address space"),
    CUDASIM_ERROR(CUDA_ERROR_INVALID_PC, "invalid program counter"),
    CUDASIM_ERROR(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
    CUDASIM_ERROR(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "too many blocks in a cooperative launch"),
    CUDASIM_ERROR(CUDA_ERROR_TENSOR_MEMORY_LEAK, "tensor memory leaked by a kernel"),
    CUDASIM_ERROR(CUDA_ERROR_NOT_PERMITTED, "operation not permitted"),
    CUDASIM_ERROR(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
    CUDASIM_ERROR(CUDA_ERROR_SYSTEM_NOT_READY, "system not yet initialized"),
    CUDASIM_ERROR(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "display driver and CUDA driver do not match"),
    CUDASIM_ERROR(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, "forward compatibility is not supported on this device"),
    CUDASIM_ERROR(CUDA_ERROR_MPS_CONNECTION_FAILED, "MPS: no connection to the server"),
    CUDASIM_ERROR(CUDA_ERROR_MPS_RPC_FAILURE, "MPS: remote call failed"),
    CUDASIM_ERROR(CUDA_ERROR_MPS_SERVER_NOT_READY, "MPS: server not ready"),
    CUDASIM_ERROR(CUDA_ERROR_MPS_MAX_CLIENTS_REACHED, "MPS: too many clients"),
    CUDASIM_ERROR(CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED, "MPS: too many connections"),
    CUDASIM_ERROR(CUDA_ERROR_MPS_CLIENT_TERMINATED, "MPS: client terminated"),
    CUDASIM_ERROR(CUDA_ERROR_CDP_NOT_SUPPORTED, "dynamic parallelism is not supported"),
    CUDASIM_ERROR(CUDA_ERROR_CDP_VERSION_MISMATCH, "versions of dynamic parallelism differ"),
    CUDASIM_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "operation not permitted when a stream is capturing"),
    CUDASIM_ERROR(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "capture was invalidated by an earlier error"),
    CUDASIM_ERROR(CUDA_ERROR_STREAM_CAPTURE_MERGE, "operation would merge two captures"),
    CUDASIM_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "capture was not begun on this stream"),
    CUDASIM_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "capture has work that was not joined"),
    CUDASIM_ERROR(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "dependency crosses the capture's border"),
    CUDASIM_ERROR(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "implicit dependency on the legacy stream while capturing"),
    CUDASIM_ERROR(CUDA_ERROR_CAPTURED_EVENT, "event was last recorded in a capturing stream"),
    CUDASIM_ERROR(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "capture was begun by another thread"),
    CUDASIM_ERROR(CUDA_ERROR_TIMEOUT, "wait timed out"),
    CUDASIM_ERROR(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, "the graph update breaks the rules of an instantiated graph"),
    CUDASIM_ERROR(CUDA_ERROR_EXTERNAL_DEVICE, "error of a device outside of CUDA"),
    CUDASIM_ERROR(CUDA_ERROR_INVALID_CLUSTER_SIZE, "invalid cluster size"),
    CUDASIM_ERROR(CUDA_ERROR_FUNCTION_NOT_LOADED, "function not loaded"),
    CUDASIM_ERROR(CUDA_ERROR_INVALID_RESOURCE_TYPE, "invalid resource type"),
    CUDASIM_ERROR(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, "invalid resource configuration"),
    CUDASIM_ERROR(CUDA_ERROR_KEY_ROTATION, "key rotation under way"),
    CUDASIM_ERROR(CUDA_ERROR_UNKNOWN, "unknown error"),
};
#undef CUDASIM_ERROR

const ErrorText* find_error(CUresult code) {
  const auto* found =
      std::find_if(std::begin(kErrors), std::end(kErrors), [&](const ErrorText& error) { return error.code == code; });
  return found == std::end(kErrors) ? nullptr : found;
}

CUresult error_field(CUresult code, const char** out, const char* ErrorText::*field) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const ErrorText* const error = find_error(code);
  *out = error == nullptr ? nullptr : error->*field;
  return error == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

// As NVIDIA's driver does for its tools: the library that the environment names is loaded in the first cuInit, and
// told.
void load_injected_library() {
  static std::atomic<bool> done{false};
  const char* const path = std::getenv("CUDA_INJECTION64_PATH");
  if (path == nullptr || *path == '\0' || Driver::in_forked_child() || done.exchange(true)) return;
  void* const library = dlopen(path, RTLD_NOW);
  if (library == nullptr) {
    std::fprintf(stderr, "cudasim: CUDA_INJECTION64_PATH: %s\n", dlerror());
    return;
  }
  if (void* const begin = dlsym(library, "InitializeInjection")) reinterpret_cast<int (*)()>(begin)();
}

}  // namespace
}  // namespace cudasim

using namespace cudasim;

CUDASIM_API cuInit(unsigned int flags) {
  static CallSite site{"cuInit"};
  const CUresult result = call(site, Needs::kNothing, [&](Driver& driver, ContextId) {
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (!driver.config.device_problem.empty()) {
      std::fprintf(stderr, "cudasim: cuInit: %s\n", driver.config.device_problem.c_str());
      return CUDA_ERROR_INVALID_DEVICE;
    }
    driver.initialized = true;
    return CUDA_SUCCESS;
  });
  if (result == CUDA_SUCCESS) load_injected_library();
  return result;
}

CUDASIM_API cuDriverGetVersion(int* version) {
  static CallSite site{"cuDriverGetVersion"};
  return call(site, Needs::kNothing, [&](Driver&, ContextId) {
    if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *version = kDriverVersion;
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuGetErrorName(CUresult error, const char** out) {
  static CallSite site{"cuGetErrorName"};
  if (Driver::in_forked_child())
    return error_field(error, out, &ErrorText::name);  // the child must be able to say what went wrong
  return call(site, Needs::kNothing, [&](Driver&, ContextId) { return error_field(error, out, &ErrorText::name); });
}

CUDASIM_API cuGetErrorString(CUresult error, const char** out) {
  static CallSite site{"cuGetErrorString"};
  if (Driver::in_forked_child())
    return error_field(error, out, &ErrorText::text);  // the child must be able to say what went wrong
  return call(site, Needs::kNothing, [&](Driver&, ContextId) { return error_field(error, out, &ErrorText::text); });
}
