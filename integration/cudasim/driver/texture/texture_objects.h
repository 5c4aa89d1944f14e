// Texture and surface objects: what the program said of them, and the handle by which kernels find what they read.
//
// Threads: under the driver's lock.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <map>
#include <optional>

#include "units.h"

namespace cudasim {

struct Driver;

struct TextureObject {
  CUDA_RESOURCE_DESC resource{};
  CUDA_TEXTURE_DESC description{};
  std::optional<CUDA_RESOURCE_VIEW_DESC> view;
  bool is_surface = false;
  ContextId context = ContextId::kNone;
};

class TextureObjects {
 public:
  // CUDA_ERROR_INVALID_VALUE for what contradicts itself, CUDA_ERROR_NOT_SUPPORTED for what this device has not.
  CUresult create(Driver& driver, const TextureObject& object, std::uint64_t* handle);
  const TextureObject* find(std::uint64_t handle, bool is_surface) const;
  CUresult destroy(std::uint64_t handle, bool is_surface);
  void release_context(ContextId context);

 private:
  std::map<std::uint64_t, TextureObject> objects_;
};

}  // namespace cudasim
