// Streams: cuStream*, host functions. Captures are in capture.cpp.
#define __CUDA_API_VERSION_INTERNAL
#include <algorithm>
#include <functional>
#include <utility>

#include "api/call.h"
#include "contexts.h"
#include "device/engine_impl.h"
#include "graph/graphs.h"
#include "pools.h"

namespace cudasim {
namespace {

// What the device's callback thread takes to wake up and return; the program's own function is on no clock.
constexpr Duration kHostFunctionTime{10'000};

using StreamBody = std::function<CUresult(Driver&, Stream&)>;

CUresult on_stream(CallSite& site, CUstream handle, StreamMode mode, const StreamBody& body) {
  return call(site, Needs::kContext, [&](Driver& driver, ContextId context) {
    Stream* const stream = driver.engine.find_stream(context, handle, mode);
    return stream == nullptr ? CUDA_ERROR_INVALID_HANDLE : body(driver, *stream);
  });
}

CUresult create(CallSite& site, CUstream* out, unsigned flags, int priority) {
  return call(site, Needs::kContext, [&](Driver& driver, ContextId context) {
    return driver.engine.create_stream(context, flags, std::clamp(priority, kGreatestPriority, kLeastPriority), out);
  });
}

CUresult destroy(CallSite& site, CUstream stream) {
  return call(site, Needs::kContext, [&](Driver& driver, ContextId) {
    const auto found = driver.engine.impl().streams.find(stream);
    if (found != driver.engine.impl().streams.end()) driver.graphs->captures.stream_gone(*found->second);
    return driver.engine.destroy_stream(stream);
  });
}

CUresult synchronize(CallSite& site, CUstream stream, StreamMode mode) {
  return on_stream(site, stream, mode, [](Driver& driver, Stream& found) {
    if (const CUresult bad = driver.graphs->captures.wait_for(found); bad != CUDA_SUCCESS) return bad;
    const CUresult result = driver.engine.wait(found);
    driver.pools->host_synchronized();
    return result;
  });
}

CUresult query(CallSite& site, CUstream stream, StreamMode mode) {
  return on_stream(site, stream, mode, [](Driver& driver, Stream& found) {
    const CUresult bad = driver.graphs->captures.wait_for(found);
    return bad != CUDA_SUCCESS ? bad : driver.engine.query(found);
  });
}

CUresult wait_event(CallSite& site, CUstream stream, CUevent event, unsigned flags, StreamMode mode) {
  return on_stream(site, stream, mode, [&](Driver& driver, Stream& found) {
    const EventPtr known = driver.engine.impl().find_event(event);
    if (!known) return CUDA_ERROR_INVALID_HANDLE;
    Captures& captures = driver.graphs->captures;
    if (const CUresult bad = captures.use(found); bad != CUDA_SUCCESS) return bad;
    // CU_EVENT_WAIT_EXTERNAL means something in captures only: a node that waits whenever it runs.
    if (flags != CU_EVENT_WAIT_DEFAULT && (flags != CU_EVENT_WAIT_EXTERNAL || found.capture == nullptr))
      return CUDA_ERROR_INVALID_VALUE;
    if (flags == CU_EVENT_WAIT_EXTERNAL) {
      captures.add(found, WaitNode{known});
      return CUDA_SUCCESS;
    }
    if (found.capture != nullptr || known->captured) return captures.wait(found, *known);
    driver.engine.impl().wait_event(found, *known);
    return CUDA_SUCCESS;
  });
}

template <typename T>
CUresult get(CallSite& site, CUstream stream, StreamMode mode, T* out,
             const std::function<T(Driver&, const Stream&)>& value) {
  return on_stream(site, stream, mode, [&](Driver& driver, Stream& found) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = value(driver, found);
    return CUDA_SUCCESS;
  });
}

CUresult get_flags(CallSite& site, CUstream stream, unsigned* out, StreamMode mode) {
  return get<unsigned>(site, stream, mode, out, [](Driver&, const Stream& found) { return found.flags; });
}

CUresult get_priority(CallSite& site, CUstream stream, int* out, StreamMode mode) {
  return get<int>(site, stream, mode, out, [](Driver&, const Stream& found) { return found.priority; });
}

CUresult get_id(CallSite& site, CUstream stream, unsigned long long* out, StreamMode mode) {
  return get<unsigned long long>(site, stream, mode, out, [](Driver&, const Stream& found) { return found.id; });
}

CUresult get_device(CallSite& site, CUstream stream, CUdevice* out, StreamMode mode) {
  return get<CUdevice>(site, stream, mode, out, [](Driver&, const Stream&) { return CUdevice{0}; });
}

CUcontext context_handle(Driver& driver, const Stream& stream) {
  Context* const context = driver.contexts->find(stream.context);
  return context == nullptr ? nullptr : Contexts::handle(*context);
}

CUresult get_context(CallSite& site, CUstream stream, CUcontext* out, StreamMode mode) {
  return get<CUcontext>(site, stream, mode, out, context_handle);
}

// There are no green contexts here: what they would be in is the plain context.
CUresult get_context_v2(CallSite& site, CUstream stream, CUcontext* out, CUgreenCtx* green, StreamMode mode) {
  return on_stream(site, stream, mode, [&](Driver& driver, Stream& found) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = context_handle(driver, found);
    if (green != nullptr) *green = nullptr;
    return CUDA_SUCCESS;
  });
}

CUresult launch_host_function(CallSite& site, CUstream stream, CUhostFn function, void* user_data, StreamMode mode) {
  return on_stream(site, stream, mode, [&](Driver& driver, Stream& found) {
    if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Captures& captures = driver.graphs->captures;
    if (const CUresult bad = captures.use(found); bad != CUDA_SUCCESS) return bad;
    if (found.capture != nullptr) {
      captures.add(found, HostNode{function, user_data});
      return CUDA_SUCCESS;
    }
    Work work;
    work.name = "host function";
    work.resource = Resource::kHostFunction;
    work.duration = kHostFunctionTime;
    work.host_function = [function, user_data] { function(user_data); };
    driver.engine.enqueue(found, std::move(work));
    return CUDA_SUCCESS;
  });
}

CUresult add_callback(CallSite& site, CUstream stream, CUstreamCallback callback, void* user_data, unsigned flags,
                      StreamMode mode) {
  return on_stream(site, stream, mode, [&](Driver& driver, Stream& found) {
    if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult bad = driver.graphs->captures.wait_for(found); bad != CUDA_SUCCESS) return bad;
    Work work;
    work.name = "stream callback";
    work.resource = Resource::kHostFunction;
    work.duration = kHostFunctionTime;
    work.runs_after_error = true;
    work.host_function = [&driver, context = found.context, stream, callback, user_data] {
      CUresult status;
      {
        const std::lock_guard lock(driver.mutex);
        status = driver.engine.sticky_error(context);
      }
      callback(stream, status, user_data);
    };
    driver.engine.enqueue(found, std::move(work));
    return CUDA_SUCCESS;
  });
}

constexpr StreamMode kLegacy = StreamMode::kLegacy, kPerThread = StreamMode::kPerThread;

}  // namespace
}  // namespace cudasim

using namespace cudasim;

CUDASIM_API cuStreamCreate(CUstream* stream, unsigned flags) {
  static CallSite site{"cuStreamCreate"};
  return create(site, stream, flags, kLeastPriority);
}
CUDASIM_API cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  static CallSite site{"cuStreamCreateWithPriority"};
  return create(site, stream, flags, priority);
}
CUDASIM_API cuStreamDestroy(CUstream stream) {
  static CallSite site{"cuStreamDestroy"};
  return destroy(site, stream);
}
CUDASIM_API cuStreamDestroy_v2(CUstream stream) {
  static CallSite site{"cuStreamDestroy_v2"};
  return destroy(site, stream);
}

CUDASIM_API cuStreamSynchronize(CUstream stream) {
  static CallSite site{"cuStreamSynchronize"};
  return synchronize(site, stream, kLegacy);
}
CUDASIM_API cuStreamSynchronize_ptsz(CUstream stream) {
  static CallSite site{"cuStreamSynchronize_ptsz"};
  return synchronize(site, stream, kPerThread);
}
CUDASIM_API cuStreamQuery(CUstream stream) {
  static CallSite site{"cuStreamQuery"};
  return query(site, stream, kLegacy);
}
CUDASIM_API cuStreamQuery_ptsz(CUstream stream) {
  static CallSite site{"cuStreamQuery_ptsz"};
  return query(site, stream, kPerThread);
}
CUDASIM_API cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  static CallSite site{"cuStreamWaitEvent"};
  return wait_event(site, stream, event, flags, kLegacy);
}
CUDASIM_API cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned flags) {
  static CallSite site{"cuStreamWaitEvent_ptsz"};
  return wait_event(site, stream, event, flags, kPerThread);
}

CUDASIM_API cuStreamGetFlags(CUstream stream, unsigned* flags) {
  static CallSite site{"cuStreamGetFlags"};
  return get_flags(site, stream, flags, kLegacy);
}
CUDASIM_API cuStreamGetFlags_ptsz(CUstream stream, unsigned* flags) {
  static CallSite site{"cuStreamGetFlags_ptsz"};
  return get_flags(site, stream, flags, kPerThread);
}
CUDASIM_API cuStreamGetPriority(CUstream stream, int* priority) {
  static CallSite site{"cuStreamGetPriority"};
  return get_priority(site, stream, priority, kLegacy);
}
CUDASIM_API cuStreamGetPriority_ptsz(CUstream stream, int* priority) {
  static CallSite site{"cuStreamGetPriority_ptsz"};
  return get_priority(site, stream, priority, kPerThread);
}
CUDASIM_API cuStreamGetId(CUstream stream, unsigned long long* id) {
  static CallSite site{"cuStreamGetId"};
  return get_id(site, stream, id, kLegacy);
}
CUDASIM_API cuStreamGetId_ptsz(CUstream stream, unsigned long long* id) {
  static CallSite site{"cuStreamGetId_ptsz"};
  return get_id(site, stream, id, kPerThread);
}
CUDASIM_API cuStreamGetDevice(CUstream stream, CUdevice* device) {
  static CallSite site{"cuStreamGetDevice"};
  return get_device(site, stream, device, kLegacy);
}
CUDASIM_API cuStreamGetDevice_ptsz(CUstream stream, CUdevice* device) {
  static CallSite site{"cuStreamGetDevice_ptsz"};
  return get_device(site, stream, device, kPerThread);
}
CUDASIM_API cuStreamGetCtx(CUstream stream, CUcontext* context) {
  static CallSite site{"cuStreamGetCtx"};
  return get_context(site, stream, context, kLegacy);
}
CUDASIM_API cuStreamGetCtx_ptsz(CUstream stream, CUcontext* context) {
  static CallSite site{"cuStreamGetCtx_ptsz"};
  return get_context(site, stream, context, kPerThread);
}
CUDASIM_API cuStreamGetCtx_v2(CUstream stream, CUcontext* context, CUgreenCtx* green) {
  static CallSite site{"cuStreamGetCtx_v2"};
  return get_context_v2(site, stream, context, green, kLegacy);
}
CUDASIM_API cuStreamGetCtx_v2_ptsz(CUstream stream, CUcontext* context, CUgreenCtx* green) {
  static CallSite site{"cuStreamGetCtx_v2_ptsz"};
  return get_context_v2(site, stream, context, green, kPerThread);
}

CUDASIM_API cuLaunchHostFunc(CUstream stream, CUhostFn function, void* user_data) {
  static CallSite site{"cuLaunchHostFunc"};
  return launch_host_function(site, stream, function, user_data, kLegacy);
}
CUDASIM_API cuLaunchHostFunc_ptsz(CUstream stream, CUhostFn function, void* user_data) {
  static CallSite site{"cuLaunchHostFunc_ptsz"};
  return launch_host_function(site, stream, function, user_data, kPerThread);
}
CUDASIM_API cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void* user_data, unsigned flags) {
  static CallSite site{"cuStreamAddCallback"};
  return add_callback(site, stream, callback, user_data, flags, kLegacy);
}
CUDASIM_API cuStreamAddCallback_ptsz(CUstream stream, CUstreamCallback callback, void* user_data, unsigned flags) {
  static CallSite site{"cuStreamAddCallback_ptsz"};
  return add_callback(site, stream, callback, user_data, flags, kPerThread);
}
