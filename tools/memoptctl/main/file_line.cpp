#include "tools/memoptctl/main/file_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>

#include "shm/durations.h"
#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/main/number_option.h"

namespace memopt::tools {
namespace {

constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();

}  // namespace

void FileLine::add_show(CLI::App& app) {
  show_app_ = app.add_subcommand("show", "Show what a recording holds");
  show_app_->add_option("file", show_.file, "written by memoptctl record; -: standard input")
      ->type_name("FILE")
      ->required();
  show_app_->add_flag("--json", show_.json, "machine-readable, one object");
  accept_whole(
      show_app_->add_option("--stacks", show_.stacks, "so many of the largest blocks, with their call stacks (5)"), 0,
      1'000'000);
  CLI::Option* list = show_app_
                          ->add_option("--operations", operations_,
                                       "list these records, by number, instead: two whole numbers, either may be left "
                                       "out (100:200, 100:, :200)")
                          ->type_name("FROM:TO");
  show_app_->add_option("--trace", show_.trace, "write a plain text trace (operation pointer bytes ns) instead")
      ->type_name("OUT")
      ->excludes(list);
  show_app_->footer("Exit code: 0; 1 if FILE can't be read, or not to its end.");
}

void FileLine::add_report(CLI::App& app) {
  report_app_ = app.add_subcommand("report", "Make a page (HTML) of a recording: load, layout, swaps, call stacks");
  report_app_->add_option("file", report_.file, "written by memoptctl record, or a text trace; -: standard input")
      ->type_name("FILE")
      ->required();
  report_app_
      ->add_option("-o,--output", report_.output,
                   "the page, one file that needs no network and is overwritten; -: standard output")
      ->type_name("OUT")
      ->required();
  report_app_
      ->add_option(
          "--limit", report_.limit,
          "show the plan within this limit first: bytes, a number with B, KiB, MiB or GiB behind it, or with % "
          "for a part of the peak load")
      ->type_name("BYTES");
  report_app_
      ->add_option("--machine", report_.machine,
                   "whose copies swaps are planned for: gtx1080ti, a100-40g, h200, or OUT:IN[:OUT_LATENCY:IN_LATENCY] "
                   "in GB/s and ns")
      ->type_name("NAME");
  accept_duration(report_app_->add_option("--time-budget", report_.seconds,
                                          "for the plans within all limits together, 0: none are made; an "
                                          "interrupt keeps those that there are"),
                  PlainUnit::kSeconds, 0, 24 * 3600 * shm::kOneSecond)
      ->capture_default_str();
  accept_whole(report_app_->add_option("--threads", report_.threads, "of planning, 0: one for each processor"), 0, 1024)
      ->capture_default_str();
  accept_whole(report_app_->add_option("--seed", report_.seed, "of what is random in planning"), 0, kAny)
      ->capture_default_str();
  report_app_->footer(
      "Exit code: 0; 1 if FILE can't be read, or not to its end, the page showing what was read; 2 wrong use; 3 if no "
      "plan was found within --limit; 4 if no iteration was found, the page showing the load alone.");
}

void FileLine::add_reduce(CLI::App& app) {
  reduce_app_ = app.add_subcommand("reduce", "Cut a recording down to its steady iteration");
  reduce_app_->add_option("file", reduce_.file, "written by memoptctl record; -: standard input")
      ->type_name("FILE")
      ->required();
  reduce_app_->add_option("-o,--output", reduce_.output, "the smaller recording")->type_name("OUT")->required();
  accept_whole(reduce_app_->add_option("--iterations", reduce_.reduction.iterations,
                                       "iterations to keep beside the one by whose repeat they are known (1)"),
               1, 1000);
  reduce_app_->add_flag("--whole", reduce_.whole, "keep every record, also where no iteration is found");
  reduce_app_->add_flag("--hash-names", reduce_.reduction.hash_names,
                        "shorten long kernel names; leave out call stacks, loaded files and arguments");
  reduce_app_->add_flag("--parameters", reduce_.reduction.parameters, "keep the bytes of launch parameters");
  reduce_app_->add_flag("--force", reduce_.force, "overwrite OUT");
  reduce_app_->footer(
      "OUT is planned again, and written only if it has the same iteration.\nExit code: 0; 1 if a file can't be read "
      "or written; 4 if no iteration was found.");
}

void FileLine::add_solve(CLI::App& app) {
  solve_app_ = app.add_subcommand("solve", "Lay out buffers of known lifetimes in as little memory as possible");
  solve_app_
      ->add_option("file", solve_.file,
                   "CSV with id,lower,upper,size (docs/formats/layout-csv.md); -: standard input; packed by gzip or "
                   "zstd or not")
      ->type_name("FILE");
  accept_size(
      solve_app_->add_option("--capacity", solve_.capacity, "fit into so many bytes, rather than into the fewest"));
  accept_duration(solve_app_->add_option("--time-limit", solve_.seconds,
                                         "of solving (10s; 1s per cell of a comparison), 0: no limit"),
                  PlainUnit::kSeconds, 0, 100'000 * 3600 * shm::kOneSecond);
  solve_app_->add_option("--solver", solve_.solver, "one of --list")->capture_default_str()->type_name("NAME");
  accept_whole(solve_app_->add_option("--threads", solve_.threads, "so many (one per processor)"), 1, 1024);
  accept_whole(solve_app_->add_option("--seed", solve_.seed, "of what is chosen at random"), 0, kAny)
      ->capture_default_str();
  solve_app_->add_flag("--json", solve_.json, "machine-readable, one object");
  solve_app_->add_option("-o,--output", solve_.output, "write the placement: the CSV with a column offset; -: stdout")
      ->type_name("OUT");
  solve_app_->add_option("--plot", solve_.plot, "draw the placement: a page for a browser (HTML)")->type_name("OUT");
  CLI::Option* check = solve_app_->add_flag("--check", solve_.check, "check the column offset instead of solving");
  solve_app_->add_flag("--keep-offsets", solve_.keep_offsets, "take the column offset as fixed places")
      ->excludes(check);
  solve_app_->add_option("--compare", solve_.compare, "run all solvers on the .csv and .csv.gz below a folder")
      ->type_name("FOLDER");
  solve_app_->add_option("--solvers", solve_.solvers, "only these in the comparison")
      ->delimiter(',')
      ->type_name("A,B,...");
  solve_app_->add_flag("--list", solve_.list, "list the solvers");
  solve_app_->footer(
      "Exit code: 0 found (with --check: the placement holds); 1 a file can't be read or written; 2 bad input or wrong "
      "use; 3 proven that nothing fits into the capacity; 4 nothing found in the time, or the solver does not take the "
      "problem; 5 the placement does not hold.");
}

bool FileLine::named() const { return *show_app_ || *report_app_ || *reduce_app_ || *solve_app_; }

int FileLine::run() {
  if (*show_app_) return run_show();
  if (*reduce_app_) {
    reduce_.reduction.version = MEMOPT_VERSION;
    return reduce(reduce_);
  }
  if (*report_app_) {
    report_.version = MEMOPT_VERSION;
    return report(report_);
  }
  return solve(solve_);
}

int FileLine::run_show() {
  if (!operations_.empty() && !(show_.operations = parse_range(operations_))) {
    fmt::print(stderr,
               "memoptctl: --operations: expected FROM:TO, whole numbers of records, FROM not above TO, not {}\n",
               printable(operations_));
    return 2;
  }
  return show(show_);
}

}  // namespace memopt::tools
