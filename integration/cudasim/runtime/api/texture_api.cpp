// Texture and surface objects: the runtime's descriptions as the driver's, and back.

#include "api.h"
#include "array_format.h"
#include "call.h"

using namespace cudart;

namespace {

cudaError_t driver_resource(CUDA_RESOURCE_DESC* out, const cudaResourceDesc& r) {
  *out = {};
  switch (r.resType) {
    case cudaResourceTypeArray:
      out->resType = CU_RESOURCE_TYPE_ARRAY;
      out->res.array.hArray = driver_array(r.res.array.array);
      return cudaSuccess;
    case cudaResourceTypeMipmappedArray:
      out->resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
      out->res.mipmap.hMipmappedArray = reinterpret_cast<CUmipmappedArray>(r.res.mipmap.mipmap);
      return cudaSuccess;
    case cudaResourceTypeLinear: {
      auto& linear = out->res.linear;
      out->resType = CU_RESOURCE_TYPE_LINEAR;
      linear.devPtr = device_pointer(r.res.linear.devPtr);
      linear.sizeInBytes = r.res.linear.sizeInBytes;
      return driver_format(r.res.linear.desc, &linear.format, &linear.numChannels) ? cudaSuccess
                                                                                   : cudaErrorInvalidChannelDescriptor;
    }
    case cudaResourceTypePitch2D: {
      auto& pitched = out->res.pitch2D;
      out->resType = CU_RESOURCE_TYPE_PITCH2D;
      pitched.devPtr = device_pointer(r.res.pitch2D.devPtr);
      pitched.width = r.res.pitch2D.width;
      pitched.height = r.res.pitch2D.height;
      pitched.pitchInBytes = r.res.pitch2D.pitchInBytes;
      return driver_format(r.res.pitch2D.desc, &pitched.format, &pitched.numChannels)
                 ? cudaSuccess
                 : cudaErrorInvalidChannelDescriptor;
    }
    default:
      return cudaErrorInvalidValue;
  }
}

cudaResourceDesc runtime_resource(const CUDA_RESOURCE_DESC& r) {
  cudaResourceDesc out{};
  out.resType = static_cast<cudaResourceType>(r.resType);
  switch (r.resType) {
    case CU_RESOURCE_TYPE_ARRAY:
      out.res.array.array = reinterpret_cast<cudaArray_t>(r.res.array.hArray);
      break;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
      out.res.mipmap.mipmap = reinterpret_cast<cudaMipmappedArray_t>(r.res.mipmap.hMipmappedArray);
      break;
    case CU_RESOURCE_TYPE_LINEAR:
      out.res.linear.devPtr = reinterpret_cast<void*>(r.res.linear.devPtr);
      out.res.linear.desc = channel_description(r.res.linear.format, r.res.linear.numChannels);
      out.res.linear.sizeInBytes = r.res.linear.sizeInBytes;
      break;
    default:
      out.res.pitch2D.devPtr = reinterpret_cast<void*>(r.res.pitch2D.devPtr);
      out.res.pitch2D.desc = channel_description(r.res.pitch2D.format, r.res.pitch2D.numChannels);
      out.res.pitch2D.width = r.res.pitch2D.width;
      out.res.pitch2D.height = r.res.pitch2D.height;
      out.res.pitch2D.pitchInBytes = r.res.pitch2D.pitchInBytes;
  }
  return out;
}

CUDA_TEXTURE_DESC driver_texture(const cudaTextureDesc& t) {
  CUDA_TEXTURE_DESC out{};
  for (int axis = 0; axis < 3; ++axis) out.addressMode[axis] = static_cast<CUaddress_mode>(t.addressMode[axis]);
  out.filterMode = static_cast<CUfilter_mode>(t.filterMode);
  out.flags = (t.readMode == cudaReadModeElementType ? CU_TRSF_READ_AS_INTEGER : 0u) | (t.sRGB ? CU_TRSF_SRGB : 0u) |
              (t.normalizedCoords ? CU_TRSF_NORMALIZED_COORDINATES : 0u) |
              (t.disableTrilinearOptimization ? CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION : 0u) |
              (t.seamlessCubemap ? CU_TRSF_SEAMLESS_CUBEMAP : 0u);
  out.maxAnisotropy = t.maxAnisotropy;
  out.mipmapFilterMode = static_cast<CUfilter_mode>(t.mipmapFilterMode);
  out.mipmapLevelBias = t.mipmapLevelBias;
  out.minMipmapLevelClamp = t.minMipmapLevelClamp;
  out.maxMipmapLevelClamp = t.maxMipmapLevelClamp;
  for (int channel = 0; channel < 4; ++channel) out.borderColor[channel] = t.borderColor[channel];
  return out;
}

cudaTextureDesc runtime_texture(const CUDA_TEXTURE_DESC& t) {
  cudaTextureDesc out{};
  for (int axis = 0; axis < 3; ++axis) out.addressMode[axis] = static_cast<cudaTextureAddressMode>(t.addressMode[axis]);
  out.filterMode = static_cast<cudaTextureFilterMode>(t.filterMode);
  out.readMode = t.flags & CU_TRSF_READ_AS_INTEGER ? cudaReadModeElementType : cudaReadModeNormalizedFloat;
  out.sRGB = (t.flags & CU_TRSF_SRGB) != 0;
  out.normalizedCoords = (t.flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
  out.disableTrilinearOptimization = (t.flags & CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION) != 0;
  out.seamlessCubemap = (t.flags & CU_TRSF_SEAMLESS_CUBEMAP) != 0;
  out.maxAnisotropy = t.maxAnisotropy;
  out.mipmapFilterMode = static_cast<cudaTextureFilterMode>(t.mipmapFilterMode);
  out.mipmapLevelBias = t.mipmapLevelBias;
  out.minMipmapLevelClamp = t.minMipmapLevelClamp;
  out.maxMipmapLevelClamp = t.maxMipmapLevelClamp;
  for (int channel = 0; channel < 4; ++channel) out.borderColor[channel] = t.borderColor[channel];
  return out;
}

// The two structures have the same members of the same types in the same order.
static_assert(static_cast<int>(cudaResViewFormatFloat4) == static_cast<int>(CU_RES_VIEW_FORMAT_FLOAT_4X32) &&
              cudaAddressModeBorder == static_cast<int>(CU_TR_ADDRESS_MODE_BORDER) &&
              static_cast<int>(cudaResourceTypePitch2D) == static_cast<int>(CU_RESOURCE_TYPE_PITCH2D));

CUDA_RESOURCE_VIEW_DESC driver_view(const cudaResourceViewDesc& v) {
  CUDA_RESOURCE_VIEW_DESC out{};
  out.format = static_cast<CUresourceViewFormat>(v.format);
  out.width = v.width;
  out.height = v.height;
  out.depth = v.depth;
  out.firstMipmapLevel = v.firstMipmapLevel;
  out.lastMipmapLevel = v.lastMipmapLevel;
  out.firstLayer = v.firstLayer;
  out.lastLayer = v.lastLayer;
  return out;
}

}  // namespace

cudaError_t cudaCreateTextureObject(cudaTextureObject_t* pTexObject, const struct cudaResourceDesc* pResDesc,
                                    const struct cudaTextureDesc* pTexDesc,
                                    const struct cudaResourceViewDesc* pResViewDesc) {
  if (!pTexObject || !pResDesc || !pTexDesc) return record(cudaErrorInvalidValue);
  CUDA_RESOURCE_DESC resource;
  if (const cudaError_t error = driver_resource(&resource, *pResDesc); error != cudaSuccess) return record(error);
  const CUDA_TEXTURE_DESC texture = driver_texture(*pTexDesc);
  const CUDA_RESOURCE_VIEW_DESC view = pResViewDesc ? driver_view(*pResViewDesc) : CUDA_RESOURCE_VIEW_DESC{};
  CUtexObject made = 0;
  const cudaError_t error = ask_context<&DriverTable::cuTexObjectCreate>(
      kDefaultStream, &made, static_cast<const CUDA_RESOURCE_DESC*>(&resource), &texture,
      pResViewDesc ? &view : nullptr);
  if (error == cudaSuccess) *pTexObject = made;
  return record(error);
}

cudaError_t cudaDestroyTextureObject(cudaTextureObject_t texObject) {
  if (!texObject) return record(enter_context());
  return call_context<&DriverTable::cuTexObjectDestroy>(kDefaultStream, texObject);
}

cudaError_t cudaGetTextureObjectResourceDesc(struct cudaResourceDesc* pResDesc, cudaTextureObject_t texObject) {
  if (!pResDesc) return record(cudaErrorInvalidValue);
  CUDA_RESOURCE_DESC resource{};
  const cudaError_t error = ask_context<&DriverTable::cuTexObjectGetResourceDesc>(kDefaultStream, &resource, texObject);
  if (error == cudaSuccess) *pResDesc = runtime_resource(resource);
  return record(error);
}

cudaError_t cudaGetTextureObjectTextureDesc(struct cudaTextureDesc* pTexDesc, cudaTextureObject_t texObject) {
  if (!pTexDesc) return record(cudaErrorInvalidValue);
  CUDA_TEXTURE_DESC texture{};
  const cudaError_t error = ask_context<&DriverTable::cuTexObjectGetTextureDesc>(kDefaultStream, &texture, texObject);
  if (error == cudaSuccess) *pTexDesc = runtime_texture(texture);
  return record(error);
}

cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* pSurfObject, const struct cudaResourceDesc* pResDesc) {
  if (!pSurfObject || !pResDesc) return record(cudaErrorInvalidValue);
  CUDA_RESOURCE_DESC resource;
  if (const cudaError_t error = driver_resource(&resource, *pResDesc); error != cudaSuccess) return record(error);
  CUsurfObject made = 0;
  const cudaError_t error = ask_context<&DriverTable::cuSurfObjectCreate>(
      kDefaultStream, &made, static_cast<const CUDA_RESOURCE_DESC*>(&resource));
  if (error == cudaSuccess) *pSurfObject = made;
  return record(error);
}

cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t surfObject) {
  if (!surfObject) return record(enter_context());
  return call_context<&DriverTable::cuSurfObjectDestroy>(kDefaultStream, surfObject);
}

cudaError_t cudaGetSurfaceObjectResourceDesc(struct cudaResourceDesc* pResDesc, cudaSurfaceObject_t surfObject) {
  if (!pResDesc) return record(cudaErrorInvalidValue);
  CUDA_RESOURCE_DESC resource{};
  const cudaError_t error =
      ask_context<&DriverTable::cuSurfObjectGetResourceDesc>(kDefaultStream, &resource, surfObject);
  if (error == cudaSuccess) *pResDesc = runtime_resource(resource);
  return record(error);
}
