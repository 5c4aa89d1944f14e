// cuLaunchKernel and its variants. A cooperative launch runs plainly: kernels whose threads wait for each other can't
// be run at all. cuLaunch, cuLaunchGrid and cuParam* of CUDA 3 are left to the stubs.
#define __CUDA_API_VERSION_INTERNAL
#include "module/launch.h"

#include "api/call.h"

using namespace cudasim;

namespace {

CUresult queue(CallSite& site, const LaunchRequest& request) {
  return call(site, Needs::kContext,
              [&](Driver& driver, ContextId context) { return launch(driver, context, request); });
}

// Attributes say how blocks are placed and when a launch may overlap its predecessor: this device orders launches
// fully.
CUresult queue(CallSite& site, const CUlaunchConfig* c, StreamMode mode, CUfunction function, void** parameters,
               void** extra) {
  return call(site, Needs::kContext, [&](Driver& driver, ContextId context) {
    if (c == nullptr || (c->numAttrs != 0 && c->attrs == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    return launch(driver, context,
                  {function,
                   {c->gridDimX, c->gridDimY, c->gridDimZ},
                   {c->blockDimX, c->blockDimY, c->blockDimZ},
                   c->sharedMemBytes,
                   c->hStream,
                   mode,
                   parameters,
                   extra});
  });
}

}  // namespace

CUDASIM_API cuLaunchKernel(CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
                           unsigned int by, unsigned int bz, unsigned int shared, CUstream stream, void** parameters,
                           void** extra) {
  static CallSite site{"cuLaunchKernel"};
  return queue(site, {function, {gx, gy, gz}, {bx, by, bz}, shared, stream, StreamMode::kLegacy, parameters, extra});
}

CUDASIM_API cuLaunchKernel_ptsz(CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
                                unsigned int by, unsigned int bz, unsigned int shared, CUstream stream,
                                void** parameters, void** extra) {
  static CallSite site{"cuLaunchKernel_ptsz"};
  return queue(site, {function, {gx, gy, gz}, {bx, by, bz}, shared, stream, StreamMode::kPerThread, parameters, extra});
}

CUDASIM_API cuLaunchCooperativeKernel(CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz,
                                      unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
                                      CUstream stream, void** parameters) {
  static CallSite site{"cuLaunchCooperativeKernel"};
  return queue(site, {function, {gx, gy, gz}, {bx, by, bz}, shared, stream, StreamMode::kLegacy, parameters, nullptr});
}

CUDASIM_API cuLaunchCooperativeKernel_ptsz(CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz,
                                           unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
                                           CUstream stream, void** parameters) {
  static CallSite site{"cuLaunchCooperativeKernel_ptsz"};
  return queue(site,
               {function, {gx, gy, gz}, {bx, by, bz}, shared, stream, StreamMode::kPerThread, parameters, nullptr});
}

CUDASIM_API cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra) {
  static CallSite site{"cuLaunchKernelEx"};
  return queue(site, config, StreamMode::kLegacy, function, parameters, extra);
}

CUDASIM_API cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra) {
  static CallSite site{"cuLaunchKernelEx_ptsz"};
  return queue(site, config, StreamMode::kPerThread, function, parameters, extra);
}
