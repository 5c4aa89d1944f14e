// Primary contexts, created contexts, the current one of each thread, and what one may ask of it.
#define __CUDA_API_VERSION_INTERNAL
#include "api/call.h"
#include "contexts.h"
#include "device_attributes.h"
#include "graph/graphs.h"
#include "pools.h"

namespace cudasim {
namespace {

constexpr unsigned kSchedules = CU_CTX_SCHED_SPIN | CU_CTX_SCHED_YIELD | CU_CTX_SCHED_BLOCKING_SYNC;

// At most one way of waiting, and no unknown bit.
bool are_context_flags(unsigned flags) {
  const unsigned schedule = flags & kSchedules;
  return (flags & ~unsigned(CU_CTX_FLAGS_MASK)) == 0 && (schedule & (schedule - 1)) == 0;
}

using DriverBody = std::function<CUresult(Driver&)>;
using ContextBody = std::function<CUresult(Driver&, Context&)>;

CUresult with_device(CallSite& site, CUdevice device, const DriverBody& body) {
  return call(site, Needs::kInit,
              [&](Driver& driver, ContextId) { return device == 0 ? body(driver) : CUDA_ERROR_INVALID_DEVICE; });
}

CUresult with_current(CallSite& site, const ContextBody& body) {
  return call(site, Needs::kContext,
              [&](Driver& driver, ContextId) { return body(driver, *driver.contexts->current()); });
}

// Null means the current one where the entry point says so. Works on a context with a sticky error: it can still be
// left and destroyed.
CUresult with_handle(CallSite& site, CUcontext handle, bool null_is_current, const ContextBody& body) {
  return call(site, Needs::kInit, [&](Driver& driver, ContextId) {
    Context* const context =
        handle == nullptr && null_is_current ? driver.contexts->current() : driver.contexts->find(handle);
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    return context->alive ? body(driver, *context) : CUDA_ERROR_CONTEXT_IS_DESTROYED;
  });
}

CUresult release_primary(CallSite& site, CUdevice device) {
  return with_device(site, device, [](Driver& driver) {
    return driver.contexts->release_primary() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
  });
}

CUresult reset_primary(CallSite& site, CUdevice device) {
  return with_device(site, device, [](Driver& driver) {
    driver.contexts->reset_primary();
    return CUDA_SUCCESS;
  });
}

CUresult set_primary_flags(CallSite& site, CUdevice device, unsigned flags) {
  return with_device(site, device, [&](Driver& driver) {
    if (!are_context_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
    driver.contexts->primary().flags = flags;
    return CUDA_SUCCESS;
  });
}

CUresult create(CallSite& site, CUcontext* out, unsigned flags, CUdevice device, unsigned api_version,
                bool extras_supported = true) {
  return with_device(site, device, [&](Driver& driver) {
    if (out == nullptr || !are_context_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
    if (!extras_supported) return CUDA_ERROR_NOT_SUPPORTED;
    Context& context = driver.contexts->create(flags, api_version);
    driver.contexts->push(context);
    *out = Contexts::handle(context);
    return CUDA_SUCCESS;
  });
}

CUresult destroy(CallSite& site, CUcontext handle) {
  return with_handle(site, handle, false, [](Driver& driver, Context& context) {
    if (context.primary) return CUDA_ERROR_INVALID_CONTEXT;  // belongs to its retainers
    if (driver.contexts->current() == &context) driver.contexts->pop();
    driver.contexts->destroy(context);
    return CUDA_SUCCESS;
  });
}

CUresult push(CallSite& site, CUcontext handle) {
  return with_handle(site, handle, false, [](Driver& driver, Context& context) {
    driver.contexts->push(context);
    return CUDA_SUCCESS;
  });
}

CUresult pop(CallSite& site, CUcontext* out) {
  return call(site, Needs::kInit, [&](Driver& driver, ContextId) {
    Context* const context = driver.contexts->pop();
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (out != nullptr) *out = Contexts::handle(*context);
    return CUDA_SUCCESS;
  });
}

CUresult synchronize(Driver& driver, Context& context) {
  if (const CUresult bad = driver.graphs->captures.wait_for_context(context.id); bad != CUDA_SUCCESS) return bad;
  const CUresult result = driver.engine.wait_context(context.id);
  driver.pools->host_synchronized();
  return result;
}

bool is_limit(CUlimit limit) { return limit >= 0 && limit < CU_LIMIT_MAX; }

// Limits of features that this device lacks: nested launches that wait went away with compute capability 9.0,
// persisting lines came with 8.0.
bool has_limit(const Driver& driver, CUlimit limit) {
  switch (limit) {
    case CU_LIMIT_STACK_SIZE:
    case CU_LIMIT_PRINTF_FIFO_SIZE:
    case CU_LIMIT_MALLOC_HEAP_SIZE:
    case CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT:
    case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
      return true;
    case CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH:
      return driver.config.device.compute_major < 9;
    case CU_LIMIT_PERSISTING_L2_CACHE_SIZE:
      return device_attribute(driver.config.device, CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE).value_or(0) > 0;
    default:
      return false;
  }
}

}  // namespace
}  // namespace cudasim

using namespace cudasim;

// --- the primary context
// ---------------------------------------------------------------------------------------------------------

CUDASIM_API cuDevicePrimaryCtxRetain(CUcontext* out, CUdevice device) {
  static CallSite site{"cuDevicePrimaryCtxRetain"};
  return with_device(site, device, [&](Driver& driver) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    driver.contexts->retain_primary();
    *out = Contexts::handle(driver.contexts->primary());
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuDevicePrimaryCtxRelease(CUdevice device) {
  static CallSite site{"cuDevicePrimaryCtxRelease"};
  return release_primary(site, device);
}

CUDASIM_API cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  static CallSite site{"cuDevicePrimaryCtxRelease_v2"};
  return release_primary(site, device);
}

CUDASIM_API cuDevicePrimaryCtxReset(CUdevice device) {
  static CallSite site{"cuDevicePrimaryCtxReset"};
  return reset_primary(site, device);
}

CUDASIM_API cuDevicePrimaryCtxReset_v2(CUdevice device) {
  static CallSite site{"cuDevicePrimaryCtxReset_v2"};
  return reset_primary(site, device);
}

CUDASIM_API cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned int flags) {
  static CallSite site{"cuDevicePrimaryCtxSetFlags"};
  return set_primary_flags(site, device, flags);
}

CUDASIM_API cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags) {
  static CallSite site{"cuDevicePrimaryCtxSetFlags_v2"};
  return set_primary_flags(site, device, flags);
}

CUDASIM_API cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* active) {
  static CallSite site{"cuDevicePrimaryCtxGetState"};
  return with_device(site, device, [&](Driver& driver) {
    if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = driver.contexts->primary().flags;
    *active = driver.contexts->primary().alive ? 1 : 0;
    return CUDA_SUCCESS;
  });
}

// --- created contexts
// --------------------------------------------------------------------------------------------------------------

CUDASIM_API cuCtxCreate(CUcontext* out, unsigned int flags, CUdevice device) {
  static CallSite site{"cuCtxCreate"};
  return create(site, out, flags, device, 3010);
}

CUDASIM_API cuCtxCreate_v2(CUcontext* out, unsigned int flags, CUdevice device) {
  static CallSite site{"cuCtxCreate_v2"};
  return create(site, out, flags, device, 3020);
}

CUDASIM_API cuCtxCreate_v3(CUcontext* out, CUexecAffinityParam*, int affinities, unsigned int flags, CUdevice device) {
  static CallSite site{"cuCtxCreate_v3"};
  return create(site, out, flags, device, 3020, affinities == 0);
}

CUDASIM_API cuCtxCreate_v4(CUcontext* out, CUctxCreateParams* extras, unsigned int flags, CUdevice device) {
  static CallSite site{"cuCtxCreate_v4"};
  return create(site, out, flags, device, 3020,
                extras == nullptr || (extras->numExecAffinityParams == 0 && extras->cigParams == nullptr));
}

CUDASIM_API cuCtxDestroy(CUcontext context) {
  static CallSite site{"cuCtxDestroy"};
  return destroy(site, context);
}

CUDASIM_API cuCtxDestroy_v2(CUcontext context) {
  static CallSite site{"cuCtxDestroy_v2"};
  return destroy(site, context);
}

CUDASIM_API cuCtxAttach(CUcontext* out, unsigned int flags) {
  static CallSite site{"cuCtxAttach"};
  return with_current(site, [&](Driver&, Context& context) {
    if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (!context.primary) ++context.uses;
    *out = Contexts::handle(context);
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuCtxDetach(CUcontext handle) {
  static CallSite site{"cuCtxDetach"};
  return with_handle(site, handle, false, [](Driver& driver, Context& context) {
    if (context.primary || driver.contexts->current() != &context) return CUDA_ERROR_INVALID_CONTEXT;
    if (--context.uses > 0) return CUDA_SUCCESS;
    driver.contexts->pop();
    driver.contexts->destroy(context);
    return CUDA_SUCCESS;
  });
}

// --- the calling thread's current context
// ----------------------------------------------------------------------------------------

CUDASIM_API cuCtxPushCurrent(CUcontext context) {
  static CallSite site{"cuCtxPushCurrent"};
  return push(site, context);
}

CUDASIM_API cuCtxPushCurrent_v2(CUcontext context) {
  static CallSite site{"cuCtxPushCurrent_v2"};
  return push(site, context);
}

CUDASIM_API cuCtxPopCurrent(CUcontext* out) {
  static CallSite site{"cuCtxPopCurrent"};
  return pop(site, out);
}

CUDASIM_API cuCtxPopCurrent_v2(CUcontext* out) {
  static CallSite site{"cuCtxPopCurrent_v2"};
  return pop(site, out);
}

CUDASIM_API cuCtxSetCurrent(CUcontext handle) {
  static CallSite site{"cuCtxSetCurrent"};
  if (handle == nullptr) {
    return call(site, Needs::kInit, [](Driver& driver, ContextId) {
      driver.contexts->set_current(nullptr);
      return CUDA_SUCCESS;
    });
  }
  return with_handle(site, handle, false, [](Driver& driver, Context& context) {
    driver.contexts->set_current(&context);
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuCtxGetCurrent(CUcontext* out) {
  static CallSite site{"cuCtxGetCurrent"};
  return call(site, Needs::kInit, [&](Driver& driver, ContextId) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Context* const context = driver.contexts->current();
    *out = context == nullptr ? nullptr : Contexts::handle(*context);
    return CUDA_SUCCESS;
  });
}

// --- what one may ask of a context
// -----------------------------------------------------------------------------------------------------

CUDASIM_API cuCtxGetDevice(CUdevice* device) {
  static CallSite site{"cuCtxGetDevice"};
  return with_handle(site, nullptr, true, [&](Driver&, Context&) {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *device = 0;
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuCtxGetDevice_v2(CUdevice* device, CUcontext handle) {
  static CallSite site{"cuCtxGetDevice_v2"};
  return with_handle(site, handle, true, [&](Driver&, Context&) {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *device = 0;
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuCtxGetFlags(unsigned int* flags) {
  static CallSite site{"cuCtxGetFlags"};
  return with_current(site, [&](Driver&, Context& context) {
    if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = context.flags;
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuCtxSetFlags(unsigned int flags) {
  static CallSite site{"cuCtxSetFlags"};
  return with_current(site, [&](Driver&, Context& context) {
    if (!are_context_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
    context.flags = flags;
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuCtxGetId(CUcontext handle, unsigned long long* id) {
  static CallSite site{"cuCtxGetId"};
  return with_handle(site, handle, true, [&](Driver&, Context& context) {
    if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *id = static_cast<unsigned long long>(context.id);
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuCtxGetApiVersion(CUcontext handle, unsigned int* version) {
  static CallSite site{"cuCtxGetApiVersion"};
  return with_handle(site, handle, true, [&](Driver&, Context& context) {
    if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *version = context.api_version;
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuCtxSynchronize() {
  static CallSite site{"cuCtxSynchronize"};
  return with_current(site, synchronize);
}

CUDASIM_API cuCtxSynchronize_v2(CUcontext handle) {
  static CallSite site{"cuCtxSynchronize_v2"};
  return with_handle(site, handle, true, synchronize);
}

CUDASIM_API cuCtxSetLimit(CUlimit limit, size_t value) {
  static CallSite site{"cuCtxSetLimit"};
  return with_current(site, [&](Driver& driver, Context& context) {
    if (!is_limit(limit)) return CUDA_ERROR_INVALID_VALUE;
    if (!has_limit(driver, limit)) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    if (limit == CU_LIMIT_MAX_L2_FETCH_GRANULARITY && value > 128) return CUDA_ERROR_INVALID_VALUE;
    context.limits[limit] = value;
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuCtxGetLimit(size_t* value, CUlimit limit) {
  static CallSite site{"cuCtxGetLimit"};
  return with_current(site, [&](Driver& driver, Context& context) {
    if (value == nullptr || !is_limit(limit)) return CUDA_ERROR_INVALID_VALUE;
    if (!has_limit(driver, limit)) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    *value = context.limits[limit];
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuCtxGetCacheConfig(CUfunc_cache* config) {
  static CallSite site{"cuCtxGetCacheConfig"};
  return with_current(site, [&](Driver&, Context& context) {
    if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *config = context.cache;
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuCtxSetCacheConfig(CUfunc_cache config) {
  static CallSite site{"cuCtxSetCacheConfig"};
  return with_current(site, [&](Driver&, Context& context) {
    if (config < CU_FUNC_CACHE_PREFER_NONE || config > CU_FUNC_CACHE_PREFER_EQUAL) return CUDA_ERROR_INVALID_VALUE;
    context.cache = config;
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuCtxGetSharedMemConfig(CUsharedconfig* config) {
  static CallSite site{"cuCtxGetSharedMemConfig"};
  return with_current(site, [&](Driver&, Context& context) {
    if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *config = context.shared_config;
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuCtxSetSharedMemConfig(CUsharedconfig config) {
  static CallSite site{"cuCtxSetSharedMemConfig"};
  return with_current(site, [&](Driver&, Context& context) {
    if (config < CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE || config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
      return CUDA_ERROR_INVALID_VALUE;
    context.shared_config = config;
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  static CallSite site{"cuCtxGetStreamPriorityRange"};
  return with_current(site, [&](Driver&, Context&) {
    if (least != nullptr) *least = 0;
    if (greatest != nullptr) *greatest = -5;
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuCtxResetPersistingL2Cache() {
  static CallSite site{"cuCtxResetPersistingL2Cache"};
  return with_current(site, [](Driver& driver, Context&) {
    return has_limit(driver, CU_LIMIT_PERSISTING_L2_CACHE_SIZE) ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
  });
}

CUDASIM_API cuCtxGetExecAffinity(CUexecAffinityParam*, CUexecAffinityType) {
  static CallSite site{"cuCtxGetExecAffinity"};
  return with_current(site, [](Driver&, Context&) { return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY; });
}
