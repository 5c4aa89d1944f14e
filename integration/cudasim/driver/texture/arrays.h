// CUDA arrays: device memory with a shape and a format. A mipmapped array is an array for each level.
//
// Threads: under the driver's lock.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "memory/transfer.h"
#include "units.h"

namespace cudasim {

class Memory;

struct Array {
  CUDA_ARRAY3D_DESCRIPTOR description{};  // as asked for
  ContextId context = ContextId::kNone;
  CUdeviceptr base = 0;
  std::uint64_t pitch = 0;  // bytes
  std::uint64_t slice = 0;
  bool is_level = false;  // of a mipmapped array, which owns it

  std::uint64_t rows() const { return description.Height == 0 ? 1 : description.Height; }
  // Slices of a 3D array, layers of a layered one.
  std::uint64_t slices() const { return description.Depth == 0 ? 1 : description.Depth; }
  bool layered() const { return (description.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0; }
  Rows place() const { return {base, pitch, slice}; }
};

struct MipmappedArray {
  std::vector<std::unique_ptr<Array>> levels;
  ContextId context = ContextId::kNone;
};

// Bytes of an element; 0 for a format that this device does not have.
std::uint32_t element_bytes(CUarray_format format, unsigned channels);
std::uint32_t channel_bytes(CUarray_format format);

class Arrays {
 public:
  explicit Arrays(Memory& memory) : memory_(memory) {}

  // CUDA_ERROR_INVALID_VALUE for a shape or format that no device has, CUDA_ERROR_NOT_SUPPORTED for one that this
  // device has not, CUDA_ERROR_OUT_OF_MEMORY.
  CUresult create(ContextId context, const CUDA_ARRAY3D_DESCRIPTOR& description, CUarray* out);
  CUresult create_mipmapped(ContextId context, const CUDA_ARRAY3D_DESCRIPTOR& description, unsigned levels,
                            CUmipmappedArray* out);
  // Null for what is none; also finds levels of mipmapped arrays.
  Array* find(CUarray handle) const;
  MipmappedArray* find(CUmipmappedArray handle) const;
  // The caller has waited for what uses them, and has the checker forget the bytes.
  CUresult destroy(CUarray handle);
  CUresult destroy(CUmipmappedArray handle);
  // Their memory goes with the context's.
  void release_context(ContextId context);

 private:
  CUresult make(ContextId context, const CUDA_ARRAY3D_DESCRIPTOR& description, std::unique_ptr<Array>& out);

  Memory& memory_;
  std::vector<std::unique_ptr<Array>> arrays_;
  std::vector<std::unique_ptr<MipmappedArray>> mipmapped_;
};

}  // namespace cudasim
