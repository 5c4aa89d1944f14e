#include "tools/memoptctl/solve/solve_limits.h"

#include <algorithm>
#include <thread>

#include "tools/memoptctl/common/interruption.h"

namespace memopt::tools {
namespace {

// Beyond the end of any process; the sum with a clock's value can be represented.
constexpr double kLongest = 1e9;

}  // namespace

layout::Limits solve_limits(const SolveOptions& options, double default_seconds) {
  layout::Limits limits;
  if (const double seconds = options.seconds.value_or(default_seconds); seconds > 0) {
    limits.time = std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::duration<double>(std::min(seconds, kLongest)));
  }
  limits.cancelled = &end_at_interrupt();
  limits.threads = options.threads != 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency());
  limits.seed = options.seed;
  return limits;
}

}  // namespace memopt::tools
