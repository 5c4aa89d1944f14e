// Launches of kernels. The stream is none of this library's business: the effect runs as the launch does.
#include "instrument.h"
#include "scrub_stack.h"

using launch_effects::Instrument;

namespace {

template <typename Forward>
CUresult launch(const launch_effects::LaunchCall& call, const Forward& forward) {
  Instrument* const instrument = Instrument::get();
  if (instrument == nullptr) return forward();
  const CUresult result = instrument->launch(call, forward);
  launch_effects::scrub_stack();
  return result;
}

}  // namespace

#define LAUNCH_EFFECTS_KERNEL(symbol)                                                                          \
  LAUNCH_EFFECTS_EXPORT symbol(CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz,         \
                               unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,         \
                               CUstream stream, void** parameters, void** extra) {                             \
    return launch({function, {gx, gy, gz}, {bx, by, bz}, parameters, extra}, [&] {                             \
      return LAUNCH_EFFECTS_NEXT(symbol, function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra); \
    });                                                                                                        \
  }
#define LAUNCH_EFFECTS_COOPERATIVE(symbol)                                                              \
  LAUNCH_EFFECTS_EXPORT symbol(CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz,  \
                               unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,  \
                               CUstream stream, void** parameters) {                                    \
    return launch({function, {gx, gy, gz}, {bx, by, bz}, parameters, nullptr}, [&] {                    \
      return LAUNCH_EFFECTS_NEXT(symbol, function, gx, gy, gz, bx, by, bz, shared, stream, parameters); \
    });                                                                                                 \
  }
#define LAUNCH_EFFECTS_CONFIGURED(symbol)                                                                            \
  LAUNCH_EFFECTS_EXPORT symbol(const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra) { \
    const auto forward = [&] { return LAUNCH_EFFECTS_NEXT(symbol, config, function, parameters, extra); };           \
    if (config == nullptr) return forward();                                                                         \
    return launch({function,                                                                                         \
                   {config->gridDimX, config->gridDimY, config->gridDimZ},                                           \
                   {config->blockDimX, config->blockDimY, config->blockDimZ},                                        \
                   parameters,                                                                                       \
                   extra},                                                                                           \
                  forward);                                                                                          \
  }

LAUNCH_EFFECTS_KERNEL(cuLaunchKernel)
LAUNCH_EFFECTS_KERNEL(cuLaunchKernel_ptsz)
LAUNCH_EFFECTS_COOPERATIVE(cuLaunchCooperativeKernel)
LAUNCH_EFFECTS_COOPERATIVE(cuLaunchCooperativeKernel_ptsz)
LAUNCH_EFFECTS_CONFIGURED(cuLaunchKernelEx)
LAUNCH_EFFECTS_CONFIGURED(cuLaunchKernelEx_ptsz)

LAUNCH_EFFECTS_EXPORT cuModuleUnload(CUmodule module) {
  if (Instrument* const instrument = Instrument::get()) instrument->forget_functions();
  return LAUNCH_EFFECTS_NEXT(cuModuleUnload, module);
}

LAUNCH_EFFECTS_EXPORT cuLibraryUnload(CUlibrary library) {
  if (Instrument* const instrument = Instrument::get()) instrument->forget_functions();
  return LAUNCH_EFFECTS_NEXT(cuLibraryUnload, library);
}
