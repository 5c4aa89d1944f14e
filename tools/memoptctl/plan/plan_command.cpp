#include "tools/memoptctl/plan/plan_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <utility>
#include <vector>

#include "planner/swap/files/plan_file.h"
#include "tools/memoptctl/common/output_text.h"
#include "tools/memoptctl/common/printable.h"

namespace memopt::tools {
namespace {

constexpr int kExitNoIteration = 4;

std::string ratio(std::uint64_t bytes, std::uint64_t load) {
  return load == 0 ? "-" : fmt::format("{:.4f}", static_cast<double>(bytes) / static_cast<double>(load));
}

std::string both(std::uint64_t bytes) {
  return fmt::format("{} ({} bytes)", bytes_text(static_cast<double>(bytes)), bytes);
}

std::string iteration_text(const planner::IterationProblem& iteration) {
  swap::PlanFile file{.problem = iteration.problem, .decisions = {{}, iteration.places}, .comment = {}, .spelling = {}};
  file.spelling.form = swap::Spelling::Form::kObserved;
  std::ostringstream text;
  swap::write_plan(file, text);
  return std::move(text).str();
}

}  // namespace

std::string plan_table(const FilePlanning& planning) {
  std::vector<std::pair<std::string, std::string>> rows;
  if (planning.plan) {
    const FilePlan& plan = *planning.plan;
    if (plan.iteration) rows.emplace_back("times", times_text(planning));
    const std::vector<std::pair<std::string, std::string>> found = {
        {"operations per iteration", fmt::format("{}", plan.operations)},
        {"iteration found at", fmt::format("record {} of {}", plan.found_at, plan.records)},
        {"first iteration", fmt::format("from record {}", plan.began_at)},
        {"plans found", fmt::format("{}", plan.plans)},
        {"allocations", fmt::format("{} in {} lane{}", plan.mallocs, plan.lanes, plan.lanes == 1 ? "" : "s")},
        {"persistent", fmt::format("{} blocks, {}", plan.persistent_blocks, both(plan.persistent_bytes))},
        {"peak load", both(plan.peak_load)},
        {"slab", both(plan.slab)},
        {"lower bound of the slab", both(plan.lower_bound)},
        {"footprint", both(plan.footprint)},
        {"footprint / peak load", ratio(plan.footprint, plan.peak_load)},
        {"  of it by rounding to 512 B", ratio(plan.rounding, plan.peak_load)}};
    rows.insert(rows.end(), found.begin(), found.end());
    if (plan.rounds > 1) {
      rows.emplace_back("iterations planned as one", fmt::format("{}", plan.rounds));
      rows.emplace_back("  places in turn instead",
                        ratio(plan.footprint - plan.slab + plan.in_turn_slab, plan.peak_load));
    }
    rows.emplace_back("layout", plan.solver);
    rows.emplace_back("planning time", fmt::format("{:.1f} ms", plan.seconds * 1000));
  } else {
    rows.emplace_back("no iteration found", planning.note.empty() ? "there is no operation" : planning.note);
  }
  if (!planning.damage.empty()) rows.emplace_back("damaged", planning.damage);
  if (!planning.assumed.empty()) rows.emplace_back("assumed", planning.assumed);
  if (planning.ignored != 0) {
    rows.emplace_back("ignored", fmt::format("{} accesses to what was never allocated", planning.ignored));
  }
  std::size_t widest = 0;
  for (const auto& [name, value] : rows) widest = std::max(widest, name.size());
  std::string table;
  for (const auto& [name, value] : rows) table += fmt::format("{:{}}  {}\n", name, widest, value);
  return table;
}

int plan(const PlanOptions& options, input::File& file) {
  expect_writable(options.json);
  expect_writable(options.buffers);
  const FilePlanning planning =
      plan_file(file, {.iteration = !options.json.empty(), .buffers = !options.buffers.empty()});
  fmt::print("{}", plan_table(planning));
  if (!planning.plan) return kExitNoIteration;
  if (!options.json.empty()) write_text(options.json, iteration_text(*planning.plan->iteration));
  if (!options.buffers.empty()) write_text(options.buffers, planning.plan->buffers);
  return 0;
}

}  // namespace memopt::tools
