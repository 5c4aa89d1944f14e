// Texture and surface objects.
#define __CUDA_API_VERSION_INTERNAL
#include "api/call.h"
#include "texture/texture_objects.h"

using namespace cudasim;

namespace {

// CUtexObject and CUsurfObject are the same type.
CUresult create(CallSite& site, CUtexObject* out, const CUDA_RESOURCE_DESC* resource,
                const CUDA_TEXTURE_DESC* description, const CUDA_RESOURCE_VIEW_DESC* view, bool is_surface) {
  return call(site, Needs::kContext, [&](Driver& driver, ContextId context) {
    if (out == nullptr || resource == nullptr || (description == nullptr && !is_surface))
      return CUDA_ERROR_INVALID_VALUE;
    TextureObject object;
    object.resource = *resource;
    if (description != nullptr) object.description = *description;
    if (view != nullptr && view->format != CU_RES_VIEW_FORMAT_NONE) object.view = *view;
    object.is_surface = is_surface;
    object.context = context;
    std::uint64_t handle = 0;
    const CUresult result = driver.textures->create(driver, object, &handle);
    if (result == CUDA_SUCCESS) *out = handle;
    return result;
  });
}

// Kernels that read it must have ended, as the documentation asks; here it waits for them, so that none finds its
// number gone.
CUresult destroy(CallSite& site, std::uint64_t handle, bool is_surface) {
  return call(site, Needs::kContext, [&](Driver& driver, ContextId context) {
    if (driver.textures->find(handle, is_surface) == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult result = driver.engine.wait_context(context); result != CUDA_SUCCESS) return result;
    return driver.textures->destroy(handle, is_surface);
  });
}

template <class Answer, class Take>
CUresult ask(CallSite& site, std::uint64_t handle, bool is_surface, Answer* out, Take take) {
  return call(site, Needs::kContext, [&](Driver& driver, ContextId) {
    const TextureObject* const object = driver.textures->find(handle, is_surface);
    if (object == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = take(*object);
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUDASIM_API cuTexObjectCreate(CUtexObject* out, const CUDA_RESOURCE_DESC* resource,
                              const CUDA_TEXTURE_DESC* description, const CUDA_RESOURCE_VIEW_DESC* view) {
  static CallSite site{"cuTexObjectCreate"};
  return create(site, out, resource, description, view, false);
}
CUDASIM_API cuTexObjectDestroy(CUtexObject object) {
  static CallSite site{"cuTexObjectDestroy"};
  return destroy(site, object, false);
}
CUDASIM_API cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC* out, CUtexObject object) {
  static CallSite site{"cuTexObjectGetResourceDesc"};
  return ask(site, object, false, out, [](const TextureObject& t) { return t.resource; });
}
CUDASIM_API cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC* out, CUtexObject object) {
  static CallSite site{"cuTexObjectGetTextureDesc"};
  return ask(site, object, false, out, [](const TextureObject& t) { return t.description; });
}
CUDASIM_API cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC* out, CUtexObject object) {
  static CallSite site{"cuTexObjectGetResourceViewDesc"};
  return ask(site, object, false, out,
             [](const TextureObject& t) { return t.view.value_or(CUDA_RESOURCE_VIEW_DESC{}); });
}
CUDASIM_API cuSurfObjectCreate(CUsurfObject* out, const CUDA_RESOURCE_DESC* resource) {
  static CallSite site{"cuSurfObjectCreate"};
  return create(site, out, resource, nullptr, nullptr, true);
}
CUDASIM_API cuSurfObjectDestroy(CUsurfObject object) {
  static CallSite site{"cuSurfObjectDestroy"};
  return destroy(site, object, true);
}
CUDASIM_API cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC* out, CUsurfObject object) {
  static CallSite site{"cuSurfObjectGetResourceDesc"};
  return ask(site, object, true, out, [](const TextureObject& t) { return t.resource; });
}
