#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <stdexcept>

#include "planner/input/file.h"
#include "planner/json/tree.h"
#include "planner/layout/files/csv.h"
#include "planner/layout/problem/validation.h"
#include "tools/memoptctl/common/interruption.h"
#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/solve/solve_command.h"
#include "tools/memoptctl/solve/solve_limits.h"
#include "tools/memoptctl/solve/solver_choice.h"

namespace memopt::tools {
namespace {

namespace fs = std::filesystem;
constexpr double kDefaultSeconds = 1;
constexpr std::size_t kNameWidth = 26;
constexpr std::size_t kCellWidth = 22;

struct Sum {
  std::size_t found = 0;
  std::size_t optimal = 0;
  double logarithms = 0;
  double seconds = 0;

  double geomean() const { return found == 0 ? 0 : std::exp(logarithms / static_cast<double>(found)); }
};

std::vector<fs::path> instances_in(const std::string& folder) {
  std::error_code error;
  std::vector<fs::path> files;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename();
    if (at->is_regular_file(error) && (name.ends_with(".csv") || name.ends_with(".csv.gz")))
      files.push_back(at->path());
  }
  if (error) throw std::invalid_argument(fmt::format("{}: {}", folder, error.message()));
  if (files.empty()) throw std::invalid_argument(folder + ": no .csv or .csv.gz in it");
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> chosen(const SolveOptions& options) {
  std::vector<std::string> names;
  const auto choices = solver_choices();
  for (const SolverChoice& choice : choices) {
    if (options.solvers.empty() && choice.missing.empty()) names.push_back(choice.name);
  }
  for (const std::string& name : options.solvers) {
    const auto found = std::find_if(choices.begin(), choices.end(), [&](auto& choice) { return choice.name == name; });
    if (found == choices.end()) {
      throw std::invalid_argument(fmt::format("there is no solver {}; memoptctl solve --list shows them", name));
    }
    if (!found->missing.empty()) throw std::invalid_argument(fmt::format("solver {}: {}", name, found->missing));
    names.push_back(name);
  }
  return names;
}

class Comparison {
 public:
  explicit Comparison(const SolveOptions& options)
      : options_(options),
        limits_(solve_limits(options, kDefaultSeconds)),
        names_(chosen(options)),
        sums_(names_.size()) {}

  int run() {
    const auto files = instances_in(options_.compare);
    print_header();
    for (const fs::path& file : files) {
      if (interrupted()) break;
      run(file);
    }
    print_footer();
    return unreadable_ ? kExitBadInput : 0;
  }

 private:
  void run(const fs::path& path) {
    const std::string name = printable(fs::relative(path, options_.compare).string());
    layout::Problem problem;
    try {
      input::File file(path);
      problem = layout::read_csv(file).problem;
    } catch (const std::runtime_error& error) {
      fmt::print(stderr, "memoptctl: {}: {}\n", name, printable(error.what(), 500));
      unreadable_ = true;
      return;
    }
    problem.capacity = options_.capacity;
    const std::uint64_t load = layout::load_bound(problem);
    ++instances_;
    nlohmann::json row = {
        {"file", name}, {"buffers", problem.buffers.size()}, {"peak_load", load}, {"results", nlohmann::json::array()}};
    print("{:<{}} {:>7} {:>15}", name, kNameWidth, problem.buffers.size(), load);
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const SolverRun run = run_solver(names_[i], problem, limits_);
      row["results"].push_back(count(i, run, problem, load));
    }
    print("\n");
    json_["instances"].push_back(std::move(row));
  }

  nlohmann::json count(std::size_t solver, const SolverRun& run, const layout::Problem& problem, std::uint64_t load) {
    nlohmann::json json = {{"solver", names_[solver]}, {"height", nullptr},   {"ratio", nullptr},
                           {"optimal", false},         {"infeasible", false}, {"seconds", run.seconds},
                           {"refused", nullptr}};
    if (!run.refused.empty()) {
      json["refused"] = run.refused;
      print("{:>{}}", "too large", kCellWidth);
      return json;
    }
    Sum& sum = sums_[solver];
    sum.seconds += run.seconds;
    json["infeasible"] = run.outcome.infeasible;
    if (!run.outcome.found(problem.buffers.size())) {
      print("{:>{}}", fmt::format("{} {:8.3f} s ", run.outcome.infeasible ? "none fits" : "-", run.seconds),
            kCellWidth);
      return json;
    }
    const std::uint64_t height = run.outcome.solution.height;
    const double ratio = load == 0 ? 1 : static_cast<double>(height) / static_cast<double>(load);
    ++sum.found;
    sum.optimal += run.outcome.optimal ? 1 : 0;
    sum.logarithms += std::log(ratio);
    json["height"] = height;
    json["ratio"] = ratio;
    json["optimal"] = run.outcome.optimal;
    print("{:>{}}", fmt::format("{:.6f}{} {:8.3f} s ", ratio, run.outcome.optimal ? '*' : ' ', run.seconds),
          kCellWidth);
    return json;
  }

  void print_header() {
    json_ = {{"instances", nlohmann::json::array()}, {"summary", nlohmann::json::array()}};
    print("{:<{}} {:>7} {:>15}", "", kNameWidth, "buffers", "peak load");
    for (const std::string& name : names_) print("{:>{}}", name, kCellWidth - 1), print(" ");
    print("\n");
  }

  void print_footer() {
    print("{:<{}} {:>7} {:>15}", "geometric mean, sum", kNameWidth, "", "");
    for (const Sum& sum : sums_) {
      const std::string mean = sum.found == 0 ? "-" : fmt::format("{:.6f}", sum.geomean());
      print("{:>{}}", fmt::format("{}  {:8.3f} s ", mean, sum.seconds), kCellWidth);
    }
    print("\n{:<{}} {:>7} {:>15}", "found, proven optimal", kNameWidth, instances_, "");
    for (const Sum& sum : sums_) print("{:>{}}", fmt::format("{}, {} ", sum.found, sum.optimal), kCellWidth);
    print("\n\nEach cell: height / peak load, time. *: proven optimal. A mean is over what the solver found.\n");
    if (!options_.json) return;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      nlohmann::json sum = {{"solver", names_[i]},         {"found", sums_[i].found}, {"optimal", sums_[i].optimal},
                            {"seconds", sums_[i].seconds}, {"geomean", nullptr},      {"instances", instances_}};
      if (sums_[i].found > 0) sum["geomean"] = sums_[i].geomean();
      json_["summary"].push_back(std::move(sum));
    }
    fmt::print("{}\n", json_.dump(2));
  }

  template <typename... Arguments>
  void print(fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
    if (options_.json) return;
    fmt::print(format, std::forward<Arguments>(arguments)...);
    std::fflush(stdout);  // cells may take long
  }

  const SolveOptions& options_;
  const layout::Limits limits_;
  const std::vector<std::string> names_;
  std::vector<Sum> sums_;
  std::size_t instances_ = 0;
  bool unreadable_ = false;
  nlohmann::json json_;
};

}  // namespace

int compare_solvers(const SolveOptions& options) { return Comparison(options).run(); }

}  // namespace memopt::tools
