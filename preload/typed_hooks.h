// Hooks with a function of their own. A hook that is in none of the lists (memory_hooks.inc, operation_hooks.inc,
// relieved_hooks.inc) is counted and forwarded.
#pragma once

#include "preload/hook_table.h"

namespace memopt::preload {

// The function of ours that the hook's trampoline jumps to, or null. Each has the driver's signature (checked by the
// compiler), never throws, returns the driver's own code and writes no output that the driver did not write.
void* typed_function(Hook hook) noexcept;

namespace hooks {

// The hooks of the lists, declared with the driver's own signatures.
template <typename Pointer>
struct NoexceptFunction;
template <typename Result, typename... Parameters>
struct NoexceptFunction<Result (*)(Parameters...)> {
  using Type = Result(Parameters...) noexcept;
};
#define MEMOPT_TYPED(symbol) NoexceptFunction<Signature<Hook::symbol>::Pointer>::Type symbol;
#include "preload/memory_hooks.inc"
#include "preload/operation_hooks.inc"
#undef MEMOPT_TYPED

}  // namespace hooks
}  // namespace memopt::preload
