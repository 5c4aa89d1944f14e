// A device is out of memory only when memopt holds nothing idle, and no block that may leave for host memory: a call of
// the driver's that can need device memory is made again after what is idle has gone back, and again when blocks have
// left.
#pragma once

#include "agent/memory/arena.h"
#include "preload/hook_table.h"

namespace memopt::preload {

template <typename Call>
[[gnu::cold, gnu::noinline]] CUresult call_again(const Call& call, std::size_t wanted, agent::Relief most) noexcept {
  for (const agent::Relief relief : {agent::Relief::kCached, agent::Relief::kAll, agent::Relief::kBlocks}) {
    if (relief > most) break;
    if (!agent::arena_relieve(relief, wanted)) continue;
    const CUresult result = call();
    if (result != CUDA_ERROR_OUT_OF_MEMORY) return result;
  }
  return CUDA_ERROR_OUT_OF_MEMORY;
}

// `wanted`: bytes that the call is about, where that is known. `most`: what may be done for it.
template <typename Call>
CUresult with_relief(const Call& call, std::size_t wanted = 0, agent::Relief most = agent::Relief::kBlocks) noexcept {
  const CUresult result = call();
  if (result != CUDA_ERROR_OUT_OF_MEMORY) [[likely]]
    return result;
  return call_again(call, wanted, most);
}

// An allocation that the arena serves where it can (`serve`), and the driver's `call` else: where there is no memory
// for either, blocks leave for host memory, and the arena has some.
template <typename Serve, typename Call>
CUresult allocate_with_relief(const Serve& serve, const Call& call, std::size_t bytes, bool* by_driver) noexcept {
  agent::Served served = serve();
  *by_driver = !served.handled;
  if (served.handled) [[likely]]
    return served.result;
  const CUresult result = with_relief(call, bytes, agent::Relief::kAll);
  if (result != CUDA_ERROR_OUT_OF_MEMORY || !agent::arena_begin_swapping(bytes)) [[likely]]
    return result;
  served = serve();
  *by_driver = !served.handled;
  return served.handled ? served.result : result;
}

// The hook of a call that is forwarded with relief and nothing else (relieved_hooks.inc).
template <Hook hook, typename Pointer = typename Signature<hook>::Pointer>
struct Relieved;
template <Hook hook, typename... Parameters>
struct Relieved<hook, CUresult (*)(Parameters...)> {
  static CUresult call(Parameters... parameters) noexcept {
    return with_relief([&] { return real<hook>()(parameters...); });
  }
};

}  // namespace memopt::preload
