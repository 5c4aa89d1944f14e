#include "agent/order/captures.h"

#include "agent/process/driver.h"

namespace memopt::agent {
namespace {

constinit std::uint32_t g_captures = 0;

[[gnu::cold, gnu::noinline]] bool ask_captured(StreamName stream) noexcept {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUstream handle =
      stream.per_thread && stream.handle == nullptr ? reinterpret_cast<CUstream>(CU_STREAM_PER_THREAD) : stream.handle;
  // An error is that of the legacy stream during another thread's capture: the call will fail on its own.
  return driver().stream_is_capturing(handle, &status) == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

}  // namespace

bool captures_are_open() noexcept { return __atomic_load_n(&g_captures, __ATOMIC_RELAXED) != 0; }

bool is_captured(StreamName stream) noexcept { return captures_are_open() && ask_captured(stream); }

void capture_opened() noexcept { __atomic_fetch_add(&g_captures, 1, __ATOMIC_RELAXED); }

void capture_closed() noexcept {
  // A begin that the driver refused is ended, too; an end without a begin is not counted.
  std::uint32_t open = __atomic_load_n(&g_captures, __ATOMIC_RELAXED);
  while (open != 0 &&
         !__atomic_compare_exchange_n(&g_captures, &open, open - 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

void forget_captures_after_fork() noexcept { __atomic_store_n(&g_captures, 0, __ATOMIC_RELAXED); }

}  // namespace memopt::agent
