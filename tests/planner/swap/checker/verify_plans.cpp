// Reads plans (memopt-plan-1 or -2, one a line) and writes, a line each, what our verifier says about them: JSON with
// the names that tools of the format use. For tests that compare it with an independent checker.
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "planner/swap/files/plan_file.h"
#include "planner/swap/simulation/simulator.h"
#include "planner/swap/simulation/verify.h"

namespace {

using nlohmann::json;
using namespace memopt::swap;

json result_of(const std::string& line) {
  PlanFile plan;
  try {
    plan = parse_plan(line);
  } catch (const Invalid& error) {
    return {{"valid", false}, {"error", error.what()}};
  }
  const Report report = verify(plan.problem, plan.decisions, Rules{.no_early = false});
  if (report.fault) return {{"valid", false}, {"error", *report.fault}};

  // The quick way must say the same as the one that looks at every iteration.
  const Liveness liveness = find_liveness(plan.problem);
  Simulator simulator(plan.problem, liveness);
  const Timing quick = simulator.evaluate(plan.decisions);
  if (quick.fault != Fault::kNone || std::abs(quick.added_ns - report.timing.added_ns) > 1e-3) {
    return {{"valid", false}, {"error", "evaluate() and record() differ"}};
  }
  std::ostringstream written;
  write_plan(plan, written);
  return {{"valid", true},
          {"added_ns", report.timing.added_ns},
          {"converged", report.timing.steady},
          {"iterations", report.timing.iterations},
          {"stall_malloc_ns", report.timing.stall_malloc_ns},
          {"stall_access_ns", report.timing.stall_access_ns},
          {"footprint", report.footprint ? json(*report.footprint) : json(nullptr)},
          {"peak_live", report.peak_live},
          {"peak_resident", report.peak_resident},
          {"early_swap_ins", report.timing.early_swap_ins},
          {"returns_elsewhere", report.returns_elsewhere},
          {"remapped_chunks", report.remapped_chunks},
          {"bytes_out", report.bytes_out},
          {"bytes_dropped", report.bytes_dropped},
          {"bytes_in", report.bytes_in},
          {"out_utilisation", report.out_utilisation},
          {"in_utilisation", report.in_utilisation},
          {"written", written.str()}};
}

}  // namespace

int main() {
  std::string line;
  while (std::getline(std::cin, line)) std::cout << result_of(line).dump() << '\n';
}
