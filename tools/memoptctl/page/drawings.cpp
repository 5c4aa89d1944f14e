#include "tools/memoptctl/page/drawings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "planner/json/tree.h"
#include "planner/swap/simulation/verify.h"
#include "tools/memoptctl/common/output_text.h"
#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/page/columns.h"
#include "tools/memoptctl/page/iteration_json.h"
#include "tools/memoptctl/page/page.h"

namespace memopt::tools {
namespace {

using Json = nlohmann::json;

constexpr double kMib = 1 << 20;
constexpr std::size_t kMostLevels = 4000;

std::string base_name(const std::string& path) { return printable(path.substr(path.rfind('/') + 1)); }

bool ends_in_svg(const std::string& path) {
  if (path.size() < 4) return false;
  std::string end = path.substr(path.size() - 4);
  std::transform(end.begin(), end.end(), end.begin(), [](unsigned char letter) { return std::tolower(letter); });
  return end == ".svg";
}

// `members` are those that the page has beside what every page has.
std::string page_of(const std::string& kind, const std::string& file, const std::string& title,
                    const std::string& facts, const Json& members) {
  Json json = {{"format", kPageFormat},
               {"kind", kind},
               {"file", base_name(file)},
               {"title", printable(title)},
               {"facts", printable(facts, 400)}};
  json.update(members);
  return page(base_name(file) + " – memopt " + kind, script_text(json));
}

}  // namespace

void expect_plot(const std::string& path) {
  if (path.empty()) return;
  if (ends_in_svg(path)) {
    throw std::invalid_argument(
        fmt::format("--plot writes a page for a browser (HTML): expected a name such as {}html, not {}",
                    printable(path.substr(0, path.size() - 3)), printable(path)));
  }
  expect_pages("--plot");
  if (path != "-") expect_writable(path);
}

IterationLabels plain_labels(const swap::Problem& problem, const recompute::Extended* extended,
                             std::vector<std::string>& operations) {
  enum Name : std::uint32_t { kRead, kWrite, kLaunch, kReplay };
  operations = {"read", "write", "launch", "launch, computed again"};
  const std::size_t n = problem.operations.size();
  std::vector<char> replayed(n, 0), begins(n, 0);
  if (extended != nullptr) {
    for (const std::uint32_t at : extended->operation_at) {
      if (at < n) begins[at] = 1;
    }
    for (const std::uint32_t at : extended->step_at) {
      if (at < n) begins[at] = 2;  // what is left out there takes no place
    }
    for (std::size_t i = 0; i < n; ++i)
      replayed[i] = begins[i] == 2 || (begins[i] == 0 && i > 0 && replayed[i - 1] != 0);
  }
  IterationLabels labels;
  for (std::size_t i = 0; i < n; ++i) {
    const swap::Operation& operation = problem.operations[i];
    // The operations of a replay belong together.
    const bool same = i > 0 && (operation.continues || (replayed[i] != 0 && begins[i] == 0));
    if (!same) labels.steps.push_back({});
    labels.ranks.push_back(labels.steps.size() - 1);
    IterationLabels::Step& step = labels.steps.back();
    if (operation.kind == swap::Kind::kMalloc || operation.kind == swap::Kind::kFree) {
      if (step.name == kNoName) step.kind = operation.kind == swap::Kind::kMalloc ? StepKind::kMalloc : StepKind::kFree;
      continue;
    }
    if (!swap::is_access(operation)) continue;
    const bool write = operation.kind == swap::Kind::kWrite;
    step.kind = replayed[i] != 0 ? StepKind::kReplay : StepKind::kLaunch;
    step.name = replayed[i] != 0 ? kReplay : step.name != kNoName ? kLaunch : write ? kWrite : kRead;
  }
  for (std::size_t b = 0; b < problem.blocks.size(); ++b) {
    labels.blocks.push_back({.number = problem.blocks[b].id});
    if (extended != nullptr && extended->block_of[b] != b) labels.blocks.back().made_again = true;
  }
  if (extended != nullptr) {
    for (std::size_t b = 0; b < problem.blocks.size(); ++b) {
      labels.blocks[b].number = problem.blocks[extended->block_of[b]].id;
    }
  }
  return labels;
}

std::string plan_page(const PlanDrawing& drawing, const swap::Problem& problem, const swap::Decisions& decisions,
                      const recompute::Extended* extended) {
  const swap::Liveness liveness = swap::find_liveness(problem);
  std::vector<std::string> operations;
  ShownIteration iteration = show_iteration(problem, liveness, plain_labels(problem, extended, operations));
  iteration.times = drawing.times;
  ShownPlan plan;
  plan.swaps = drawing.swaps;
  plan.of_file = drawing.of_file;
  plan.point.feasible = true;
  plan.point.limit = problem.limit.value_or(0);
  plan.point.decisions = decisions;
  plan.point.report = swap::verify(problem, liveness, decisions);
  if (plan.point.report.fault) throw std::runtime_error("the plan does not hold: " + *plan.point.report.fault);
  plan.point.footprint = plan.point.report.footprint.value_or(0);
  plan.drawn = draw(problem, liveness, decisions);
  iteration.plans.push_back(std::move(plan));
  return page_of("plan", drawing.file, drawing.title, drawing.facts,
                 {{"operations", names_json(operations)}, {"iteration", iteration_json(iteration)}});
}

std::string layout_page(const std::string& file, const layout::Instance& instance, const layout::Solution& solution,
                        std::uint64_t lower_bound) {
  const auto& intervals = instance.problem.intervals;
  std::uint64_t begin = intervals.empty() ? 0 : intervals.front().begin, end = begin;
  std::map<std::uint64_t, std::int64_t> changes;  // of the load
  for (const layout::Interval& interval : intervals) {
    begin = std::min(begin, interval.begin);
    end = std::max(end, interval.end);
  }
  ShownIteration iteration;
  iteration.period = static_cast<double>(end - begin);
  ShownPlan plan;
  plan.swaps = false;
  plan.point.feasible = true;
  plan.point.footprint = solution.height;
  plan.drawn.emplace();
  plan.drawn->length = iteration.period;
  for (std::uint32_t i = 0; i < instance.problem.buffers.size(); ++i) {
    const layout::Buffer& buffer = instance.problem.buffers[i];
    const auto at = [&](std::uint64_t time) { return static_cast<double>(time - begin); };
    const layout::Interval hull = instance.problem.hull(i);
    iteration.blocks.push_back({.number = i,
                                .bytes = buffer.bytes,
                                .pinned = buffer.fixed != layout::kAnywhere,
                                .born = at(hull.begin),
                                .freed = at(hull.end)});
    iteration.block_names.push_back(instance.ids[i]);
    for (const layout::Interval& interval : instance.problem.intervals_of(i)) {
      plan.drawn->blocks.push_back({i, Phase::kThere, solution.offsets[i], at(interval.begin), at(interval.end)});
      changes[interval.begin] += static_cast<std::int64_t>(buffer.bytes);
      changes[interval.end] -= static_cast<std::int64_t>(buffer.bytes);
    }
  }
  std::int64_t load = 0;
  std::uint64_t peak_time = begin;
  const std::size_t together = (changes.size() + kMostLevels - 1) / kMostLevels;
  std::size_t number = 0;
  for (const auto& [time, change] : changes) {
    load += change;
    if (number++ % together == 0) iteration.load.push_back({static_cast<double>(time - begin), 0});
    iteration.load.back().bytes = std::max(iteration.load.back().bytes, static_cast<std::uint64_t>(load));
    if (static_cast<std::uint64_t>(load) <= iteration.peak_load) continue;
    iteration.peak_load = static_cast<std::uint64_t>(load);
    peak_time = time;
  }
  iteration.peak_at = static_cast<double>(peak_time - begin);
  for (std::uint32_t i = 0; i < instance.problem.buffers.size(); ++i) {
    for (const layout::Interval& interval : instance.problem.intervals_of(i)) {
      if (interval.begin <= peak_time && peak_time < interval.end) iteration.at_peak.push_back(i);
    }
  }
  std::stable_sort(iteration.at_peak.begin(), iteration.at_peak.end(), [&](std::uint32_t a, std::uint32_t b) {
    return iteration.blocks[a].bytes > iteration.blocks[b].bytes;
  });
  iteration.plans.push_back(std::move(plan));
  return page_of("layout", file, base_name(file),
                 fmt::format("{} buffers, height {}, lower bound {}", instance.problem.buffers.size(), solution.height,
                             lower_bound),
                 {{"plain_units", true},
                  {"begins_at", begin},
                  {"lower_bound", lower_bound},
                  {"operations", Json::array()},
                  {"iteration", iteration_json(iteration)}});
}

namespace {

// In which units, and up to where.
struct Units {
  double bytes = 1, ns = 1;  // that one of the axis's unit has
  const char *across = "", *up = "";
  const char *said_across = "", *said_up = "";  // formats of a point's two numbers
  double most = 0;                              // of the axis that goes up; 0: all points
};

// The most that the best strategy adds at any of the limits; 0: there is no plan.
double most_needed(const std::vector<TradeOffLine>& lines) {
  std::map<std::uint64_t, double> best;  // by limit
  for (const TradeOffLine& line : lines) {
    if (line.bound) continue;
    for (const TradeOff& point : line.points) {
      if (!std::isfinite(point.added_ns)) continue;
      const auto [at, first] = best.emplace(point.bytes, point.added_ns);
      if (!first) at->second = std::min(at->second, point.added_ns);
    }
  }
  double most = 0;
  for (const auto& [limit, added] : best) most = std::max(most, added);
  return most;
}

std::string draw_lines(const std::string& file, const std::string& title, const std::vector<TradeOffLine>& lines,
                       const Units& units) {
  Json drawn = Json::array();
  for (const TradeOffLine& line : lines) {
    std::vector<TradeOff> points = line.points;
    std::sort(points.begin(), points.end(), [](const TradeOff& a, const TradeOff& b) {
      return a.bytes != b.bytes ? a.bytes < b.bytes : a.added_ns < b.added_ns;
    });
    Json places = Json::array();
    for (const TradeOff& point : points) {
      const double across = static_cast<double>(point.bytes) / units.bytes, up = point.added_ns / units.ns;
      // No plan: a gap.
      places.push_back(std::isfinite(up)
                           ? Json{{"across", across},
                                  {"up", up},
                                  {"said", fmt::format("{}{}", fmt::format(fmt::runtime(units.said_across), across),
                                                       fmt::format(fmt::runtime(units.said_up), up))}}
                           : Json{{"across", across}, {"up", Json()}});
    }
    drawn.push_back({{"name", printable(line.name)}, {"bound", line.bound}, {"points", std::move(places)}});
  }
  return page_of("comparison", file, title, "",
                 {{"iteration", Json()},
                  {"trade_offs",
                   {{"across", units.across},
                    {"up", units.up},
                    {"most", units.most > 0 ? Json(units.most) : Json()},
                    {"lines", std::move(drawn)}}}});
}

}  // namespace

std::string trade_off_page(const std::string& file, const std::string& title, const std::vector<TradeOffLine>& lines) {
  return draw_lines(file, title, lines,
                    {kMib, 1e6, "footprint, MiB", "added time, ms an iteration", "{:.2f} MiB, ", "{:.3f} ms added"});
}

std::string trade_off_parts_page(const std::string& file, const std::string& title,
                                 const std::vector<TradeOffLine>& lines, std::uint64_t peak, double period_ns) {
  Units units{static_cast<double>(peak) / 100, period_ns / 100,     "limit, % of the peak load",
              "added time, % of an iteration", "within {:.1f} %, ", "{:.2f} % added"};
  units.most = 2 * most_needed(lines) / units.ns;
  return draw_lines(file, title, lines, units);
}

}  // namespace memopt::tools
