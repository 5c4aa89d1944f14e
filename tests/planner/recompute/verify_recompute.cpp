// Reads plans that compute again (memopt-plan-2, one a line), and swap or not, with places or without, and writes, a
// line each, what we say they come to: JSON with the names of the judge (recompute_judge.py), which shares no code with
// us.
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "planner/recompute/combined/extended.h"
#include "planner/recompute/model/plan.h"
#include "planner/swap/files/plan_file.h"
#include "planner/swap/simulation/verify.h"

namespace {

using nlohmann::json;
using namespace memopt;

std::vector<recompute::StepPlace> places_of(const std::vector<swap::RecomputeStep>& steps) {
  std::vector<recompute::StepPlace> places;
  for (std::uint32_t k = 0; k < steps.size(); ++k) {
    for (const auto& [block, place] : steps[k].places) places.push_back({k, block, place});
  }
  return places;
}

json result_of(const std::string& line) {
  try {
    const swap::PlanFile plan = swap::parse_plan(line);
    const swap::Liveness liveness = swap::find_liveness(plan.problem);
    const recompute::Graph graph = recompute::make_graph(plan.problem, liveness);
    recompute::Steps steps;
    for (const swap::RecomputeStep& step : plan.recompute) {
      if (step.drop) {
        steps.push_back({step.before, recompute::Step::Kind::kDrop, step.what});
        continue;
      }
      const std::uint32_t launch = graph.launch_at[step.what];
      if (launch == recompute::kNone || graph.launches[launch].first != step.what)
        return {{"valid", false}, {"error", "no launch begins there"}};
      steps.push_back({step.before, recompute::Step::Kind::kReplay, launch});
    }
    const recompute::Cost cost = recompute::find_cost(plan.problem, liveness, graph, steps);
    if (cost.fault) return {{"valid", false}, {"error", *cost.fault}};
    std::ostringstream written;
    swap::write_plan(plan, written);
    json result = {{"valid", true},
                   {"added_ns", cost.added_ns},
                   {"replays", cost.replays},
                   {"drops", cost.drops},
                   {"written", written.str()}};
    if (plan.problem.layout || !plan.decisions.swaps.empty()) {
      recompute::Extended extended = recompute::extend(plan.problem, graph, steps);
      extended.problem.layout = plan.problem.layout;
      swap::Decisions decisions{recompute::swaps_of_lives(extended, plan.decisions.swaps), {}};
      if (plan.problem.layout)
        decisions.places = recompute::places_of_lives(extended, plan.decisions.places, places_of(plan.recompute));
      const swap::Report report = swap::verify(extended.problem, decisions, {.no_early = !plan.problem.layout});
      if (const auto fault = recompute::find_launch_fault(extended.problem, decisions.swaps))
        return {{"valid", false}, {"error", *fault}};
      if (report.fault) return {{"valid", false}, {"error", *report.fault}};
      result["added_ns"] = cost.added_ns + report.timing.added_ns;
      result["converged"] = report.timing.steady;
      if (report.footprint) result["footprint"] = *report.footprint;
      return result;
    }
    if (plan.problem.limit && cost.peak > *plan.problem.limit) return {{"valid", false}, {"error", "above the limit"}};
    result["footprint"] = cost.peak;
    return result;
  } catch (const swap::Invalid& error) {
    return {{"valid", false}, {"error", error.what()}};
  }
}

}  // namespace

int main() {
  std::string line;
  while (std::getline(std::cin, line)) std::cout << result_of(line).dump() << '\n';
}
