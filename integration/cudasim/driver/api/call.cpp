#define __CUDA_API_VERSION_INTERNAL
#include "api/call.h"

#include <cstdio>
#include <exception>
#include <new>

#include "contexts.h"
#include "graph/graphs.h"
#include "turn.h"

namespace cudasim {
namespace {

void resolve(CallSite& site, Driver& driver) {
  site.count = &driver.counters.calls[site.symbol];
  site.cost = driver.config.device.host_cost(site.symbol);
  site.unsafe_in_capture = Captures::is_unsafe(site.symbol);
  site.owner = &driver;
}

// 0: none.
int injected_error(const Driver& driver, const CallSite& site) {
  for (const Injection& injection : driver.config.injections) {
    if (injection.symbol == site.symbol && (injection.call == 0 || injection.call == *site.count))
      return injection.error;
  }
  return 0;
}

CUresult checks(Driver& driver, Needs needs, const Context* context) {
  if (needs == Needs::kNothing) return CUDA_SUCCESS;
  if (!driver.initialized) return CUDA_ERROR_NOT_INITIALIZED;
  if (Engine::on_callback_thread()) return CUDA_ERROR_NOT_PERMITTED;  // host functions may not call CUDA
  if (needs == Needs::kInit) return CUDA_SUCCESS;
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (!context->alive) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return driver.engine.tell_sticky_error(context->id);
}

CUresult counted(CallSite& site, Needs needs, const std::function<CUresult(Driver&, ContextId)>& body,
                 std::uint64_t units, Driver& driver) {
  if (site.owner != &driver) resolve(site, driver);
  ++*site.count;
  ++driver.counters.totals.calls;
  driver.engine.charge(site.cost.fixed + site.cost.per_unit * std::int64_t(units));
  if (const int error = driver.config.injections.empty() ? 0 : injected_error(driver, site)) return CUresult(error);
  const Context* const context = driver.contexts->current();
  if (const CUresult refused = checks(driver, needs, context); refused != CUDA_SUCCESS) return refused;
  if (site.unsafe_in_capture) [[unlikely]] {
    if (const CUresult refused = driver.graphs->captures.unsafe_call(); refused != CUDA_SUCCESS) return refused;
  }
  return body(driver, context != nullptr && context->alive ? context->id : ContextId::kNone);
}

}  // namespace

CUresult call(CallSite& site, Needs needs, const std::function<CUresult(Driver&, ContextId)>& body,
              std::uint64_t units) noexcept {
  if (Driver::in_forked_child()) return CUDA_ERROR_NOT_INITIALIZED;
  try {
    Driver& driver = Driver::get();
    const Turn turn(driver, site.symbol);
    return counted(site, needs, body, units, driver);
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "cudasim: %s: %s\n", site.symbol, problem.what());
  } catch (...) {
    std::fprintf(stderr, "cudasim: %s: unknown exception\n", site.symbol);
  }
  return CUDA_ERROR_UNKNOWN;
}

}  // namespace cudasim
