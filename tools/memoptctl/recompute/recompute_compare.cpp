#include "tools/memoptctl/recompute/recompute_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "planner/json/tree.h"
#include "tools/memoptctl/common/interruption.h"
#include "tools/memoptctl/common/output_text.h"
#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/page/drawings.h"
#include "tools/memoptctl/recompute/recompute_planner.h"
#include "tools/memoptctl/swap/swap_text.h"

namespace memopt::tools {
namespace {

using recompute::Combined;

constexpr const char* kFormat = "memopt-recompute-compare-1";
constexpr int kParts[] = {90, 80, 70, 60, 50, 40, 30, 20, 10};  // of the peak load, percent
constexpr std::size_t kCellWidth = 10;                          // at least

std::vector<Strategy> compared_strategies(const SwapPlanOptions& options) {
  std::vector<Strategy> result;
  if (options.strategies.empty()) {
    // But those that take a minute for each limit.
    for (Strategy& one : all_strategies(options.swap)) {
      if (!one.checkmate) result.push_back(std::move(one));
    }
    return result;
  }
  for (const std::string& name : options.strategies) result.push_back(strategy_of("--strategies", name, options.swap));
  return result;
}

struct Row {
  std::size_t number = 0;
  std::uint64_t limit = 0;
  std::vector<std::optional<Combined>> plans;  // by strategy, without what they do
  std::vector<bool> too_large;                 // by strategy: it was not tried
  std::optional<RecomputeBound> bound;         // none with swaps, of which it knows nothing
};

std::size_t width(const Strategy& strategy) { return std::max(kCellWidth, strategy.name.size() + 2); }

void print_row(const Row& row, const std::vector<Strategy>& strategies, const SwapProblem& input) {
  const double peak = static_cast<double>(std::max<std::uint64_t>(1, input.liveness.peak));
  fmt::print("{:>11} {:>7}", mib(row.limit), fmt::format("{:.0f} %", 100 * static_cast<double>(row.limit) / peak));
  if (row.bound) {
    const double ns = row.bound->ns;
    fmt::print("{:>{}}", std::isinf(ns) ? "infinite" : fmt::format("{:.2f} %", part(ns, input.file.problem)),
               kCellWidth);
  }
  for (std::size_t k = 0; k < row.plans.size(); ++k) {
    const auto& plan = row.plans[k];
    fmt::print("{:>{}}",
               plan               ? fmt::format("{:.2f} %", part(plan->added_ns(), input.file.problem))
               : row.too_large[k] ? "too large"
                                  : "-",
               width(strategies[k]));
  }
  fmt::print("\n");
}

void write_comparison(const std::vector<Row>& rows, const std::vector<Strategy>& strategies, const SwapProblem& input,
                      bool swaps, const std::string& path) {
  nlohmann::json limits = nlohmann::json::array();
  for (const Row& row : rows) {
    nlohmann::json plans = nlohmann::json::object();
    for (std::size_t k = 0; k < row.plans.size(); ++k) {
      nlohmann::json& entry = plans[strategies[k].name];
      const auto& plan = row.plans[k];
      if (!plan) continue;
      entry = {{"footprint", bytes_of(*plan)},
               {"added_ns", plan->added_ns()},
               {"replays", plan->cost.replays},
               {"drops", plan->cost.drops}};
      if (plan->footprint) entry["load"] = plan->load;
      if (swaps) entry.update({{"waits_ns", plan->waits_ns}, {"bytes_out", plan->bytes_out}});
    }
    nlohmann::json its = {{"limit", row.limit}, {"plans", plans}};
    if (row.bound) {
      const bool infeasible = std::isinf(row.bound->ns);
      its["infeasible"] = infeasible;
      its["least_added_ns_bound"] = infeasible ? nlohmann::json() : nlohmann::json(row.bound->ns);
      if (!row.bound->missing.empty()) its["no_linear_bound"] = row.bound->missing;
    }
    limits.push_back(std::move(its));
  }
  nlohmann::json document = {{"format", kFormat},
                             {"name", input.file.problem.name},
                             {"period_ns", input.file.problem.period},
                             {"peak_load", input.liveness.peak},
                             {"limits", limits}};
  if (interrupted()) document["interrupted"] = true;
  write_text(path, document.dump(1) + '\n');
}

std::string plot(const std::vector<Row>& rows, const std::vector<Strategy>& strategies, const SwapProblem& input,
                 const std::string& file) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  std::vector<TradeOffLine> lines;
  for (std::size_t k = 0; k < strategies.size(); ++k) {
    lines.push_back({strategies[k].name, {}, false});
    for (const Row& row : rows) {
      lines.back().points.push_back({row.limit, row.plans[k] ? row.plans[k]->added_ns() : kNone});
    }
  }
  TradeOffLine bound{"no plan is below", {}, true};
  for (const Row& row : rows) {
    if (row.bound) bound.points.push_back({row.limit, row.bound->ns});
  }
  if (!bound.points.empty()) lines.push_back(std::move(bound));
  const swap::Problem& problem = input.file.problem;
  const std::string title =
      fmt::format("{}{} an iteration, peak load {}", problem.name.empty() ? "" : printable(problem.name) + ": ",
                  milliseconds(problem.period), mib(input.liveness.peak));
  return trade_off_parts_page(file, title, lines, std::max<std::uint64_t>(1, input.liveness.peak),
                              problem.period > 0 ? problem.period : 1);
}

// Our own search begins with published plans as far as a part of its time allows: what these were found to be here, by
// strategies that are compared as well, counts for it.
void begin_with_published(Row& row, const std::vector<Strategy>& strategies) {
  const Combined* best = nullptr;
  for (std::size_t k = 0; k < row.plans.size(); ++k) {
    const auto& plan = row.plans[k];
    const bool is_published = strategies[k].heuristic || strategies[k].chen || strategies[k].checkmate;
    if (is_published && plan && (best == nullptr || plan->added_ns() < best->added_ns())) best = &*plan;
  }
  for (std::size_t k = 0; best != nullptr && k < row.plans.size(); ++k) {
    auto& plan = row.plans[k];
    if (!strategies[k].searches() || strategies[k].means == recompute::Means::kSwaps) continue;
    if (!plan || best->added_ns() < plan->added_ns()) plan = *best;
  }
}

}  // namespace

int compare_recomputation(const SwapPlanOptions& options, const SwapProblem& input) {
  if (options.has("--limit")) throw std::invalid_argument("--limit is for one plan; --compare takes --limits");
  if (options.has("--strategy"))
    throw std::invalid_argument("--strategy is for one plan; --compare takes --strategies");
  if (!options.training_curve.empty()) throw std::invalid_argument("--training-curve is for one plan");
  const std::vector<Strategy> strategies = compared_strategies(options);
  refuse_unseen(options, strategies);
  const std::vector<std::uint64_t> limits = limits_of(options, kParts, input.liveness.peak);
  const Planner planner(options, input);
  if (!input.times.empty()) fmt::print("times      {}\n", input.times);
  const bool has_bound = options.bound && !options.swap;
  if (options.swap) fmt::print("machine    {}\n", machine_text(input.file.problem.machine));
  fmt::print("peak load  {}\niteration  {}; below: what {} to it, within a {} of\n\n", mib(input.liveness.peak),
             milliseconds(input.file.problem.period), options.swap ? "replays and waits add" : "replays add",
             options.places ? "footprint" : "load");
  fmt::print("{:>19}", "limit");
  if (has_bound) fmt::print("{:>{}}", "bound", kCellWidth);
  for (const Strategy& strategy : strategies) fmt::print("{:>{}}", strategy.name, width(strategy));
  fmt::print("\n");
  // The narrowest first: what is found there holds within all others.
  std::vector<Row> rows;
  for (std::size_t k = 0; k < limits.size(); ++k) rows.push_back({k, limits[k], {}, {}, {}});
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.limit < b.limit; });
  std::size_t done = 0;
  std::vector<std::optional<Combined>> narrower(strategies.size());
  for (; done < rows.size() && !interrupted(); ++done) {
    Row& row = rows[done];
    if (has_bound) row.bound = planner.bound(row.limit);
    for (std::size_t k = 0; k < strategies.size() && !interrupted(); ++k) {
      auto plan = planner.plan(strategies[k], row.limit);
      if (plan) {
        plan->steps.clear();
        plan->decisions = {};
      }
      row.too_large.push_back(!plan && strategies[k].checkmate && planner.checkmate_answer().too_large);
      row.plans.push_back(std::move(plan));
    }
    begin_with_published(row, strategies);
    for (std::size_t k = 0; k < row.plans.size(); ++k) {
      auto& best = narrower[k];
      if (!strategies[k].searches()) continue;
      if (best && (!row.plans[k] || best->added_ns() < row.plans[k]->added_ns())) row.plans[k] = best;
      best = row.plans[k];
    }
    // What was not asked says nothing.
    if (interrupted() && (row.plans.size() < strategies.size() || !row.plans.back())) break;
    print_row(row, strategies, input);
    std::fflush(stdout);
  }
  if (interrupted()) fmt::print("\ninterrupted: the best until then; {} of {} limits\n", done, rows.size());
  rows.resize(done);
  if (rows.empty()) return 0;  // files stay as they were
  for (const Row& row : rows) {
    if (!row.bound || row.bound->missing.empty()) continue;
    fmt::print("\nno linear bound, but that of one launch at a time: {}\n", row.bound->missing);
    break;
  }
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.number < b.number; });
  if (!options.json.empty()) write_comparison(rows, strategies, input, options.swap, options.json);
  if (!options.plot.empty()) write_text(options.plot, plot(rows, strategies, input, options.file));
  return 0;
}

}  // namespace memopt::tools
