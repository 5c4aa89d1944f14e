// Events: cuEvent*. cuStreamWaitEvent is with the streams.
#define __CUDA_API_VERSION_INTERNAL
#include <chrono>
#include <functional>

#include "api/call.h"
#include "device/engine_impl.h"
#include "graph/graphs.h"
#include "pools.h"

namespace cudasim {
namespace {

CUresult on_event(CallSite& site, CUevent handle, const std::function<CUresult(Engine::Impl&, Event&)>& body) {
  return call(site, Needs::kContext, [&](Driver& driver, ContextId) {
    Engine::Impl& engine = driver.engine.impl();
    const EventPtr event = engine.find_event(handle);
    return event ? body(engine, *event) : CUDA_ERROR_INVALID_HANDLE;
  });
}

CUresult destroy(CallSite& site, CUevent event) {
  return call(site, Needs::kContext,
              [&](Driver& driver, ContextId) { return driver.engine.impl().destroy_event(event); });
}

CUresult record(CallSite& site, CUevent handle, CUstream stream, unsigned flags, StreamMode mode) {
  return call(site, Needs::kContext, [&](Driver& driver, ContextId context) {
    const EventPtr event = driver.engine.impl().find_event(handle);
    Stream* const found = driver.engine.find_stream(context, stream, mode);
    if (!event || found == nullptr || driver.engine.context_of(*found) != event->context)
      return CUDA_ERROR_INVALID_HANDLE;
    Captures& captures = driver.graphs->captures;
    if (const CUresult bad = captures.use(*found); bad != CUDA_SUCCESS) return bad;
    // CU_EVENT_RECORD_EXTERNAL means something in captures only: a node that records the event whenever it runs.
    if (flags != CU_EVENT_RECORD_DEFAULT && (flags != CU_EVENT_RECORD_EXTERNAL || found->capture == nullptr))
      return CUDA_ERROR_INVALID_VALUE;
    if (flags == CU_EVENT_RECORD_EXTERNAL) {
      captures.add(*found, RecordNode{event});
    } else if (found->capture != nullptr) {
      captures.record(*event, *found);
    } else {
      driver.engine.impl().record(*event, *found);
    }
    return CUDA_SUCCESS;
  });
}

CUresult elapsed(CallSite& site, float* milliseconds, CUevent start, CUevent end) {
  return call(site, Needs::kContext, [&](Driver& driver, ContextId) {
    if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Engine::Impl& engine = driver.engine.impl();
    const EventPtr from = engine.find_event(start), to = engine.find_event(end);
    if (!from || !to) return CUDA_ERROR_INVALID_HANDLE;
    if (from->captured || to->captured) return CUDA_ERROR_CAPTURED_EVENT;
    Duration between{0};
    const CUresult result = engine.elapsed(*from, *to, &between);
    if (result == CUDA_SUCCESS) *milliseconds = std::chrono::duration<float, std::milli>(between).count();
    return result;
  });
}

}  // namespace
}  // namespace cudasim

using namespace cudasim;

CUDASIM_API cuEventCreate(CUevent* event, unsigned flags) {
  static CallSite site{"cuEventCreate"};
  return call(site, Needs::kContext, [&](Driver& driver, ContextId context) {
    return driver.engine.impl().create_event(context, flags, event);
  });
}
CUDASIM_API cuEventDestroy(CUevent event) {
  static CallSite site{"cuEventDestroy"};
  return destroy(site, event);
}
CUDASIM_API cuEventDestroy_v2(CUevent event) {
  static CallSite site{"cuEventDestroy_v2"};
  return destroy(site, event);
}
CUDASIM_API cuEventRecord(CUevent event, CUstream stream) {
  static CallSite site{"cuEventRecord"};
  return record(site, event, stream, CU_EVENT_RECORD_DEFAULT, StreamMode::kLegacy);
}
CUDASIM_API cuEventRecord_ptsz(CUevent event, CUstream stream) {
  static CallSite site{"cuEventRecord_ptsz"};
  return record(site, event, stream, CU_EVENT_RECORD_DEFAULT, StreamMode::kPerThread);
}
CUDASIM_API cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
  static CallSite site{"cuEventRecordWithFlags"};
  return record(site, event, stream, flags, StreamMode::kLegacy);
}
CUDASIM_API cuEventRecordWithFlags_ptsz(CUevent event, CUstream stream, unsigned flags) {
  static CallSite site{"cuEventRecordWithFlags_ptsz"};
  return record(site, event, stream, flags, StreamMode::kPerThread);
}
CUDASIM_API cuEventQuery(CUevent event) {
  static CallSite site{"cuEventQuery"};
  return on_event(site, event, [](Engine::Impl& engine, Event& found) {
    const CUresult captured = Captures::wait_for(found);
    return captured != CUDA_SUCCESS ? captured : engine.query(found);
  });
}
CUDASIM_API cuEventSynchronize(CUevent event) {
  static CallSite site{"cuEventSynchronize"};
  return call(site, Needs::kContext, [&](Driver& driver, ContextId) {
    const EventPtr found = driver.engine.impl().find_event(event);
    if (!found) return CUDA_ERROR_INVALID_HANDLE;
    if (const CUresult captured = Captures::wait_for(*found); captured != CUDA_SUCCESS) return captured;
    const CUresult result = driver.engine.impl().synchronize(*found);
    driver.pools->host_synchronized();
    return result;
  });
}
CUDASIM_API cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  static CallSite site{"cuEventElapsedTime"};
  return elapsed(site, milliseconds, start, end);
}
CUDASIM_API cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
  static CallSite site{"cuEventElapsedTime_v2"};
  return elapsed(site, milliseconds, start, end);
}
