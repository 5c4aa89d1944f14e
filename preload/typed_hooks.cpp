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
#include "preload/memory_hooks.inc"
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
