#include "tools/memoptctl/recompute/recompute_bound.h"

#include <chrono>
#include <optional>
#include <span>
#include <string>

#include "planner/recompute/bounds/bound.h"
#include "planner/recompute/bounds/linear_bound_module.h"
#include "tools/memoptctl/common/child_process.h"
#include "tools/memoptctl/common/interruption.h"
#include "tools/memoptctl/common/optional_module.h"

namespace memopt::tools {
namespace {

using Clock = std::chrono::steady_clock;

// CLP looks at a clock now and then; what it has found by then is known before.
constexpr double kGraceSeconds = 0.5;

OptionalModule load_bound_module() {
#if MEMOPT_HAS_RECOMPUTE_BOUNDS
  return load_optional_module(recompute::kModuleFile, recompute::kModuleVersion, recompute::kModuleRun);
#else
  return {nullptr, "not in this build: CLP (coinor-libclp-dev) was not there when it was configured"};
#endif
}

Clock::time_point in_seconds(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

RecomputeBound recompute_bound(const swap::Problem& problem, const swap::Liveness& liveness,
                               const recompute::Graph& graph, std::uint64_t limit, double seconds) {
  static const OptionalModule module = load_bound_module();
  RecomputeBound result;
  result.missing = module.missing;
  if (module.run != nullptr) {
    const auto run = reinterpret_cast<recompute::ModuleRun>(module.run);
    ChildProcess child(ChildProcess::AtInterrupt::kEnds, [&](const ChildProcess::Write& write) {
      run(
          problem, limit, seconds,
          [](const recompute::ModuleBound& better, void* context) {
            (*static_cast<const ChildProcess::Write*>(context))(std::as_bytes(std::span(&better, 1)));
          },
          const_cast<ChildProcess::Write*>(&write));
    });
    const auto is_over = [deadline = in_seconds(seconds + kGraceSeconds)] {
      return interrupted() || Clock::now() >= deadline;
    };
    std::optional<double> best;
    recompute::ModuleBound next;
    std::string failure;
    ChildProcess::Read read = ChildProcess::Read::kEnded;
    if (child.failure().empty()) {
      while ((read = child.read(std::as_writable_bytes(std::span(&next, 1)), is_over)) == ChildProcess::Read::kWhole) {
        next.failure[sizeof next.failure - 1] = 0;
        if (next.failure[0] == 0) best = next.ns;
        failure = next.failure;
      }
    }
    // What it found before it failed holds.
    if (best) return {*best, {}};
    result.missing = !failure.empty()                       ? failure
                     : !child.failure().empty()             ? child.failure()
                     : read == ChildProcess::Read::kGivenUp ? "it was not begun within the time (--bound-time)"
                                                            : "it ended without an answer";
  }
  const auto end = in_seconds(seconds);
  result.ns =
      recompute::least_added_ns(problem, liveness, graph, limit, [&] { return interrupted() || Clock::now() > end; });
  return result;
}

}  // namespace memopt::tools
