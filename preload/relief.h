// A device is out of memory only when memopt holds nothing idle: a call of the driver's that can need device memory is
// made again after what is idle has gone back.
#pragma once

#include "agent/memory/arena.h"
#include "preload/hook_table.h"

namespace memopt::preload {

template <typename Call>
[[gnu::cold, gnu::noinline]] CUresult call_again(const Call& call, std::size_t wanted) noexcept {
  for (const agent::Relief relief : {agent::Relief::kCached, agent::Relief::kAll}) {
    if (!agent::arena_relieve(relief, wanted)) continue;
    const CUresult result = call();
    if (result != CUDA_ERROR_OUT_OF_MEMORY) return result;
  }
  return CUDA_ERROR_OUT_OF_MEMORY;
}

// `wanted`: bytes that the call is about, where that is known.
template <typename Call>
CUresult with_relief(const Call& call, std::size_t wanted = 0) noexcept {
  const CUresult result = call();
  if (result != CUDA_ERROR_OUT_OF_MEMORY) [[likely]]
    return result;
  return call_again(call, wanted);
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
