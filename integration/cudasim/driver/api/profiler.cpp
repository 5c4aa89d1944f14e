// A profiler has nothing to collect here; programs that bracket their loop with these two run on.
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cudaProfiler.h>

#include "api/call.h"

using namespace cudasim;

CUDASIM_API cuProfilerStart(void) {
  static CallSite site{"cuProfilerStart"};
  return call(site, Needs::kContext, [](Driver&, ContextId) { return CUDA_SUCCESS; });
}
CUDASIM_API cuProfilerStop(void) {
  static CallSite site{"cuProfilerStop"};
  return call(site, Needs::kContext, [](Driver&, ContextId) { return CUDA_SUCCESS; });
}
