#include "tools/memoptctl/doctor/doctor_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "shm/frameworks.h"
#include "tools/memoptctl/common/install_paths.h"
#include "tools/memoptctl/doctor/checks.h"
#include "tools/memoptctl/doctor/doctor_report.h"

namespace memopt::tools {
namespace {

// What would hold for frameworks in a program that is started from here. Which of them it uses is not known yet.
void check_frameworks(Report& report) {
  const shm::Route route = shm::framework_route_of(environ);
  std::string set;
  for (std::size_t i = 0; i < shm::kFrameworks.size(); ++i) {
    const auto id = static_cast<shm::FrameworkId>(i);
    const std::string name(shm::kFrameworks[i].name);
    const shm::FrameworkOutcome outcome = shm::framework_outcome(id, route, environ);
    if (!outcome.has_recipe) continue;
    if (outcome.choice != nullptr && !outcome.choice->visible()) {
      report.add(
          "frameworks", Verdict::kWarning,
          fmt::format("{} would keep its caching allocator on: {} ({})", name, outcome.chosen, outcome.choice->meaning),
          fmt::format("unset {}, or that part of it, if you use {}", outcome.choice->variable, name));
    } else if (outcome.choice != nullptr) {
      set += fmt::format("{}{}: {} (set already)", set.empty() ? "" : "; ", name, outcome.chosen);
    } else if (!outcome.settings.empty()) {
      set += fmt::format("{}{}: {}={}", set.empty() ? "" : "; ", name, outcome.settings[0].variable,
                         outcome.settings[0].value);
    } else {
      report.add("frameworks", Verdict::kWarning,
                 fmt::format("{} would keep its caching allocator on: nothing is set for it", name),
                 "MEMOPT_FRAMEWORK_ENV=off, MEMOPT_PLAN=0 or MEMOPT_DISABLE=1 is set: unset it");
    }
  }
  if (!set.empty()) report.add("frameworks", Verdict::kOk, "allocate one by one: " + set);
}

// How the program comes by the CUDA runtime. Where its file does not name one, only calls that were seen are a proof.
void report_runtime(Report& report, const ElfFile& file, bool calls_were_seen) {
  const RuntimeKind kind = runtime_kind(file);
  const std::string text = fmt::format("runtime: {}", to_string(kind));
  if (kind != RuntimeKind::kStaticWithoutSymbols) {
    report.add("program.runtime", Verdict::kOk, text);
  } else if (calls_were_seen) {
    report.add("program.runtime", Verdict::kOk, text + "; its calls are seen at the driver");
  } else {
    report.add("program.runtime", Verdict::kWarning, text + "; none of its calls was seen",
               "let it run longer (--seconds), or link the shared runtime (nvcc -cudart shared)");
  }
}

}  // namespace

int doctor(const DoctorOptions& options) {
  Report report;
  std::optional<std::string> simulator;
  if (options.simulated_device) {
    if (const auto folder = find_simulator_folder()) simulator = folder->string();
  }
  check_driver(report, simulator, options.simulated_device);
  check_limits(report);
  check_options(report, environ);
  if (!options.no_files) check_config(report);
  const std::string version = check_preload(report, options.version);
  check_planner(report, version.empty() ? options.version : version);
  check_frameworks(report);
  if (!options.command.empty()) {
    ProgramTrial trial;
    const ProgramFile file = check_program_file(report, options.command[0]);
    if (!file.path.empty()) {
      trial.command = options.command;
      trial.simulated_device = options.simulated_device;
      trial.limit = std::chrono::milliseconds(static_cast<long>(options.seconds * 1000));
      trial.file = file.elf;
      const bool seen = check_program(report, trial);
      if (file.elf) report_runtime(report, *file.elf, seen);
    }
  }
  fmt::print("{}", options.json ? report.json(options.version) : report.text());
  return report.count(Verdict::kProblem) == 0 ? 0 : 1;
}

int probe(const std::string& name) {
  if (name == "driver") return probe_driver();
  if (name == "preload") return probe_preload();
  return 2;
}

}  // namespace memopt::tools
