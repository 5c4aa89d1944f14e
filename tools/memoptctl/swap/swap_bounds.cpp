#include "tools/memoptctl/swap/swap_bounds.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <span>
#include <string>

#include "tools/memoptctl/common/child_process.h"
#include "tools/memoptctl/common/interruption.h"
#include "tools/memoptctl/common/optional_module.h"

namespace memopt::tools {
namespace {

using Clock = std::chrono::steady_clock;

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

}  // namespace

swap::ModuleBounds swap_bounds(const swap::Problem& problem, double seconds) {
  static const OptionalModule module = load_module();
  if (module.run == nullptr) return failed(module.missing);
  const auto run = reinterpret_cast<swap::ModuleRun>(module.run);
  ChildProcess child(ChildProcess::AtInterrupt::kEnds, [&](const ChildProcess::Write& write) {
    swap::ModuleBounds its;
    run(problem, problem.limit.value_or(swap::kNever), its);
    write(std::as_bytes(std::span(&its, 1)));
  });
  if (!child.failure().empty()) return failed(child.failure());
  const auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  swap::ModuleBounds bounds;
  switch (child.read(std::as_writable_bytes(std::span(&bounds, 1)),
                     [&] { return interrupted() || Clock::now() >= deadline; })) {
    case ChildProcess::Read::kWhole:
      return bounds;
    case ChildProcess::Read::kEnded:
      return failed("the linear programme ended without an answer");
    case ChildProcess::Read::kGivenUp:
      break;
  }
  return failed(interrupted() ? "interrupted"
                              : fmt::format("the linear programme takes longer than {} s (--bound-time)", seconds));
}

}  // namespace memopt::tools
