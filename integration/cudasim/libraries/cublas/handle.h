// A cuBLAS handle: stream, modes and workspace.
#pragma once
#include "cublas/values.h"

namespace cudasim::libraries::cublas {

struct Handle {
  uint32_t magic;
  cudaStream_t stream;
  int pointer_mode;
  int math_mode;
  int atomics_mode;
  int sm_count_target;
  void* workspace;  // the program's
  uint64_t workspace_bytes;
  void* own_workspace;  // made when a product first needs one and the program gave none
};

constexpr uint32_t kMagic = 0x63756221;

inline bool is_handle(const Handle* handle) { return handle && handle->magic == kMagic; }

// The workspace of a product that wants one of up to the handle's size; its bytes are 0 where it needs none.
struct Workspace {
  void* data;
  uint64_t bytes;
};
Workspace workspace_for(Handle& handle, int64_t m, int64_t n, int64_t k, int64_t batch);

}  // namespace cudasim::libraries::cublas
