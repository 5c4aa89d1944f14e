#include "agent/order/current_context.h"

namespace memopt::agent {
namespace current_context_detail {

constinit std::uint64_t changes = 1;
constinit thread_local Known known = {};

bool ask(const Driver& driver, CUcontext context) noexcept {
  const std::uint64_t before = __atomic_load_n(&changes, __ATOMIC_ACQUIRE);
  CUcontext current = nullptr;
  if (driver.current_context(&current) != CUDA_SUCCESS) return false;
  known = {before, current};
  return current == context;
}

}  // namespace current_context_detail

namespace {

namespace detail = current_context_detail;

// Up to which change the thread can make calls for certain.
constinit thread_local std::uint64_t t_usable __attribute__((tls_model("initial-exec"))) = 0;

}  // namespace

void note_own_context_change() noexcept {
  detail::known.changes = 0;
  t_usable = 0;
}

void note_context_change() noexcept { __atomic_add_fetch(&detail::changes, 1, __ATOMIC_RELEASE); }

CUresult current_context_refusal(const Driver& driver) noexcept {
  const std::uint64_t changes = __atomic_load_n(&detail::changes, __ATOMIC_ACQUIRE);
  if (t_usable == changes) [[likely]]
    return CUDA_SUCCESS;
  CUdevice device = 0;
  const CUresult result = driver.current_device(&device);
  if (result == CUDA_SUCCESS) t_usable = changes;
  return result;
}

CurrentContext::CurrentContext(const Driver& driver, CUcontext context) noexcept : driver_(driver) {
  if (context == nullptr || is_current(driver, context)) return;
  pushed_ = driver.context_push(context) == CUDA_SUCCESS;
}

CurrentContext::~CurrentContext() {
  CUcontext popped = nullptr;
  if (pushed_) driver_.context_pop(&popped);
}

}  // namespace memopt::agent
