#include "agent/process/own_cost.h"

#include <chrono>
#include <new>

#include "agent/process/made_once.h"

namespace memopt::agent {
namespace {

constinit std::uint64_t g_ticks = 0;
constinit std::uint64_t g_samples = 0;
// A call of ours takes less by far; what takes longer was interrupted.
constexpr std::uint64_t kInterrupted = 300'000;

struct Instant {
  std::uint64_t ticks;
  std::chrono::steady_clock::time_point time;
};

Instant now() noexcept { return {__rdtsc(), std::chrono::steady_clock::now()}; }

constinit MadeOnce<const Instant> g_beginning;

Instant beginning() noexcept {
  const Instant* const instant = g_beginning.get([] { return new (std::nothrow) const Instant(now()); });
  return instant != nullptr ? *instant : now();
}

}  // namespace

namespace own_cost_detail {

constinit thread_local std::uint32_t countdown = kEvery;

void add(std::uint64_t ticks) noexcept {
  if (ticks > kInterrupted) return;
  __atomic_add_fetch(&g_ticks, ticks, __ATOMIC_RELAXED);
  __atomic_add_fetch(&g_samples, 1, __ATOMIC_RELAXED);
}

}  // namespace own_cost_detail

OwnCost own_cost() noexcept {
  return {__atomic_load_n(&g_ticks, __ATOMIC_RELAXED), __atomic_load_n(&g_samples, __ATOMIC_RELAXED)};
}

void reset_own_cost() noexcept {
  beginning();
  __atomic_store_n(&g_ticks, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&g_samples, 0, __ATOMIC_RELAXED);
}

double ticks_per_nanosecond() noexcept {
  const Instant first = beginning();
  const Instant last = now();
  const double elapsed = std::chrono::duration<double, std::nano>(last.time - first.time).count();
  return elapsed < 1e6 ? 0.0 : static_cast<double>(last.ticks - first.ticks) / elapsed;
}

}  // namespace memopt::agent
