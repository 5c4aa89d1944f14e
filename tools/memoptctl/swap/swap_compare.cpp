#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "planner/json/tree.h"
#include "planner/swap/simulation/verify.h"
#include "tools/memoptctl/common/interruption.h"
#include "tools/memoptctl/common/output_text.h"
#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/page/drawings.h"
#include "tools/memoptctl/swap/swap_bounds.h"
#include "tools/memoptctl/swap/swap_plan_command.h"
#include "tools/memoptctl/swap/swap_problem.h"
#include "tools/memoptctl/swap/swap_strategies.h"
#include "tools/memoptctl/swap/swap_text.h"

namespace memopt::tools {
namespace {

constexpr int kExitNoIteration = 4;
constexpr const char* kFormat = "memopt-compare-1";
constexpr int kParts[] = {100, 90, 80, 70, 60, 50, 40};  // percent of the peak load

// Of a strategy under a limit.
struct Cell {
  bool feasible = false;
  std::uint64_t footprint = 0;  // where infeasible: the least that the strategy reaches; 0: none
  double added_ns = 0;
  std::size_t swaps = 0;
  double seconds = 0;
};

struct Row {
  std::uint64_t limit = 0;
  std::optional<swap::ModuleBounds> bounds;
  std::vector<Cell> cells;  // by strategy

  bool bounded() const { return bounds && bounds->failure[0] == 0; }
  bool has_least_footprint() const { return bounded() && bounds->least_footprint >= 0; }
  bool has_least_time() const { return bounded() && bounds->least_added_time >= 0; }
};

std::vector<const SwapStrategy*> chosen(const SwapPlanOptions& options) {
  std::vector<const SwapStrategy*> result;
  for (const SwapStrategy& strategy : swap_strategies()) {
    if (options.strategies.empty() && strategy.missing.empty()) result.push_back(&strategy);
  }
  for (const std::string& name : options.strategies) {
    const SwapStrategy* const strategy = &find_strategy("--strategies", name);
    if (std::find(result.begin(), result.end(), strategy) != result.end()) {
      throw std::invalid_argument("--strategies: " + name + " is given twice");
    }
    result.push_back(strategy);
  }
  return result;
}

class Comparison {
 public:
  Comparison(const SwapPlanOptions& options, SwapProblem& input)
      : options_(options),
        input_(input),
        problem_(input.file.problem),
        strategies_(chosen(options)),
        limits_(limits_of(options, kParts, input.liveness.peak)) {
    for (const SwapStrategy* const strategy : strategies_) {
      widths_.push_back(std::max<std::size_t>(strategy->name.size(), kCellWidth) + 2);
    }
  }

  void run() {
    fmt::print("peak load  {}, machine {}\n", mib(input_.liveness.peak), machine_text(problem_.machine));
    if (!input_.times.empty()) fmt::print("times      {}\n", input_.times);
    if (!input_.damage.empty()) fmt::print("damaged    {}\n", input_.damage);
    if (input_.blind_launches != 0) fmt::print("not seen   what {} launches touch\n", input_.blind_launches);
    fmt::print("iteration  {}; below: what is added to it, ms (in a footprint of, MiB)\n\n",
               milliseconds(problem_.period));
    header();
    // The narrowest first: what is found there holds within all others.
    std::vector<std::size_t> order(limits_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return limits_[a] < limits_[b]; });
    std::vector<std::pair<std::size_t, Row>> rows;
    for (const std::size_t number : order) {
      if (interrupted()) break;
      if (auto done = row(limits_[number])) rows.emplace_back(number, std::move(*done));
    }
    if (interrupted()) fmt::print("\ninterrupted: the best until then; {} of {} limits\n", rows.size(), limits_.size());
    std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (auto& [number, done] : rows) rows_.push_back(std::move(done));
    footer();
  }

  nlohmann::json json() const {
    nlohmann::json rows = nlohmann::json::array();
    for (const Row& row : rows_) rows.push_back(json_of(row));
    const swap::Machine& machine = problem_.machine;
    nlohmann::json rates = {{"out_bytes_per_ns", machine.out_bytes_per_ns},
                            {"in_bytes_per_ns", machine.in_bytes_per_ns},
                            {"out_latency_ns", machine.out_latency_ns},
                            {"in_latency_ns", machine.in_latency_ns}};
    if (machine.remap_ns) rates["remap_ns"] = *machine.remap_ns;
    return {{"format", kFormat},
            {"name", problem_.name},
            {"period_ns", problem_.period},
            {"peak_load", input_.liveness.peak},
            {"machine", rates},
            {"least_footprint_bound", least_footprint() ? nlohmann::json(*least_footprint()) : nlohmann::json()},
            {"limits", rows}};
  }

  std::string plot() const {
    std::vector<TradeOffLine> lines;
    for (std::size_t i = 0; i < strategies_.size(); ++i) {
      lines.push_back({strategies_[i]->name, {}, false});
      for (const Row& row : rows_) {
        const Cell& cell = row.cells[i];
        if (cell.feasible) lines.back().points.push_back({cell.footprint, cell.added_ns});
      }
    }
    if (options_.bound) {
      lines.push_back({"no plan is below", {}, true});
      if (const auto least = least_footprint()) {
        lines.back().points.push_back({static_cast<std::uint64_t>(*least), 0});
      }
      for (const Row& row : rows_) {
        if (row.has_least_time() && std::isfinite(row.bounds->least_added_time)) {
          lines.back().points.push_back({row.limit, row.bounds->least_added_time});
        }
      }
    }
    const std::string title = fmt::format(
        "{}{} an iteration, peak load {}, copies of {}", problem_.name.empty() ? "" : printable(problem_.name) + ": ",
        milliseconds(problem_.period), mib(input_.liveness.peak), swap::name_of(problem_.machine));
    return trade_off_page(options_.file, title, lines);
  }

 private:
  static constexpr std::size_t kCellWidth = 16;

  void header() const {
    fmt::print("{:>20}", "limit");
    if (options_.bound) fmt::print("{:>11}", "bound");
    for (std::size_t i = 0; i < strategies_.size(); ++i) fmt::print("{:>{}}", strategies_[i]->name, widths_[i]);
    fmt::print("\n");
  }

  // Nothing if it was interrupted before all strategies had found a plan, or that there is none.
  std::optional<Row> row(std::uint64_t limit) {
    Row row;
    row.limit = limit;
    problem_.limit = limit;
    const double part =
        input_.liveness.peak == 0 ? 0 : static_cast<double>(limit) / static_cast<double>(input_.liveness.peak);
    fmt::print("{:>11} {:>7}", mib(limit), fmt::format("{:.0f} %", 100 * part));
    // Before anything that has threads.
    if (options_.bound) {
      row.bounds = swap_bounds(problem_, options_.bound_seconds);
      const double bound = row.bounds->least_added_time;
      print_cell(!row.has_least_time()  ? "?"
                 : std::isfinite(bound) ? fmt::format("{:.3f}", bound / 1e6)
                                        : "infinite",
                 11);
    }
    for (std::size_t i = 0; i < strategies_.size(); ++i) {
      if (interrupted()) {
        fmt::print("\n");
        return std::nullopt;
      }
      SwapPlan plan = plan_swaps(*strategies_[i], problem_, input_.liveness, options_);
      if (strategies_[i]->searches) plan = with_narrower(std::move(plan));
      if (!plan.feasible && interrupted()) {
        fmt::print("\n");
        return std::nullopt;
      }
      Cell cell;
      cell.feasible = plan.feasible;
      cell.footprint = plan.footprint;
      cell.seconds = plan.seconds;
      if (plan.feasible) {
        cell.added_ns = plan.report.timing.added_ns;
        cell.swaps = plan.decisions.swaps.size();
      }
      print_cell(!cell.feasible ? "-"
                                : fmt::format("{:.3f} ({:.1f})", cell.added_ns / 1e6,
                                              static_cast<double>(cell.footprint) / (1 << 20)),
                 widths_[i]);
      row.cells.push_back(cell);
    }
    fmt::print("\n");
    return row;
  }

  // A search is no better than what it finds: the plan for a narrower limit may add less.
  SwapPlan with_narrower(SwapPlan plan) {
    const auto added = [](const SwapPlan& one) { return one.report.timing.added_ns; };
    if (narrower_ && (!plan.feasible || added(*narrower_) < added(plan))) {
      const double seconds = plan.seconds;
      plan = *narrower_;
      plan.seconds = seconds;
      plan.report = swap::verify(problem_, plan.decisions);  // within this limit
    } else if (plan.feasible) {
      narrower_ = plan;
    }
    return plan;
  }

  static void print_cell(const std::string& text, std::size_t width) {
    fmt::print("{:>{}}", text, width);
    std::fflush(stdout);  // the next may take long
  }

  // The least that a strategy was found to reach under any of the limits; 0: nothing was found.
  std::uint64_t least_feasible(std::size_t strategy) const {
    std::uint64_t least = 0;
    for (const Row& row : rows_) {
      const Cell& cell = row.cells[strategy];
      if (cell.footprint != 0) least = least == 0 ? cell.footprint : std::min(least, cell.footprint);
    }
    return least;
  }

  void footer() const {
    const bool any = std::any_of(rows_.begin(), rows_.end(), [](const Row& row) {
      return std::any_of(row.cells.begin(), row.cells.end(), [](const Cell& cell) { return !cell.feasible; });
    });
    fmt::print("\n");
    if (any) {
      per_strategy("least feasible limit", [&](std::size_t i) {
        const std::uint64_t least = least_feasible(i);
        return least == 0 ? std::string() : mib(least);
      });
    }
    per_strategy("planning time", [&](std::size_t i) {
      double seconds = 0;
      for (const Row& row : rows_) seconds += row.cells[i].seconds;
      return fmt::format("{:.2f} s", seconds);
    });
    if (const auto least = least_footprint())
      fmt::print("\nbound: no plan without added time is below {}\n", mib(*least));
    for (const Row& row : rows_) {
      if (!row.bounds || row.bounded()) continue;
      fmt::print("\nno bounds: {}\n", row.bounds->failure);
      break;
    }
  }

  template <typename Text>
  void per_strategy(const char* name, const Text& text) const {
    fmt::print("{:>{}}", name, options_.bound ? 31 : 20);
    for (std::size_t i = 0; i < strategies_.size(); ++i) fmt::print("{:>{}}", text(i), widths_[i]);
    fmt::print("\n");
  }

  std::optional<double> least_footprint() const {
    for (const Row& row : rows_) {
      if (row.has_least_footprint()) return row.bounds->least_footprint;
    }
    return std::nullopt;
  }

  nlohmann::json json_of(const Row& row) const {
    nlohmann::json plans = nlohmann::json::array();
    for (std::size_t i = 0; i < strategies_.size(); ++i) {
      const Cell& cell = row.cells[i];
      nlohmann::json plan = {
          {"strategy", strategies_[i]->name}, {"feasible", cell.feasible}, {"seconds", cell.seconds}};
      if (cell.feasible) {
        plan.update({{"footprint", cell.footprint}, {"added_ns", cell.added_ns}, {"swaps", cell.swaps}});
      } else if (cell.footprint != 0) {
        plan["least_feasible_limit"] = cell.footprint;
      }
      plans.push_back(std::move(plan));
    }
    nlohmann::json result = {{"limit", row.limit}, {"plans", std::move(plans)}};
    if (row.has_least_time()) {
      const double bound = row.bounds->least_added_time;
      result["infeasible"] = !std::isfinite(bound);
      if (std::isfinite(bound)) result["least_added_ns_bound"] = bound;
    } else if (row.bounds && !row.bounded()) {
      result["no_bounds"] = row.bounds->failure;
    }
    return result;
  }

  const SwapPlanOptions& options_;
  SwapProblem& input_;
  swap::Problem& problem_;
  std::vector<const SwapStrategy*> strategies_;
  std::vector<std::uint64_t> limits_;
  std::vector<std::size_t> widths_;
  std::vector<Row> rows_;             // as the limits were given
  std::optional<SwapPlan> narrower_;  // the best one of a search within the limits so far
};

}  // namespace

int compare_swaps(const SwapPlanOptions& options, input::File& file) {
  constexpr std::pair<const char*, const char*> kOfOnePlan[] = {
      {"--limit", "it has --limits"},
      {"--strategy", "it has --strategies"},
      {"--objective", "it asks for the least added time within each limit"}};
  for (const auto& [name, instead] : kOfOnePlan) {
    if (!options.has(name)) continue;
    throw std::invalid_argument(fmt::format("{} is not for --compare: {}", name, instead));
  }
  refuse_ignored(options, chosen(options));
  expect_writable(options.json);
  expect_plot(options.plot);
  std::optional<SwapProblem> input = read_problem(options, file);
  if (!input) return kExitNoIteration;
  Comparison comparison(options, *input);
  comparison.run();
  if (!options.json.empty()) write_text(options.json, comparison.json().dump(1) + "\n");
  if (!options.plot.empty()) write_text(options.plot, comparison.plot());
  return 0;
}

}  // namespace memopt::tools
