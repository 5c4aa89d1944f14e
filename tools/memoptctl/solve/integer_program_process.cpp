#include "tools/memoptctl/solve/integer_program_process.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <span>
#include <string_view>

#include "tools/memoptctl/common/child_process.h"
#include "tools/memoptctl/common/optional_module.h"

namespace memopt::tools {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kGrace{500};

OptionalModule load_module() {
#if MEMOPT_HAS_INTEGER_PROGRAM
  return load_optional_module(layout::kModuleFile, layout::kModuleVersion, layout::kModuleRun);
#else
  return {nullptr, "not in this build: CBC (coinor-libcbc-dev) was not there when it was configured"};
#endif
}

const OptionalModule& module() {
  static const OptionalModule module = load_module();
  return module;
}

layout::ModuleAnswer failed(std::string_view why) {
  layout::ModuleAnswer answer;
  std::snprintf(answer.failure, sizeof answer.failure, "%.*s", static_cast<int>(why.size()), why.data());
  return answer;
}

}  // namespace

const std::string& integer_program_missing() { return module().missing; }

layout::ModuleAnswer run_integer_program(const layout::Problem& problem, const layout::Limits& limits,
                                         std::vector<std::uint64_t>& offsets) {
  offsets.clear();
  if (module().run == nullptr) return failed(module().missing);
  ChildProcess child(ChildProcess::AtInterrupt::kEnds, [&](const ChildProcess::Write& write) {
    layout::ModuleAnswer answer;
    std::vector<std::uint64_t> found(problem.buffers.size());
    reinterpret_cast<layout::ModuleRun>(module().run)(problem, limits, found.data(), answer);
    if (write(std::as_bytes(std::span(&answer, 1))) && answer.found) write(std::as_bytes(std::span(found)));
  });
  if (!child.failure().empty()) return failed(child.failure());
  std::function<bool()> is_over;
  if (limits.time != std::chrono::nanoseconds::max())
    is_over = [deadline = Clock::now() + limits.time + kGrace] { return Clock::now() >= deadline; };
  layout::ModuleAnswer answer;
  if (child.read(std::as_writable_bytes(std::span(&answer, 1)), is_over) != ChildProcess::Read::kWhole) return {};
  if (!answer.found) return answer;
  offsets.resize(problem.buffers.size());
  if (child.read(std::as_writable_bytes(std::span(offsets))) == ChildProcess::Read::kWhole) return answer;
  offsets.clear();
  return {};
}

}  // namespace memopt::tools
