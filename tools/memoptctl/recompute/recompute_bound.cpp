#include "tools/memoptctl/recompute/recompute_bound.h"

#include <algorithm>
#include <chrono>
#include <span>

#include "planner/recompute/bounds/bound.h"
#include "planner/recompute/bounds/linear_bound_module.h"
#include "tools/memoptctl/common/child_records.h"
#include "tools/memoptctl/common/interruption.h"
#include "tools/memoptctl/common/optional_module.h"

namespace memopt::tools {
namespace {

// CLP looks at a clock now and then; what it has found by then is known before.
constexpr double kGraceSeconds = 0.5;

static_assert(sizeof(recompute::ModuleBound) <= kMostRecordBytes);

OptionalModule load_bound_module() {
#if MEMOPT_HAS_RECOMPUTE_BOUNDS
  return load_optional_module(recompute::kModuleFile, recompute::kModuleVersion, recompute::kModuleRun);
#else
  return {nullptr, "not in this build: CLP (coinor-libclp-dev) was not there when it was configured"};
#endif
}

}  // namespace

RecomputeBound recompute_bound(const swap::Problem& problem, const swap::Liveness& liveness,
                               const recompute::Graph& graph, std::uint64_t limit, double seconds) {
  static const OptionalModule module = load_bound_module();
  RecomputeBound result;
  result.missing = module.missing;
  if (module.run != nullptr) {
    const auto run = reinterpret_cast<recompute::ModuleRun>(module.run);
    recompute::ModuleBound bound;
    const ChildOutcome outcome = last_record_of_child(
        std::as_writable_bytes(std::span(&bound, 1)), seconds + kGraceSeconds, [&](const WriteRecord& write) {
          run(
              problem, limit, seconds,
              [](const recompute::ModuleBound& better, void* context) {
                (*static_cast<const WriteRecord*>(context))(std::as_bytes(std::span(&better, 1)));
              },
              const_cast<WriteRecord*>(&write));
        });
    if (outcome.answered && bound.failure[0] == 0) return {bound.ns, {}};
    result.missing = outcome.answered           ? bound.failure
                     : !outcome.failure.empty() ? outcome.failure
                     : outcome.in_time          ? "it ended without an answer"
                                                : "it was not begun within the time (--bound-time)";
  }
  const auto end = std::chrono::steady_clock::now() +
                   std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds));
  result.ns = recompute::least_added_ns(problem, liveness, graph, limit,
                                        [&] { return interrupted() || std::chrono::steady_clock::now() > end; });
  return result;
}

}  // namespace memopt::tools
