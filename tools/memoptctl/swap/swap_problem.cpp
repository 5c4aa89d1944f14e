#include "tools/memoptctl/swap/swap_problem.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "planner/sending/swap_plan.h"
#include "planner/swap/files/dtr_log.h"
#include "planner/swap/files/g10_tables.h"
#include "planner/swap/model/machines.h"
#include "shm/sizes.h"
#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/plan/file_plan.h"
#include "tools/memoptctl/plan/plan_command.h"

namespace memopt::tools {
namespace {

std::optional<SwapProblem> observed(input::File& file, bool idle) {
  FilePlanning planning = plan_file(file, {.iteration = true, .idle = idle});
  if (!planning.plan) {
    fmt::print("{}", plan_table(planning));
    return std::nullopt;
  }
  SwapProblem result;
  try {
    planner::IterationProblem& iteration = *planning.plan->iteration;
    planner::join_launches(iteration.ranks, iteration.problem);
    result.file.problem = std::move(iteration.problem);
    result.observed = {planning.recording, std::move(iteration.ranks), std::move(iteration.origins)};
    swap::find_liveness(result.file.problem);
  } catch (const swap::Invalid& error) {
    // Threads that change their order from iteration to iteration can do that.
    throw std::runtime_error(
        fmt::format("{}: swaps can't be planned for its iteration, whose blocks must live "
                    "for at most 7 more and be allocated and freed once in each: {}",
                    file.name(), error.what()));
  }
  if (const auto reason = planner::why_not_swapped(result.file.problem)) {
    throw std::runtime_error(file.name() + ": swaps can't be planned, as " + *reason);
  }
  result.blind_launches = planning.blind_launches;
  result.damage = planning.damage;
  result.times = times_text(planning);
  return result;
}

// What names neither itself nor a machine.
SwapProblem published(input::File& file, swap::PlanFile read, const char* times) {
  SwapProblem result;
  result.file = std::move(read);
  result.file.problem.name = printable(file.path().substr(file.path().rfind('/') + 1));
  result.file.problem.machine = swap::parse_machine("gtx1080ti");
  result.times = times;
  result.launches = true;
  return result;
}

}  // namespace

bool is_iteration(const input::File& file) { return file.begins_with('{') || swap::is_g10_table(file); }

std::optional<std::uint64_t> parse_limit(const std::string& text, std::uint64_t whole) {
  if (const auto part = shm::parse_part(text)) return shm::part_of(*part, whole);
  return shm::parse_bytes(text);
}

std::uint64_t limit_of(const std::string& option, const std::string& text, std::uint64_t whole) {
  const auto limit = parse_limit(text, whole);
  if (limit) return *limit;
  throw std::invalid_argument(fmt::format(
      "{}: expected bytes, such as 300MiB, or a percentage of the peak load, such as 50%, from 0 to 2^62 bytes, not {}",
      option, printable(text)));
}

std::vector<std::uint64_t> limits_of(const SwapPlanOptions& options, std::span<const int> parts, std::uint64_t peak) {
  std::vector<std::uint64_t> limits;
  for (const std::string& text : options.limits) limits.push_back(limit_of("--limits", text, peak));
  if (!limits.empty()) return limits;
  for (const int part : parts) limits.push_back(limit_of("--limits", fmt::format("{}%", part), peak));
  return limits;
}

std::optional<swap::Machine> machine_of(const std::string& text) {
  if (text.empty()) return std::nullopt;
  try {
    return swap::parse_machine(text);
  } catch (const swap::Invalid& error) {
    throw std::invalid_argument(std::string("--machine: ") + error.what());
  }
}

std::optional<SwapProblem> read_problem(const SwapPlanOptions& options, input::File& file) {
  std::optional<swap::Machine> machine = machine_of(options.machine);
  std::optional<SwapProblem> result;
  if (swap::is_dtr_log(file)) {
    result = published(file, swap::read_dtr_log(file), "the log's; calls one after the other");
  } else if (swap::is_g10_table(file)) {
    result = published(file, swap::read_g10_table(file), "the table's, cycles at 1.2 GHz; kernels one after the other");
  } else if (is_iteration(file)) {
    result.emplace();
    result->file = swap::read_plan(file);
    result->launches = result->file.launches;
  } else {
    result = observed(file, options.idle);
    if (!result) return std::nullopt;
  }
  swap::Problem& problem = result->file.problem;
  if (machine) {
    machine->remap_ns = problem.machine.remap_ns;
    problem.machine = *machine;
  }
  if (options.has("--remap-time")) {
    if (!problem.layout) throw std::invalid_argument("--remap-time is for problems with a layout");
    problem.machine.remap_ns = 1e3 * options.remap_us;
  }
  problem.clean_drops = options.clean_drops;
  if (!problem.limit && (options.compare || !options.limit.empty())) problem.limit = 0;
  try {
    result->liveness = swap::find_liveness(problem);
  } catch (const swap::Invalid& error) {
    throw std::runtime_error(file.name() + ": " + error.what());
  }
  return result;
}

}  // namespace memopt::tools
