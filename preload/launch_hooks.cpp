// Hooks of launches: kernels, host functions, graphs, and what makes functions invalid.
#include <array>

#include "agent/operations/launch_parameters.h"
#include "agent/operations/operations.h"
#include "agent/process/uncancellable.h"
#include "preload/relief.h"
#include "preload/typed_hooks.h"

namespace memopt::preload::hooks {
namespace {

constexpr std::size_t kMaxLaunchAttributes = 64;

template <Hook hook, typename... Last>
CUresult launch(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
                CUstream stream, bool per_thread, void** parameters, void** extra, Last... last) noexcept {
  const agent::QueuedAtEnd scope;
  agent::before_launch({.function = function,
                        .grid = {grid_x, grid_y, grid_z},
                        .block = {block_x, block_y, block_z},
                        .shared_bytes = shared_bytes,
                        .stream = {stream, per_thread},
                        .parameters = parameters,
                        .extra = extra});
  // With lazy loading, the first launch of a kernel brings its code.
  return scope.made([&] {
    return with_relief([&] {
      return real<hook>()(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, parameters,
                          last...);
    });
  });
}

bool overlaps(const CUlaunchAttribute& attribute) noexcept {
  return attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION &&
         attribute.value.programmaticStreamSerializationAllowed != 0;
}

// Events that fire before the kernel has ended: waiting for them is no order.
void forget_early_events(const CUlaunchAttribute& attribute) noexcept {
  if (attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT) {
    agent::note_event_destroyed(attribute.value.programmaticEvent.event);
  } else if (attribute.id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT) {
    agent::note_event_destroyed(attribute.value.launchCompletionEvent.event);
  }
}

// Without leave to overlap the kernel before it. More attributes than exist are the driver's to refuse.
template <Hook hook>
CUresult launch_serialized(const CUlaunchConfig& config, CUfunction function, void** parameters,
                           void** extra) noexcept {
  std::array<CUlaunchAttribute, kMaxLaunchAttributes> kept;
  CUlaunchConfig changed = config;
  changed.attrs = kept.data();
  changed.numAttrs = 0;
  for (unsigned int i = 0; i < config.numAttrs; ++i) {
    if (overlaps(config.attrs[i])) continue;
    if (changed.numAttrs == kept.size()) return real<hook>()(&config, function, parameters, extra);
    kept[changed.numAttrs++] = config.attrs[i];
  }
  return real<hook>()(&changed, function, parameters, extra);
}

template <Hook hook>
CUresult launch_with_config(const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra,
                            bool per_thread) noexcept {
  if (config == nullptr || !agent::operations_are_watched()) {
    return with_relief([&] { return real<hook>()(config, function, parameters, extra); });
  }
  agent::LaunchCall call{.function = function,
                         .grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
                         .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
                         .shared_bytes = config->sharedMemBytes,
                         .stream = {config->hStream, per_thread},
                         .parameters = parameters,
                         .extra = extra};
  for (unsigned int i = 0; config->attrs != nullptr && i < config->numAttrs; ++i) {
    call.overlaps_previous |= overlaps(config->attrs[i]);
    forget_early_events(config->attrs[i]);
  }
  const agent::QueuedAtEnd scope;
  const bool serialize = agent::before_launch(call);
  return scope.made([&] {
    return with_relief([&] {
      return serialize ? launch_serialized<hook>(*config, function, parameters, extra)
                       : real<hook>()(config, function, parameters, extra);
    });
  });
}

template <Hook hook, typename... Arguments>
CUresult host_function(CUstream stream, bool per_thread, Arguments... arguments) noexcept {
  const agent::QueuedAtEnd scope;
  agent::before_host_function({stream, per_thread});
  return real<hook>()(stream, arguments...);
}

// cuParamSet* put parameters where nobody else sees them.
template <Hook hook, typename... Arguments>
CUresult old_launch(CUstream stream, CUfunction function, Arguments... arguments) noexcept {
  const agent::QueuedAtEnd scope;
  agent::before_unknown_work({stream, false});
  return scope.made([&] { return real<hook>()(function, arguments...); });
}

}  // namespace

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                        unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
                        CUstream stream, void** parameters, void** extra) noexcept {
  return launch<Hook::cuLaunchKernel>(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream,
                                      false, parameters, extra, extra);
}

CUresult cuLaunchKernel_ptsz(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                             unsigned int block_x, unsigned int block_y, unsigned int block_z,
                             unsigned int shared_bytes, CUstream stream, void** parameters, void** extra) noexcept {
  return launch<Hook::cuLaunchKernel_ptsz>(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes,
                                           stream, true, parameters, extra, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                                   unsigned int block_x, unsigned int block_y, unsigned int block_z,
                                   unsigned int shared_bytes, CUstream stream, void** parameters) noexcept {
  return launch<Hook::cuLaunchCooperativeKernel>(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                                                 shared_bytes, stream, false, parameters, nullptr);
}

CUresult cuLaunchCooperativeKernel_ptsz(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                        unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                        unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                                        void** parameters) noexcept {
  return launch<Hook::cuLaunchCooperativeKernel_ptsz>(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                                                      shared_bytes, stream, true, parameters, nullptr);
}

CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS* launches, unsigned int count,
                                              unsigned int flags) noexcept {
  const agent::QueuedAtEnd scope;
  for (unsigned int i = 0; launches != nullptr && agent::operations_are_watched() && i < count; ++i) {
    const CUDA_LAUNCH_PARAMS& one = launches[i];
    agent::before_launch({.function = one.function,
                          .grid = {one.gridDimX, one.gridDimY, one.gridDimZ},
                          .block = {one.blockDimX, one.blockDimY, one.blockDimZ},
                          .shared_bytes = one.sharedMemBytes,
                          .stream = {one.hStream, false},
                          .parameters = one.kernelParams});
  }
  agent::forget_operation();
  if (const CUresult refused = agent::take_refusal(); refused != CUDA_SUCCESS) return refused;
  return with_relief([&] { return real<Hook::cuLaunchCooperativeKernelMultiDevice>()(launches, count, flags); });
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra) noexcept {
  return launch_with_config<Hook::cuLaunchKernelEx>(config, function, parameters, extra, false);
}

CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction function, void** parameters,
                               void** extra) noexcept {
  return launch_with_config<Hook::cuLaunchKernelEx_ptsz>(config, function, parameters, extra, true);
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) noexcept {
  return host_function<Hook::cuLaunchHostFunc>(stream, false, function, data);
}

CUresult cuLaunchHostFunc_ptsz(CUstream stream, CUhostFn function, void* data) noexcept {
  return host_function<Hook::cuLaunchHostFunc_ptsz>(stream, true, function, data);
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback function, void* data, unsigned int flags) noexcept {
  return host_function<Hook::cuStreamAddCallback>(stream, false, function, data, flags);
}

CUresult cuStreamAddCallback_ptsz(CUstream stream, CUstreamCallback function, void* data, unsigned int flags) noexcept {
  return host_function<Hook::cuStreamAddCallback_ptsz>(stream, true, function, data, flags);
}

CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream) noexcept {
  const agent::QueuedAtEnd scope;
  agent::before_graph(graph, {stream, false});
  return scope.made([&] { return with_relief([&] { return real<Hook::cuGraphLaunch>()(graph, stream); }); });
}

CUresult cuGraphLaunch_ptsz(CUgraphExec graph, CUstream stream) noexcept {
  const agent::QueuedAtEnd scope;
  agent::before_graph(graph, {stream, true});
  return scope.made([&] { return with_relief([&] { return real<Hook::cuGraphLaunch_ptsz>()(graph, stream); }); });
}

CUresult cuLaunch(CUfunction function) noexcept { return old_launch<Hook::cuLaunch>(nullptr, function); }

CUresult cuLaunchGrid(CUfunction function, int width, int height) noexcept {
  return old_launch<Hook::cuLaunchGrid>(nullptr, function, width, height);
}

CUresult cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream) noexcept {
  return old_launch<Hook::cuLaunchGridAsync>(stream, function, width, height, stream);
}

CUresult cuModuleUnload(CUmodule module) noexcept {
  const agent::Uncancellable scope;
  const CUresult result = real<Hook::cuModuleUnload>()(module);
  agent::functions_were_unloaded();
  return result;
}

CUresult cuLibraryUnload(CUlibrary library) noexcept {
  const agent::Uncancellable scope;
  const CUresult result = real<Hook::cuLibraryUnload>()(library);
  agent::functions_were_unloaded();
  return result;
}

}  // namespace memopt::preload::hooks
