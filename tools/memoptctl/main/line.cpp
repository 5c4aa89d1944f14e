#include "tools/memoptctl/main/line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/common/suggestion.h"
#include "tools/memoptctl/doctor/doctor_command.h"
#include "tools/memoptctl/main/plan_line.h"
#include "tools/memoptctl/plan/reduce_command.h"
#include "tools/memoptctl/recording/record_command.h"
#include "tools/memoptctl/recording/show_command.h"
#include "tools/memoptctl/run/run_command.h"
#include "tools/memoptctl/run/settings_commands.h"
#include "tools/memoptctl/run/simulated_device.h"
#include "tools/memoptctl/solve/solve_command.h"
#include "tools/memoptctl/status/status_command.h"

namespace {

// The sentence about a word that stands for a subcommand and is none; empty if it is one.
std::string unknown_subcommand(const CLI::App& app, const std::string& name) {
  std::vector<std::string> names;
  for (const CLI::App* const known : app.get_subcommands(nullptr)) {
    if (known->get_name() == name) return "";
    if (!known->get_group().empty()) names.push_back(known->get_name());
  }
  const std::string meant = memopt::tools::nearest(name, names);
  return fmt::format("there is no subcommand {}{}; memoptctl --help lists them", memopt::tools::printable(name),
                     meant.empty() ? "" : fmt::format(", did you mean {}?", meant));
}

int parse_and_run(int argc, char** argv, std::span<const std::string_view> missing) {
  CLI::App app("Unmodified CUDA programs, less GPU memory: starts them, and shows what memopt does in them.",
               "memoptctl");
  app.set_version_flag("--version", "memoptctl " MEMOPT_VERSION);
  app.require_subcommand(1);

  memopt::tools::RunOptions run;
  std::string device;
  std::string known_devices;
  for (const std::string& name : memopt::tools::simulated_devices())
    known_devices += (known_devices.empty() ? "" : ", ") + name;
  const CLI::Validator simulated_device(memopt::tools::simulated_device_fault, "");
  CLI::App* run_app =
      app.add_subcommand("run", "Run a program with memopt preloaded; signals and exit code are the program's own");
  run_app->add_option("--sim", device, "run on the simulated driver: " + known_devices + " or a device file")
      ->type_name("PRESET")
      ->check(simulated_device);
  run_app->add_flag("--disable", run.disable, "load memopt, but let it only pass through (MEMOPT_DISABLE=1)");
  run_app->prefix_command();
  run_app->footer(
      "Form: memoptctl run [--sim PRESET] [--disable] -- COMMAND [ARGUMENT...]\nExit code: the program's; 125 if "
      "memopt can't be set up, 126 if the program can't be executed, 127 if there is none.");

  memopt::tools::StatusOptions status;
  pid_t pid = 0;
  CLI::App* status_app = app.add_subcommand("status", "Show the processes that run under memopt");
  status_app->add_flag("--json", status.json, "machine-readable, one object");
  status_app->add_option("--pid", pid, "only this process")->check(CLI::Range(1, 1 << 22))->type_name("N");
  status_app->footer(
      "Exit code: 0 all well, 3 no such process, 4 a problem is shown (for example: attached, but no call seen).");

  memopt::tools::RecordOptions record;
  CLI::App* record_app =
      app.add_subcommand("record", "Run a program and write what it does with the device into a file");
  record_app->add_option("-o,--output", record.output, "the recording; further processes go into FILE.<pid>")
      ->type_name("FILE")
      ->required();
  record_app->add_option("--sim", device, "run on the simulated driver: " + known_devices + " or a device file")
      ->type_name("PRESET")
      ->check(simulated_device);
  record_app->add_flag("--force", record.force, "overwrite FILE");
  record_app->prefix_command();
  record_app->footer(
      "Form: memoptctl record -o FILE [--sim PRESET] [--force] -- COMMAND [ARGUMENT...]\nExit code: the program's, 128 "
      "+ its signal; 125 if memopt can't be set up or FILE not be written, 126, 127 as for run.");

  memopt::tools::ShowOptions show;
  std::string operations;
  CLI::App* show_app = app.add_subcommand("show", "Show what a recording holds");
  show_app->add_option("file", show.file, "written by memoptctl record")->type_name("FILE")->required();
  show_app->add_flag("--json", show.json, "machine-readable, one object");
  show_app->add_option("--stacks", show.stacks, "so many of the largest blocks, with their call stacks (5)")
      ->type_name("N");
  CLI::Option* list =
      show_app->add_option("--operations", operations, "list these records, by number, instead")->type_name("FROM:TO");
  show_app->add_option("--trace", show.trace, "write a plain text trace (operation pointer bytes ns) instead")
      ->type_name("OUT")
      ->excludes(list);
  show_app->footer("Exit code: 0; 1 if FILE can't be read, or not to its end.");

  memopt::tools::PlanLine plan;
  CLI::App* plan_app =
      app.add_subcommand("plan", "Plan the memory of a recording, a text trace or an iteration, without running it");
  plan.add_to(*plan_app);

  memopt::tools::ReduceOptions reduce;
  CLI::App* reduce_app = app.add_subcommand("reduce", "Cut a recording down to its steady iteration");
  reduce_app->add_option("file", reduce.file, "written by memoptctl record")->type_name("FILE")->required();
  reduce_app->add_option("-o,--output", reduce.output, "the smaller recording")->type_name("OUT")->required();
  reduce_app
      ->add_option("--iterations", reduce.reduction.iterations,
                   "iterations to keep beside the one by whose repeat they are known (1)")
      ->check(CLI::Range(1, 1000))
      ->type_name("N");
  reduce_app->add_flag("--hash-names", reduce.reduction.hash_names,
                       "shorten long kernel names; leave out call stacks, loaded files and arguments");
  reduce_app->add_flag("--parameters", reduce.reduction.parameters, "keep the bytes of launch parameters");
  reduce_app->add_flag("--force", reduce.force, "overwrite OUT");
  reduce_app->footer(
      "OUT is planned again, and written only if it has the same iteration.\nExit code: 0; 1 if a file can't be read "
      "or written; 4 if no iteration was found.");

  memopt::tools::SolveOptions solve;
  CLI::App* solve_app =
      app.add_subcommand("solve", "Lay out buffers of known lifetimes in as little memory as possible");
  solve_app
      ->add_option("file", solve.file,
                   "CSV with id,lower,upper,size (docs/formats/layout-csv.md), may be gzip's; -: stdin")
      ->type_name("FILE");
  solve_app->add_option("--capacity", solve.capacity, "fit into so many bytes, rather than into the fewest")
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 62))
      ->type_name("BYTES");
  solve_app->add_option("--time-limit", solve.seconds, "seconds of solving (10; 1 per cell of a comparison); 0: none")
      ->check(CLI::Range(0.0, 1e9))
      ->type_name("S");
  solve_app->add_option("--solver", solve.solver, "one of --list")->capture_default_str()->type_name("NAME");
  solve_app->add_option("--threads", solve.threads, "so many (one per processor)")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  solve_app->add_option("--seed", solve.seed, "of what is chosen at random")->capture_default_str()->type_name("N");
  solve_app->add_flag("--json", solve.json, "machine-readable, one object");
  solve_app->add_option("-o,--output", solve.output, "write the placement: the CSV with a column offset; -: stdout")
      ->type_name("OUT");
  solve_app->add_option("--plot", solve.plot, "draw the placement (SVG)")->type_name("OUT");
  CLI::Option* check = solve_app->add_flag("--check", solve.check, "check the column offset instead of solving");
  solve_app->add_flag("--keep-offsets", solve.keep_offsets, "take the column offset as fixed places")->excludes(check);
  solve_app->add_option("--compare", solve.compare, "run all solvers on the .csv and .csv.gz below a folder")
      ->type_name("FOLDER");
  solve_app->add_option("--solvers", solve.solvers, "only these in the comparison")
      ->delimiter(',')
      ->type_name("A,B,...");
  solve_app->add_flag("--list", solve.list, "list the solvers");
  solve_app->footer(
      "Exit code: 0 found (with --check: the placement holds); 1 a file can't be read or written; 2 bad input or wrong "
      "use; 3 proven that nothing fits into the capacity; 4 nothing found in the time, or the solver does not take the "
      "problem; 5 the placement does not hold.");

  CLI::App* options_app = app.add_subcommand("options", "List the environment variables that memopt reads");
  bool markdown = false;
  options_app->add_flag("--markdown", markdown, "as the table in docs/options.md");

  CLI::App* frameworks_app = app.add_subcommand("frameworks", "List what memopt sets so that frameworks are seen");
  frameworks_app->add_flag("--markdown", markdown, "as the tables in docs/frameworks.md");

  memopt::tools::DoctorOptions doctor;
  CLI::App* doctor_app =
      app.add_subcommand("doctor", "Look for what keeps memopt from working here, or with one program");
  doctor_app->add_flag("--json", doctor.json, "machine-readable, one object");
  doctor_app->add_option("--sim", device, "look at the simulated driver: " + known_devices + " or a device file")
      ->type_name("PRESET")
      ->check(simulated_device);
  doctor_app->add_option("--seconds", doctor.seconds, "let the program run so long at most")
      ->check(CLI::Range(0.1, 86400.0))
      ->capture_default_str()
      ->type_name("N");
  doctor_app->prefix_command();
  doctor_app->footer(
      "Form: memoptctl doctor [--json] [--sim PRESET] [--seconds N] [-- COMMAND [ARGUMENT...]]\nExit code: 0 no "
      "problem (there may be warnings), 1 a problem, 2 wrong use.");

  // The side of doctor's checks that may crash or hang; for doctor alone.
  std::string probed;
  CLI::App* probe_app = app.add_subcommand("probe", "")->group("");
  probe_app->add_option("name", probed)->required();

  // What follows the first "--" is the program's, whatever it looks like.
  char** const separator =
      std::find_if(argv, argv + argc, [](const char* argument) { return std::strcmp(argument, "--") == 0; });
  const int own_count = static_cast<int>(separator - argv);
  if (own_count > 1 && std::find(missing.begin(), missing.end(), std::string_view(argv[1])) != missing.end()) {
    fmt::print(stderr,
               "memoptctl: {} is not in this program, which has what tools/quickstart needs; build `memoptctl`\n",
               argv[1]);
    return 2;
  }
  try {
    app.parse(own_count, argv);
  } catch (const CLI::ParseError& error) {
    const bool names_one = own_count > 1 && argv[1][0] != '-';
    if (const std::string unknown = names_one ? unknown_subcommand(app, argv[1]) : ""; !unknown.empty()) {
      fmt::print(stderr, "memoptctl: {}\n", unknown);
      return 2;
    }
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (*run_app || *record_app) {
    if (!device.empty()) run.simulated_device = device;
    run.command = (*run_app ? run_app : record_app)->remaining();
    // "run PROGRAM -- X": the separator is the program's own.
    run.command.insert(run.command.end(), separator + (run.command.empty() && separator != argv + argc ? 1 : 0),
                       argv + argc);
    if (run.command.empty()) {
      fmt::print(stderr, "memoptctl: {0} needs a command: memoptctl {0} {1}[--sim PRESET] -- COMMAND [ARGUMENT...]\n",
                 *run_app ? "run" : "record", *run_app ? "" : "-o FILE ");
      return 2;
    }
    if (*run_app) return memopt::tools::run(run);
    record.run = std::move(run);
    record.version = MEMOPT_VERSION;
    return memopt::tools::record(record);
  }
  if (*doctor_app) {
    if (!device.empty()) doctor.simulated_device = device;
    doctor.command = doctor_app->remaining();
    if (!doctor.command.empty() && doctor.command[0].starts_with('-')) {
      fmt::print(stderr, "memoptctl: doctor has no option {}\n", memopt::tools::printable(doctor.command[0]));
      return 2;
    }
    doctor.command.insert(doctor.command.end(),
                          separator + (doctor.command.empty() && separator != argv + argc ? 1 : 0), argv + argc);
    doctor.version = MEMOPT_VERSION;
    return memopt::tools::doctor(doctor);
  }
  if (separator != argv + argc) {
    fmt::print(stderr, "memoptctl: only run, record and doctor take a program\n");
    return 2;
  }
  if (*probe_app) return memopt::tools::probe(probed);
  if (*status_app) {
    if (pid != 0) status.pid = pid;
    return memopt::tools::status(status);
  }
  if (*show_app) {
    if (!operations.empty() && !(show.operations = memopt::tools::parse_range(operations))) {
      fmt::print(stderr, "memoptctl: --operations wants FROM:TO, numbers of records, not {}\n",
                 memopt::tools::printable(operations));
      return 2;
    }
    return memopt::tools::show(show);
  }
  if (*plan_app) return plan.run();
  if (*reduce_app) {
    reduce.reduction.version = MEMOPT_VERSION;
    return memopt::tools::reduce(reduce);
  }
  if (*solve_app) return memopt::tools::solve(solve);
  return *frameworks_app ? memopt::tools::frameworks(markdown) : memopt::tools::options(markdown);
}

}  // namespace

namespace memopt::tools {

int run_line(int argc, char** argv, std::span<const std::string_view> missing) {
  try {
    return parse_and_run(argc, argv, missing);
  } catch (const std::exception& error) {
    fmt::print(stderr, "memoptctl: {}\n", error.what());
    return 1;
  }
}

}  // namespace memopt::tools
