// 2D and 3D copies of linear memory and arrays.
#define __CUDA_API_VERSION_INTERNAL
#include <limits>

#include "api/copy_request.h"
#include "contexts.h"
#include "texture/arrays.h"

using namespace cudasim;

namespace {

constexpr std::uint64_t kMaxPitch = std::numeric_limits<int>::max();  // CU_DEVICE_ATTRIBUTE_MAX_PITCH

// One side of a copy as all the parameter structures have it.
struct Side {
  CUmemorytype type;
  const void* host;
  CUdeviceptr device;
  std::uint64_t x, y, z;
  std::uint64_t pitch;   // 0: rows follow each other
  std::uint64_t height;  // of a slice in rows; 0: as the copy
  CUarray array = nullptr;
};

CUresult resolve_array(Driver& driver, const Side& side, const Shape& shape, Rows& rows) {
  const Array* const array = driver.arrays->find(side.array);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const std::uint64_t row =
      array->description.Width * element_bytes(array->description.Format, array->description.NumChannels);
  const auto inside = [](std::uint64_t at, std::uint64_t length, std::uint64_t whole) {
    return at <= whole && length <= whole - at;
  };
  // The slices of an array without rows are its layers.
  if (!inside(side.x, shape.width, row) || !inside(side.y, shape.height, array->rows()) ||
      !inside(side.z, shape.depth, array->slices()))
    return CUDA_ERROR_INVALID_VALUE;
  rows = array->place();
  rows.base = rows.row(side.y, side.z) + side.x;
  return CUDA_SUCCESS;
}

CUresult resolve(Driver& driver, const Side& side, const Shape& shape, bool limited_pitch, Rows& rows, Operand& kind) {
  std::uintptr_t base = 0;
  switch (side.type) {
    case CU_MEMORYTYPE_HOST:
      base = reinterpret_cast<std::uintptr_t>(side.host);
      kind = Operand::kHost;
      break;
    case CU_MEMORYTYPE_DEVICE:
      base = side.device;
      kind = Operand::kDevice;
      break;
    case CU_MEMORYTYPE_UNIFIED:
      base = side.device;
      kind = Operand::kAny;
      break;
    case CU_MEMORYTYPE_ARRAY:
      kind = Operand::kDevice;
      return resolve_array(driver, side, shape, rows);
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  std::uint64_t width = 0;
  if (__builtin_add_overflow(side.x, shape.width, &width)) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t pitch = side.pitch == 0 ? width : side.pitch;
  const std::uint64_t height = side.height == 0 ? shape.height : side.height;
  if (pitch < width || (limited_pitch && pitch > kMaxPitch)) return CUDA_ERROR_INVALID_VALUE;
  std::uint64_t slice = 0;
  std::uint64_t skipped_slices = 0;
  std::uint64_t skipped_rows = 0;
  if (__builtin_mul_overflow(pitch, height, &slice) || __builtin_mul_overflow(side.z, slice, &skipped_slices) ||
      __builtin_mul_overflow(side.y, pitch, &skipped_rows)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (shape.depth > 1 && height < shape.height) return CUDA_ERROR_INVALID_VALUE;
  if (base == 0) return CUDA_ERROR_INVALID_VALUE;
  for (const std::uint64_t skip : {skipped_slices, skipped_rows, side.x}) {
    if (__builtin_add_overflow(base, skip, &base)) return CUDA_ERROR_INVALID_VALUE;
  }
  rows = {base, pitch, slice};
  return CUDA_SUCCESS;
}

struct How {
  StreamMode mode;
  CUstream stream;
  bool synchronous;
  bool limited_pitch;
};

CUresult queue(Driver& driver, ContextId context, const char* symbol, const Shape& shape, const Side& to,
               const Side& from, const How& how) {
  CopyRequest request;
  request.symbol = symbol;
  request.shape = shape;
  request.stream = how.stream;
  request.mode = how.mode;
  request.synchronous = how.synchronous;
  const bool empty = shape.width == 0 || shape.height == 0 || shape.depth == 0;
  if (!empty) {
    if (const CUresult bad = resolve(driver, to, shape, how.limited_pitch, request.to, request.to_kind);
        bad != CUDA_SUCCESS)
      return bad;
    if (const CUresult bad = resolve(driver, from, shape, how.limited_pitch, request.from, request.from_kind);
        bad != CUDA_SUCCESS) {
      return bad;
    }
  }
  return queue_copy(driver, context, request);
}

// The structures of different versions have the same member names.
template <class Copy>
CUresult copy_2d(CallSite& site, const Copy* copy, const How& how) {
  return call(site, Needs::kContext, [&](Driver& driver, ContextId context) {
    if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const Shape shape{copy->WidthInBytes, copy->Height, 1};
    const Side from{
        copy->srcMemoryType, copy->srcHost, copy->srcDevice, copy->srcXInBytes, copy->srcY, 0, copy->srcPitch, 0,
        copy->srcArray};
    const Side to{
        copy->dstMemoryType, copy->dstHost, copy->dstDevice, copy->dstXInBytes, copy->dstY, 0, copy->dstPitch, 0,
        copy->dstArray};
    return queue(driver, context, site.symbol, shape, to, from, how);
  });
}

template <class Copy>
CUresult queue_3d(Driver& driver, ContextId context, const char* symbol, const Copy& copy, const How& how) {
  if (copy.srcLOD != 0 || copy.dstLOD != 0) return CUDA_ERROR_INVALID_VALUE;
  const Shape shape{copy.WidthInBytes, copy.Height, copy.Depth};
  const Side from{copy.srcMemoryType, copy.srcHost,  copy.srcDevice, copy.srcXInBytes, copy.srcY,
                  copy.srcZ,          copy.srcPitch, copy.srcHeight, copy.srcArray};
  const Side to{copy.dstMemoryType, copy.dstHost,  copy.dstDevice, copy.dstXInBytes, copy.dstY,
                copy.dstZ,          copy.dstPitch, copy.dstHeight, copy.dstArray};
  return queue(driver, context, symbol, shape, to, from, how);
}

template <class Copy>
CUresult copy_3d(CallSite& site, const Copy* copy, const How& how) {
  return call(site, Needs::kContext, [&](Driver& driver, ContextId context) {
    return copy == nullptr ? CUDA_ERROR_INVALID_VALUE : queue_3d(driver, context, site.symbol, *copy, how);
  });
}

CUresult copy_3d_peer(CallSite& site, const CUDA_MEMCPY3D_PEER* copy, const How& how) {
  return call(site, Needs::kContext, [&](Driver& driver, ContextId context) {
    if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (const CUcontext handle : {copy->srcContext, copy->dstContext}) {
      const Context* peer = driver.contexts->find(handle);
      if (peer == nullptr || !peer->alive) return CUDA_ERROR_INVALID_CONTEXT;
    }
    return queue_3d(driver, context, site.symbol, *copy, how);
  });
}

constexpr How kSync{StreamMode::kLegacy, nullptr, true, true};
constexpr How kSyncPerThread{StreamMode::kPerThread, nullptr, true, true};
constexpr How kSyncUnaligned{StreamMode::kLegacy, nullptr, true, false};
constexpr How kSyncUnalignedPerThread{StreamMode::kPerThread, nullptr, true, false};
How async(StreamMode mode, CUstream stream) { return {mode, stream, false, true}; }

}  // namespace

CUresult cudasim::request_of(Driver& driver, const CUDA_MEMCPY3D& copy, CopyRequest& request) {
  if (copy.srcLOD != 0 || copy.dstLOD != 0) return CUDA_ERROR_INVALID_VALUE;
  request.shape = {copy.WidthInBytes, copy.Height, copy.Depth};
  const Side from{copy.srcMemoryType, copy.srcHost,  copy.srcDevice, copy.srcXInBytes, copy.srcY,
                  copy.srcZ,          copy.srcPitch, copy.srcHeight, copy.srcArray};
  const Side to{copy.dstMemoryType, copy.dstHost,  copy.dstDevice, copy.dstXInBytes, copy.dstY,
                copy.dstZ,          copy.dstPitch, copy.dstHeight, copy.dstArray};
  if (request.shape.bytes() == 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult bad = resolve(driver, to, request.shape, true, request.to, request.to_kind); bad != CUDA_SUCCESS)
    return bad;
  return resolve(driver, from, request.shape, true, request.from, request.from_kind);
}

CUDASIM_API cuMemcpy2D_v2(const CUDA_MEMCPY2D* copy) {
  static CallSite site{"cuMemcpy2D_v2"};
  return copy_2d(site, copy, kSync);
}
CUDASIM_API cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D* copy) {
  static CallSite site{"cuMemcpy2D_v2_ptds"};
  return copy_2d(site, copy, kSyncPerThread);
}
CUDASIM_API cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* copy) {
  static CallSite site{"cuMemcpy2DUnaligned_v2"};
  return copy_2d(site, copy, kSyncUnaligned);
}
CUDASIM_API cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D* copy) {
  static CallSite site{"cuMemcpy2DUnaligned_v2_ptds"};
  return copy_2d(site, copy, kSyncUnalignedPerThread);
}
CUDASIM_API cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream) {
  static CallSite site{"cuMemcpy2DAsync_v2"};
  return copy_2d(site, copy, async(StreamMode::kLegacy, stream));
}
CUDASIM_API cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D* copy, CUstream stream) {
  static CallSite site{"cuMemcpy2DAsync_v2_ptsz"};
  return copy_2d(site, copy, async(StreamMode::kPerThread, stream));
}
CUDASIM_API cuMemcpy2D(const CUDA_MEMCPY2D_v1* copy) {
  static CallSite site{"cuMemcpy2D"};
  return copy_2d(site, copy, kSync);
}
CUDASIM_API cuMemcpy2DUnaligned(const CUDA_MEMCPY2D_v1* copy) {
  static CallSite site{"cuMemcpy2DUnaligned"};
  return copy_2d(site, copy, kSyncUnaligned);
}
CUDASIM_API cuMemcpy2DAsync(const CUDA_MEMCPY2D_v1* copy, CUstream stream) {
  static CallSite site{"cuMemcpy2DAsync"};
  return copy_2d(site, copy, async(StreamMode::kLegacy, stream));
}

CUDASIM_API cuMemcpy3D_v2(const CUDA_MEMCPY3D* copy) {
  static CallSite site{"cuMemcpy3D_v2"};
  return copy_3d(site, copy, kSync);
}
CUDASIM_API cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D* copy) {
  static CallSite site{"cuMemcpy3D_v2_ptds"};
  return copy_3d(site, copy, kSyncPerThread);
}
CUDASIM_API cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* copy, CUstream stream) {
  static CallSite site{"cuMemcpy3DAsync_v2"};
  return copy_3d(site, copy, async(StreamMode::kLegacy, stream));
}
CUDASIM_API cuMemcpy3DAsync_v2_ptsz(const CUDA_MEMCPY3D* copy, CUstream stream) {
  static CallSite site{"cuMemcpy3DAsync_v2_ptsz"};
  return copy_3d(site, copy, async(StreamMode::kPerThread, stream));
}
CUDASIM_API cuMemcpy3D(const CUDA_MEMCPY3D_v1* copy) {
  static CallSite site{"cuMemcpy3D"};
  return copy_3d(site, copy, kSync);
}
CUDASIM_API cuMemcpy3DAsync(const CUDA_MEMCPY3D_v1* copy, CUstream stream) {
  static CallSite site{"cuMemcpy3DAsync"};
  return copy_3d(site, copy, async(StreamMode::kLegacy, stream));
}

CUDASIM_API cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* copy) {
  static CallSite site{"cuMemcpy3DPeer"};
  return copy_3d_peer(site, copy, kSync);
}
CUDASIM_API cuMemcpy3DPeer_ptds(const CUDA_MEMCPY3D_PEER* copy) {
  static CallSite site{"cuMemcpy3DPeer_ptds"};
  return copy_3d_peer(site, copy, kSyncPerThread);
}
CUDASIM_API cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
  static CallSite site{"cuMemcpy3DPeerAsync"};
  return copy_3d_peer(site, copy, async(StreamMode::kLegacy, stream));
}
CUDASIM_API cuMemcpy3DPeerAsync_ptsz(const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
  static CallSite site{"cuMemcpy3DPeerAsync_ptsz"};
  return copy_3d_peer(site, copy, async(StreamMode::kPerThread, stream));
}
