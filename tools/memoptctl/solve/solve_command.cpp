#include "tools/memoptctl/solve/solve_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string_view>

#include "planner/input/text.h"
#include "planner/json/tree.h"
#include "planner/layout/files/csv.h"
#include "planner/layout/portfolio/solve.h"
#include "planner/layout/problem/validation.h"
#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/page/drawings.h"
#include "tools/memoptctl/solve/solve_limits.h"
#include "tools/memoptctl/solve/solver_choice.h"

namespace memopt::tools {
namespace {

constexpr double kDefaultSeconds = 10;
constexpr std::size_t kLongestMessage = 500;

struct Failure {
  int code;
  std::string what;
};

layout::Instance read_instance(const SolveOptions& options) {
  std::string name;
  try {
    input::File file(options.file);
    name = file.name();
    layout::Instance instance = layout::read_csv(file);
    if (options.keep_offsets) {
      if (instance.offsets.size() != instance.problem.buffers.size()) {
        throw layout::CsvError("--keep-offsets: there is no column 'offset'");
      }
      for (std::size_t i = 0; i < instance.offsets.size(); ++i) instance.problem.buffers[i].fixed = instance.offsets[i];
      const auto naming = [&](std::size_t i) { return instance.name(i); };
      if (const auto fault = layout::find_fault(instance.problem, naming)) throw layout::CsvError(*fault);
    }
    instance.problem.capacity = options.capacity;
    return instance;
  } catch (const layout::CsvError& error) {
    throw Failure{kExitBadInput, name + ": " + error.what()};
  } catch (const input::TextError& error) {
    throw Failure{kExitBadInput, error.what()};
  } catch (const input::InputError& error) {
    throw Failure{kExitError, error.what()};
  }
}

void write(const std::string& path, const std::string& content) {
  if (path == "-") {
    if (std::fwrite(content.data(), 1, content.size(), stdout) == content.size() && std::fflush(stdout) == 0) return;
    const int error = errno;
    std::clearerr(stdout);  // it is said here
    throw Failure{kExitError, fmt::format("standard output: cannot be written: {}", std::strerror(error))};
  }
  std::ofstream file(path, std::ios::binary);
  file << content;
  file.close();
  if (!file) throw Failure{kExitError, fmt::format("{}: cannot be written: {}", path, std::strerror(errno))};
}

std::string proven_text(const layout::Outcome& outcome) {
  return outcome.optimal ? "yes" : fmt::format("no (at least {})", outcome.lower_bound);
}

double ratio_of(std::uint64_t height, std::uint64_t bound) {
  return bound == 0 ? 1 : static_cast<double>(height) / static_cast<double>(bound);
}

// Where the solution goes to standard output, what is said about it goes to standard error.
class Report {
 public:
  Report(const SolveOptions& options, const layout::Instance& instance)
      : options_(options), instance_(instance), load_(layout::load_bound(instance.problem)) {}

  void print(const SolverRun& run, double reading) const {
    const layout::Outcome& outcome = run.outcome;
    const bool found = run.refused.empty() && outcome.found(instance_.problem.buffers.size());
    std::FILE* const out = options_.output == "-" ? stderr : stdout;
    if (options_.json) {
      fmt::print(out, "{}\n", json(run, found, reading).dump(2));
      return;
    }
    fmt::print(out, "buffers      {}\nlower bound  {}\n", instance_.problem.buffers.size(),
               std::max(load_, outcome.lower_bound));
    if (options_.capacity) fmt::print(out, "capacity     {}\n", *options_.capacity);
    if (found) {
      const std::uint64_t height = outcome.solution.height;
      fmt::print(out, "height       {}\nratio        {:.6f}\noptimal      {}\n", height, ratio_of(height, load_),
                 proven_text(outcome));
    } else {
      fmt::print(out, "height       none: {}\n", why_none(run));
    }
    fmt::print(out, "solver       {}\ntime         {:.3f} s{}, reading {:.3f} s\n", solver(run), run.seconds,
               is_first(run) ? ", in which no more was finished than a first layout" : "", reading);
  }

 private:
  std::string solver(const SolverRun& run) const {
    const std::string_view by = run.outcome.solver;
    return by.empty() || by == options_.solver ? options_.solver : fmt::format("{}: {}", options_.solver, by);
  }

  // The one that is made whatever the time.
  bool is_first(const SolverRun& run) const {
    return run.outcome.solver == layout::kFirstLayout && options_.solver != layout::kFirstLayout;
  }

  std::string why_none(const SolverRun& run) const {
    if (!run.refused.empty()) return printable(run.refused, kLongestMessage);
    if (run.outcome.infeasible) return "proven that nothing fits into the capacity";
    return options_.capacity ? "nothing that fits into the capacity was found" : "nothing was found in the time";
  }

  nlohmann::json json(const SolverRun& run, bool found, double reading) const {
    const layout::Outcome& outcome = run.outcome;
    nlohmann::json json = {{"file", printable(options_.file, kLongestMessage)},
                           {"buffers", instance_.problem.buffers.size()},
                           {"peak_load", load_},
                           {"lower_bound", std::max(load_, outcome.lower_bound)},
                           {"capacity", nullptr},
                           {"height", nullptr},
                           {"ratio", nullptr},
                           {"optimal", found && outcome.optimal},
                           {"infeasible", outcome.infeasible},
                           {"solver", options_.solver},
                           {"by", std::string(outcome.solver)},
                           {"seconds", run.seconds},
                           {"reading_seconds", reading},
                           {"why_none", nullptr}};
    if (options_.capacity) json["capacity"] = *options_.capacity;
    if (found) {
      json["height"] = outcome.solution.height;
      json["ratio"] = ratio_of(outcome.solution.height, load_);
    } else {
      json["why_none"] = why_none(run);
    }
    return json;
  }

  const SolveOptions& options_;
  const layout::Instance& instance_;
  const std::uint64_t load_;
};

int check(const SolveOptions& options, const layout::Instance& instance) {
  if (instance.offsets.size() != instance.problem.buffers.size()) {
    throw Failure{kExitBadInput, options.file + ": --check: there is no column 'offset'"};
  }
  layout::Solution solution{instance.offsets, 0};
  for (std::size_t i = 0; i < instance.offsets.size(); ++i) {
    solution.height = std::max(solution.height, instance.offsets[i] + instance.problem.buffers[i].bytes);
  }
  const auto fault =
      layout::validate(instance.problem, solution, [&](std::size_t i) { return printable(instance.name(i)); });
  const std::uint64_t load = layout::load_bound(instance.problem);
  if (options.json) {
    nlohmann::json json = {{"file", printable(options.file, kLongestMessage)},
                           {"buffers", instance.problem.buffers.size()},
                           {"lower_bound", load},
                           {"height", solution.height},
                           {"ratio", ratio_of(solution.height, load)},
                           {"holds", !fault},
                           {"fault", nullptr}};
    if (fault) json["fault"] = *fault;
    fmt::print("{}\n", json.dump(2));
  } else if (fault) {
    fmt::print("the placement does not hold: {}\n", *fault);
  } else {
    fmt::print("the placement holds\nbuffers      {}\nlower bound  {}\nheight       {}\nratio        {:.6f}\n",
               instance.problem.buffers.size(), load, solution.height, ratio_of(solution.height, load));
  }
  return fault ? kExitDoesNotHold : 0;
}

int list(bool as_json) {
  nlohmann::json json = nlohmann::json::array();
  for (const SolverChoice& choice : solver_choices()) {
    if (as_json) {
      json.push_back({{"name", choice.name}, {"what", choice.what}, {"missing", choice.missing}});
    } else {
      fmt::print("{:<22}{}\n", choice.name, choice.what);
      if (!choice.missing.empty()) fmt::print("{:<22}can't be run here: {}\n", "", choice.missing);
    }
  }
  if (as_json) fmt::print("{}\n", json.dump(2));
  return 0;
}

int solve_file(const SolveOptions& options) {
  const auto started = std::chrono::steady_clock::now();
  expect_plot(options.plot);
  const layout::Instance instance = read_instance(options);
  if (options.check) return check(options, instance);
  const double reading = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  const SolverRun run = run_solver(options.solver, instance.problem, solve_limits(options, kDefaultSeconds));
  const bool found = run.refused.empty() && run.outcome.found(instance.problem.buffers.size());
  if (found && !options.output.empty()) write(options.output, write_csv(instance, run.outcome.solution.offsets));
  if (found && !options.plot.empty()) {
    const std::uint64_t bound = std::max(layout::load_bound(instance.problem), run.outcome.lower_bound);
    write(options.plot, layout_page(options.file, instance, run.outcome.solution, bound));
  }
  Report(options, instance).print(run, reading);
  return found ? 0 : run.outcome.infeasible ? kExitInfeasible : kExitNothingFound;
}

}  // namespace

int solve(const SolveOptions& options) {
  try {
    if (options.list) return list(options.json);
    if (options.compare.empty() == options.file.empty()) {
      throw Failure{kExitBadInput, "solve needs a FILE (- for standard input), or --compare with a folder"};
    }
    return options.compare.empty() ? solve_file(options) : compare_solvers(options);
  } catch (const Failure& failure) {
    fmt::print(stderr, "memoptctl: {}\n", printable(failure.what, kLongestMessage));
    return failure.code;
  } catch (const std::invalid_argument& error) {
    fmt::print(stderr, "memoptctl: {}\n", printable(error.what(), kLongestMessage));
    return kExitBadInput;
  }
}

}  // namespace memopt::tools
