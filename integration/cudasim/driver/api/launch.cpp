// cuLaunchKernel and its variants. A cooperative launch runs plainly: kernels whose threads wait for each other can't
// be run at all. cuLaunch, cuLaunchGrid and cuParam* of CUDA 3 are left to the stubs.
#define __CUDA_API_VERSION_INTERNAL
#include "module/launch.h"

#include "api/call.h"
#include "graph/graphs.h"
#include "module/next_launch.h"

using namespace cudasim;

namespace {

// On a captured stream, a node instead.
CUresult launch_or_capture(Driver& driver, ContextId context, const LaunchRequest& r) {
  Stream* const stream = driver.engine.find_stream(context, r.stream, r.mode);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Captures& captures = driver.graphs->captures;
  if (const CUresult bad = captures.use(*stream); bad != CUDA_SUCCESS) return bad;
  if (stream->capture == nullptr) return launch(driver, context, r);
  if (r.cooperative) return CUDA_ERROR_NOT_SUPPORTED;  // nodes have no such attribute here
  if (r.function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  take_next_launch_effect(r.function);  // said of this one launch, which does not happen now
  KernelNode node;
  const KernelRequest request{r.function,
                              {r.grid[0], r.grid[1], r.grid[2]},
                              {r.block[0], r.block[1], r.block[2]},
                              r.dynamic_shared_bytes,
                              r.parameters,
                              r.extra};
  const CUresult result = make_kernel(driver, stream->context, request, node);
  if (result == CUDA_SUCCESS) captures.add(*stream, std::move(node));
  return result;
}

CUresult queue(CallSite& site, const LaunchRequest& request) {
  return call(site, Needs::kContext,
              [&](Driver& driver, ContextId context) { return launch_or_capture(driver, context, request); });
}

bool is_cooperative(const CUlaunchConfig& config) {
  for (unsigned at = 0; at < config.numAttrs; ++at) {
    if (config.attrs[at].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) return config.attrs[at].value.cooperative != 0;
  }
  return false;
}

// Other attributes say how blocks are placed and when a launch may overlap its predecessor: this device orders launches
// fully.
CUresult queue(CallSite& site, const CUlaunchConfig* c, StreamMode mode, CUfunction function, void** parameters,
               void** extra) {
  return call(site, Needs::kContext, [&](Driver& driver, ContextId context) {
    if (c == nullptr || (c->numAttrs != 0 && c->attrs == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    return launch_or_capture(driver, context,
                             {function,
                              {c->gridDimX, c->gridDimY, c->gridDimZ},
                              {c->blockDimX, c->blockDimY, c->blockDimZ},
                              c->sharedMemBytes,
                              c->hStream,
                              mode,
                              parameters,
                              extra,
                              is_cooperative(*c)});
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
  return queue(site,
               {function, {gx, gy, gz}, {bx, by, bz}, shared, stream, StreamMode::kLegacy, parameters, nullptr, true});
}

CUDASIM_API cuLaunchCooperativeKernel_ptsz(CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz,
                                           unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
                                           CUstream stream, void** parameters) {
  static CallSite site{"cuLaunchCooperativeKernel_ptsz"};
  return queue(
      site, {function, {gx, gy, gz}, {bx, by, bz}, shared, stream, StreamMode::kPerThread, parameters, nullptr, true});
}

CUDASIM_API cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra) {
  static CallSite site{"cuLaunchKernelEx"};
  return queue(site, config, StreamMode::kLegacy, function, parameters, extra);
}

CUDASIM_API cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra) {
  static CallSite site{"cuLaunchKernelEx_ptsz"};
  return queue(site, config, StreamMode::kPerThread, function, parameters, extra);
}
