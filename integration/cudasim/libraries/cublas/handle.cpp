// Handles and what is set in them.
#include "cublas/handle.h"

#include <stdlib.h>
#include <string.h>

using namespace cudasim::libraries;
using namespace cudasim::libraries::cublas;

namespace cudasim::libraries::cublas {

// What cuBLAS takes for a handle whose program gives no workspace: 32 MiB on Hopper, 4 MiB before.
constexpr uint64_t default_workspace(int capability) { return uint64_t{capability >= 90 ? 32u : 4u} << 20; }

Workspace workspace_for(Handle& handle, int64_t m, int64_t n, int64_t k, int64_t batch) {
  const bool own = !handle.workspace;
  const uint64_t limit = own ? default_workspace(compute_capability()) : handle.workspace_bytes;
  const uint64_t bytes = split_workspace(m, n, k, batch, limit);
  if (!bytes) return {nullptr, 0};
  if (!own) return {handle.workspace, bytes};
  if (!handle.own_workspace && cudaMalloc(&handle.own_workspace, limit) != cudaSuccess) {
    cudaGetLastError();
    handle.own_workspace = nullptr;
    return {nullptr, 0};  // a product that is not split is slower, and right
  }
  return {handle.own_workspace, bytes};
}

namespace {

struct Named {
  Status status;
  const char *name, *text;
};
constexpr Named kStatuses[] = {
    {kSuccess, "CUBLAS_STATUS_SUCCESS", "success"},
    {kNotInitialized, "CUBLAS_STATUS_NOT_INITIALIZED", "the library was not initialized"},
    {kAllocationFailed, "CUBLAS_STATUS_ALLOC_FAILED", "the resource allocation failed"},
    {kInvalidValue, "CUBLAS_STATUS_INVALID_VALUE", "an invalid value was used as an argument"},
    {kArchitectureMismatch, "CUBLAS_STATUS_ARCH_MISMATCH", "the device lacks a feature"},
    {kMappingError, "CUBLAS_STATUS_MAPPING_ERROR", "an access to GPU memory space failed"},
    {kExecutionFailed, "CUBLAS_STATUS_EXECUTION_FAILED", "the function failed to launch on the GPU"},
    {kInternalError, "CUBLAS_STATUS_INTERNAL_ERROR", "an internal operation failed"},
    {kNotSupported, "CUBLAS_STATUS_NOT_SUPPORTED", "the requested functionality is not supported"},
    {kLicenseError, "CUBLAS_STATUS_LICENSE_ERROR", "an error was detected when checking the license"},
};

const Named* find(int status) {
  for (const Named& named : kStatuses)
    if (named.status == status) return &named;
  return nullptr;
}

template <class T, class U>
Status get(const Handle* handle, T U::*member, T* out) {
  if (!is_handle(handle)) return kNotInitialized;
  if (!out) return kInvalidValue;
  *out = handle->*member;
  return kSuccess;
}

template <class T, class U>
Status set(Handle* handle, T U::*member, T value) {
  if (!is_handle(handle)) return kNotInitialized;
  handle->*member = value;
  return kSuccess;
}

}  // namespace
}  // namespace cudasim::libraries::cublas

extern "C" {

CUDASIM_EXPORT int cublasCreate_v2(Handle** out) {
  if (!out) return kInvalidValue;
  *out = nullptr;
  // As the real one, it makes the context, and fails where there is no device.
  if (cudaFree(nullptr) != cudaSuccess) {
    cudaGetLastError();
    return kNotInitialized;
  }
  auto* handle = static_cast<Handle*>(calloc(1, sizeof(Handle)));
  if (!handle) return kAllocationFailed;
  handle->magic = kMagic;
  *out = handle;
  return kSuccess;
}

CUDASIM_EXPORT int cublasDestroy_v2(Handle* handle) {
  if (!is_handle(handle)) return kNotInitialized;
  if (handle->own_workspace) cudaFree(handle->own_workspace);
  handle->magic = 0;
  free(handle);
  return kSuccess;
}

CUDASIM_EXPORT int cublasGetVersion_v2(Handle*, int* version) {
  if (!version) return kInvalidValue;
  *version = kVersion;
  return kSuccess;
}

CUDASIM_EXPORT int cublasGetProperty(int type, int* value) {
  if (!value || type < 0 || type > 2) return kInvalidValue;
  *value = type == 0 ? kVersion / 10000 : type == 1 ? kVersion / 100 % 100 : kVersion % 100;
  return kSuccess;
}

CUDASIM_EXPORT size_t cublasGetCudartVersion() { return CUDART_VERSION; }

CUDASIM_EXPORT const char* cublasGetStatusName(int status) {
  const Named* const named = find(status);
  return named ? named->name : "CUBLAS_STATUS_UNKNOWN";
}

CUDASIM_EXPORT const char* cublasGetStatusString(int status) {
  const Named* const named = find(status);
  return named ? named->text : "unknown status";
}

CUDASIM_EXPORT int cublasSetStream_v2(Handle* handle, cudaStream_t stream) {
  if (!is_handle(handle)) return kNotInitialized;
  handle->stream = stream;
  // Documented: the stream's change puts the library's own workspace back.
  handle->workspace = nullptr;
  handle->workspace_bytes = 0;
  return kSuccess;
}
CUDASIM_EXPORT int cublasGetStream_v2(Handle* handle, cudaStream_t* stream) {
  return get(handle, &Handle::stream, stream);
}

CUDASIM_EXPORT int cublasSetWorkspace_v2(Handle* handle, void* workspace, size_t bytes) {
  if (!is_handle(handle)) return kNotInitialized;
  constexpr uintptr_t kAlignment = 256;
  if (reinterpret_cast<uintptr_t>(workspace) % kAlignment != 0 || (!workspace && bytes)) return kInvalidValue;
  handle->workspace = workspace;
  handle->workspace_bytes = bytes;
  return kSuccess;
}

CUDASIM_EXPORT int cublasSetPointerMode_v2(Handle* handle, int mode) {
  return set(handle, &Handle::pointer_mode, mode);
}
CUDASIM_EXPORT int cublasGetPointerMode_v2(Handle* handle, int* mode) {
  return get(handle, &Handle::pointer_mode, mode);
}
CUDASIM_EXPORT int cublasSetMathMode(Handle* handle, int mode) { return set(handle, &Handle::math_mode, mode); }
CUDASIM_EXPORT int cublasGetMathMode(Handle* handle, int* mode) { return get(handle, &Handle::math_mode, mode); }
CUDASIM_EXPORT int cublasSetAtomicsMode(Handle* handle, int mode) { return set(handle, &Handle::atomics_mode, mode); }
CUDASIM_EXPORT int cublasGetAtomicsMode(Handle* handle, int* mode) { return get(handle, &Handle::atomics_mode, mode); }
CUDASIM_EXPORT int cublasSetSmCountTarget(Handle* handle, int count) {
  return set(handle, &Handle::sm_count_target, count);
}
CUDASIM_EXPORT int cublasGetSmCountTarget(Handle* handle, int* count) {
  return get(handle, &Handle::sm_count_target, count);
}
}
