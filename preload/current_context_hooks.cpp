// Hooks of what is current: the calling thread's context, and waiting for all of its work.
#include "agent/memory/arena.h"
#include "agent/operations/operations.h"
#include "agent/order/current_context.h"
#include "agent/process/uncancellable.h"
#include "agent/recording/recorder.h"
#include "preload/relief.h"
#include "preload/typed_hooks.h"

namespace memopt::preload::hooks {
namespace {

template <Hook hook, typename... Arguments>
CUresult change(Arguments... arguments) noexcept {
  const CUresult result = with_relief([&] { return real<hook>()(arguments...); });
  agent::note_own_context_change();
  return result;
}

void record_wait(CUcontext context) noexcept {
  if (!agent::recording()) return;
  agent::record_simple(
      shm::RecordKind::kSynchronize,
      shm::SynchronizeBody{static_cast<std::uint64_t>(shm::Scope::kContext), reinterpret_cast<std::uint64_t>(context)});
}

bool is_current(CUcontext context) noexcept {
  CUcontext current = nullptr;
  return real<Hook::cuCtxGetCurrent>()(&current) == CUDA_SUCCESS && current == context;
}

}  // namespace

CUresult cuCtxSynchronize() noexcept {
  const agent::Uncancellable scope;
  if (!agent::operations_are_watched()) return real<Hook::cuCtxSynchronize>()();
  const agent::HostWait wait = agent::begin_host_wait_for_context();
  const CUresult result = agent::noted(real<Hook::cuCtxSynchronize>()());
  if (result != CUDA_SUCCESS) return result;
  agent::host_wait_done(wait);
  record_wait(nullptr);
  return result;
}

// Of a context that is not the current one nothing is concluded.
CUresult cuCtxSynchronize_v2(CUcontext context) noexcept {
  const agent::Uncancellable scope;
  if (!agent::operations_are_watched() || (context != nullptr && !is_current(context))) {
    return real<Hook::cuCtxSynchronize_v2>()(context);
  }
  const agent::HostWait wait = agent::begin_host_wait_for_context();
  const CUresult result = agent::noted(real<Hook::cuCtxSynchronize_v2>()(context));
  if (result != CUDA_SUCCESS) return result;
  agent::host_wait_done(wait);
  record_wait(nullptr);
  return result;
}

CUresult cuCtxCreate(CUcontext* context, unsigned int flags, CUdevice device) noexcept {
  return change<Hook::cuCtxCreate>(context, flags, device);
}

CUresult cuCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device) noexcept {
  return change<Hook::cuCtxCreate_v2>(context, flags, device);
}

CUresult cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam* affinities, int count, unsigned int flags,
                        CUdevice device) noexcept {
  return change<Hook::cuCtxCreate_v3>(context, affinities, count, flags, device);
}

CUresult cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* parameters, unsigned int flags,
                        CUdevice device) noexcept {
  return change<Hook::cuCtxCreate_v4>(context, parameters, flags, device);
}

CUresult cuCtxSetCurrent(CUcontext context) noexcept { return change<Hook::cuCtxSetCurrent>(context); }

CUresult cuCtxPushCurrent(CUcontext context) noexcept { return change<Hook::cuCtxPushCurrent>(context); }

CUresult cuCtxPushCurrent_v2(CUcontext context) noexcept { return change<Hook::cuCtxPushCurrent_v2>(context); }

CUresult cuCtxPopCurrent(CUcontext* context) noexcept { return change<Hook::cuCtxPopCurrent>(context); }

CUresult cuCtxPopCurrent_v2(CUcontext* context) noexcept { return change<Hook::cuCtxPopCurrent_v2>(context); }

CUresult cuCtxAttach(CUcontext* context, unsigned int flags) noexcept {
  return change<Hook::cuCtxAttach>(context, flags);
}

}  // namespace memopt::preload::hooks
