#include "tools/memoptctl/solve/solve_limits.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <thread>

namespace memopt::tools {
namespace {

// Beyond the end of any process; the sum with a clock's value can be represented.
constexpr double kLongest = 1e9;

std::atomic<bool> cancelled{false};
static_assert(std::atomic<bool>::is_always_lock_free);

}  // namespace

layout::Limits solve_limits(const SolveOptions& options, double default_seconds) {
  struct sigaction action {};
  action.sa_handler = [](int) { cancelled.store(true, std::memory_order_relaxed); };
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
  layout::Limits limits;
  if (const double seconds = options.seconds.value_or(default_seconds); seconds > 0) {
    limits.time = std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::duration<double>(std::min(seconds, kLongest)));
  }
  limits.cancelled = &cancelled;
  limits.threads = options.threads != 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency());
  limits.seed = options.seed;
  return limits;
}

bool interrupted() { return cancelled.load(std::memory_order_relaxed); }

}  // namespace memopt::tools
