// Which context is current on the calling thread, asked of the driver only after something may have changed it.
//
// Any thread; no lock.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "agent/process/driver.h"

namespace memopt::agent {

// The calling thread's current context may have changed (cuCtxSetCurrent, push, pop, ...): it asks again.
void note_own_context_change() noexcept;
// Any thread's may have: a context is gone.
void note_context_change() noexcept;

namespace current_context_detail {

struct Known {
  std::uint64_t changes;  // up to which `context` is current; 0: never asked
  CUcontext context;
};
// Changes whenever any thread's current context may have changed.
extern std::uint64_t changes;
extern constinit thread_local Known known __attribute__((tls_model("initial-exec")));
bool ask(const Driver& driver, CUcontext context) noexcept;

}  // namespace current_context_detail

inline bool is_current(const Driver& driver, CUcontext context) noexcept {
  namespace detail = current_context_detail;
  const detail::Known& known = detail::known;
  if (known.changes == __atomic_load_n(&detail::changes, __ATOMIC_ACQUIRE)) [[likely]]
    return known.context == context;
  return detail::ask(driver, context);
}

// What the driver answers a thread whose context is gone, or that has none; CUDA_SUCCESS where it can make calls.
CUresult current_context_refusal(const Driver& driver) noexcept;

// While one lives, the context is current on the calling thread: its events can be made and its work waited for,
// whatever the program has made current. Null: nothing changes.
class CurrentContext {
 public:
  CurrentContext(const Driver& driver, CUcontext context) noexcept;
  ~CurrentContext();
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

 private:
  const Driver& driver_;
  bool pushed_ = false;
};

}  // namespace memopt::agent
