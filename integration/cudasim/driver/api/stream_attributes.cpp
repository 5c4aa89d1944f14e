// cuStream{Set,Get,Copy}Attribute[s]: kept and told. Windows of persisting lines and domains of memory order say how a
// launch's accesses go through caches that this device does not model.
#define __CUDA_API_VERSION_INTERNAL
#include <algorithm>

#include "api/call.h"
#include "device/engine.h"
#include "device/stream.h"
#include "device_attributes.h"

namespace cudasim {
namespace {

// Those of launches alone are refused.
constexpr CUstreamAttrID kOfStreams[] = {CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
                                         CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, CU_LAUNCH_ATTRIBUTE_PRIORITY,
                                         CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN};

bool is_of_streams(CUstreamAttrID which) { return std::ranges::find(kOfStreams, which) != std::end(kOfStreams); }

CUstreamAttrValue first_value(const Stream& stream, CUstreamAttrID which) {
  CUstreamAttrValue value{};
  if (which == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY) value.syncPolicy = CU_SYNC_POLICY_AUTO;
  if (which == CU_LAUNCH_ATTRIBUTE_PRIORITY) value.priority = stream.priority;
  if (which == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP) value.memSyncDomainMap = {.default_ = 0, .remote = 1};
  return value;
}

bool is_valid(const Driver& driver, CUstreamAttrID which, const CUstreamAttrValue& value) {
  if (which == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW) {
    const CUaccessPolicyWindow& window = value.accessPolicyWindow;
    const int most =
        device_attribute(driver.config.device, CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE).value_or(0);
    return window.num_bytes <= static_cast<std::size_t>(most) && window.hitRatio >= 0 && window.hitRatio <= 1;
  }
  if (which == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY)
    return value.syncPolicy >= CU_SYNC_POLICY_AUTO && value.syncPolicy <= CU_SYNC_POLICY_BLOCKING_SYNC;
  return true;
}

CUresult set(CallSite& site, CUstream handle, CUstreamAttrID which, const CUstreamAttrValue* value, StreamMode mode) {
  return call(site, Needs::kContext, [&](Driver& driver, ContextId context) {
    Stream* const stream = driver.engine.find_stream(context, handle, mode);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (value == nullptr || !is_of_streams(which) || !is_valid(driver, which, *value)) return CUDA_ERROR_INVALID_VALUE;
    if (which == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
      stream->priority = std::clamp(value->priority, kGreatestPriority, kLeastPriority);
    } else {
      stream->attributes[which] = *value;
    }
    return CUDA_SUCCESS;
  });
}

CUresult get(CallSite& site, CUstream handle, CUstreamAttrID which, CUstreamAttrValue* out, StreamMode mode) {
  return call(site, Needs::kContext, [&](Driver& driver, ContextId context) {
    const Stream* const stream = driver.engine.find_stream(context, handle, mode);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (out == nullptr || !is_of_streams(which)) return CUDA_ERROR_INVALID_VALUE;
    const auto found = stream->attributes.find(which);
    *out = found == stream->attributes.end() ? first_value(*stream, which) : found->second;
    return CUDA_SUCCESS;
  });
}

CUresult copy(CallSite& site, CUstream to, CUstream from, StreamMode mode) {
  return call(site, Needs::kContext, [&](Driver& driver, ContextId context) {
    Stream* const target = driver.engine.find_stream(context, to, mode);
    const Stream* const source = driver.engine.find_stream(context, from, mode);
    if (target == nullptr || source == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    target->attributes = source->attributes;
    target->priority = source->priority;
    return CUDA_SUCCESS;
  });
}

}  // namespace
}  // namespace cudasim

using namespace cudasim;

CUDASIM_API cuStreamSetAttribute(CUstream stream, CUstreamAttrID which, const CUstreamAttrValue* value) {
  static CallSite site{"cuStreamSetAttribute"};
  return set(site, stream, which, value, StreamMode::kLegacy);
}
CUDASIM_API cuStreamSetAttribute_ptsz(CUstream stream, CUstreamAttrID which, const CUstreamAttrValue* value) {
  static CallSite site{"cuStreamSetAttribute_ptsz"};
  return set(site, stream, which, value, StreamMode::kPerThread);
}
CUDASIM_API cuStreamGetAttribute(CUstream stream, CUstreamAttrID which, CUstreamAttrValue* out) {
  static CallSite site{"cuStreamGetAttribute"};
  return get(site, stream, which, out, StreamMode::kLegacy);
}
CUDASIM_API cuStreamGetAttribute_ptsz(CUstream stream, CUstreamAttrID which, CUstreamAttrValue* out) {
  static CallSite site{"cuStreamGetAttribute_ptsz"};
  return get(site, stream, which, out, StreamMode::kPerThread);
}
CUDASIM_API cuStreamCopyAttributes(CUstream to, CUstream from) {
  static CallSite site{"cuStreamCopyAttributes"};
  return copy(site, to, from, StreamMode::kLegacy);
}
CUDASIM_API cuStreamCopyAttributes_ptsz(CUstream to, CUstream from) {
  static CallSite site{"cuStreamCopyAttributes_ptsz"};
  return copy(site, to, from, StreamMode::kPerThread);
}
