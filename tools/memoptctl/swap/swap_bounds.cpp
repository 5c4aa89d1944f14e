#include "tools/memoptctl/swap/swap_bounds.h"

#include <fmt/format.h>

#include <cstdio>
#include <span>
#include <string>

#include "tools/memoptctl/common/child_records.h"
#include "tools/memoptctl/common/optional_module.h"

namespace memopt::tools {
namespace {

swap::ModuleBounds failed(const std::string& why) {
  swap::ModuleBounds bounds;
  std::snprintf(bounds.failure, sizeof bounds.failure, "%s", why.c_str());
  return bounds;
}

OptionalModule load_module() {
#if MEMOPT_HAS_SWAP_BOUNDS
  return load_optional_module(swap::kModuleFile, swap::kModuleVersion, swap::kModuleRun);
#else
  return {nullptr, "not in this build: CLP (coinor-libclp-dev) was not there when it was configured"};
#endif
}

static_assert(sizeof(swap::ModuleBounds) <= kMostRecordBytes);

}  // namespace

swap::ModuleBounds swap_bounds(const swap::Problem& problem, double seconds) {
  static const OptionalModule module = load_module();
  if (module.run == nullptr) return failed(module.missing);
  const auto run = reinterpret_cast<swap::ModuleRun>(module.run);
  swap::ModuleBounds bounds;
  const ChildOutcome outcome =
      last_record_of_child(std::as_writable_bytes(std::span(&bounds, 1)), seconds, [&](const WriteRecord& write) {
        swap::ModuleBounds its;
        run(problem, problem.limit.value_or(swap::kNever), its);
        write(std::as_bytes(std::span(&its, 1)));
      });
  if (outcome.answered) return bounds;
  if (!outcome.failure.empty()) return failed(outcome.failure);
  return failed(outcome.in_time ? "the linear programme ended without an answer"
                                : fmt::format("the linear programme takes longer than {} s (--bound-time)", seconds));
}

}  // namespace memopt::tools
