#include "preload/typed_hooks.h"

#include "preload/relief.h"

namespace memopt::preload {

void* typed_function(Hook hook) noexcept {
  switch (hook) {
// The cast names the driver's type for this symbol: a wrong signature does not compile.
#define MEMOPT_TYPED(symbol)                                          \
  case Hook::symbol: {                                                \
    const Signature<Hook::symbol>::Pointer function = &hooks::symbol; \
    return reinterpret_cast<void*>(function);                         \
  }
    MEMOPT_TYPED(cuGetProcAddress)
    MEMOPT_TYPED(cuGetProcAddress_v2)
    MEMOPT_TYPED(cuMemAlloc)
    MEMOPT_TYPED(cuMemAlloc_v2)
    MEMOPT_TYPED(cuMemAllocPitch)
    MEMOPT_TYPED(cuMemAllocPitch_v2)
    MEMOPT_TYPED(cuMemFree)
    MEMOPT_TYPED(cuMemFree_v2)
    MEMOPT_TYPED(cuMemCreate)
    MEMOPT_TYPED(cuMemRelease)
    MEMOPT_TYPED(cuMemRetainAllocationHandle)
    MEMOPT_TYPED(cuMemMap)
    MEMOPT_TYPED(cuMemUnmap)
    MEMOPT_TYPED(cuCtxDestroy)
    MEMOPT_TYPED(cuCtxDestroy_v2)
    MEMOPT_TYPED(cuCtxDetach)
    MEMOPT_TYPED(cuDevicePrimaryCtxRetain)
    MEMOPT_TYPED(cuDevicePrimaryCtxRelease)
    MEMOPT_TYPED(cuDevicePrimaryCtxRelease_v2)
    MEMOPT_TYPED(cuDevicePrimaryCtxReset)
    MEMOPT_TYPED(cuDevicePrimaryCtxReset_v2)
#include "preload/operation_hooks.inc"
#undef MEMOPT_TYPED
#define MEMOPT_RELIEVED(symbol)                                                      \
  case Hook::symbol: {                                                               \
    const Signature<Hook::symbol>::Pointer function = &Relieved<Hook::symbol>::call; \
    return reinterpret_cast<void*>(function);                                        \
  }
#include "preload/relieved_hooks.inc"
#undef MEMOPT_RELIEVED
    default:
      return nullptr;
  }
}

}  // namespace memopt::preload
