#include "planner/iteration/iteration_plan.h"

#include <algorithm>

#include "planner/iteration/layout/validation.h"

namespace memopt::planner {
namespace {

// More would make a plan long for little.
constexpr std::uint32_t kMostRounds = 4;

std::uint32_t rounds_needed(const IterationLifetimes& lifetimes) {
  std::uint32_t rounds = 1;
  for (const LaneMallocs& lane : lifetimes.lanes) {
    for (const MallocLife& malloc : lane.mallocs) rounds = std::max(rounds, malloc.places);
  }
  return rounds;
}

IterationPlan laid_out(IterationLifetimes lifetimes, std::uint32_t rounds, const layout::Heuristics& heuristics) {
  IterationPlan plan;
  plan.lifetimes = std::move(lifetimes);
  plan.rounds = rounds;
  plan.problem = layout_problem(plan.lifetimes, rounds);
  plan.outcome = layout::solve(plan.problem, heuristics);
  return plan;
}

}  // namespace

layout::Problem layout_problem(const IterationLifetimes& lifetimes, std::uint32_t rounds) {
  layout::Problem problem;
  problem.operations = lifetimes.operations * rounds;
  for (const LaneMallocs& lane : lifetimes.lanes) {
    for (const MallocLife& malloc : lane.mallocs) {
      const std::uint64_t bytes = layout::round_up(malloc.bytes);
      if (rounds > 1) {
        for (std::uint64_t round = 0; round < rounds; ++round) {
          const std::uint64_t shift = round * lifetimes.operations;
          problem.buffers.push_back({bytes, malloc.born + shift, malloc.freed + shift});
        }
      } else if (malloc.always) {
        problem.buffers.insert(problem.buffers.end(), malloc.places, {bytes, 0, lifetimes.operations - 1});
      } else {
        problem.buffers.push_back({bytes, malloc.born, malloc.freed});
      }
    }
  }
  return problem;
}

std::vector<std::uint64_t> IterationPlan::offsets(std::size_t lane, std::size_t malloc) const {
  std::size_t first = 0;
  const auto count = [&](const MallocLife& life) { return rounds > 1 ? rounds : life.places; };
  for (std::size_t i = 0; i < lane; ++i) {
    for (const MallocLife& life : lifetimes.lanes[i].mallocs) first += count(life);
  }
  const LaneMallocs& its = lifetimes.lanes[lane];
  const std::size_t index = malloc % its.mallocs.size();
  const std::size_t part = malloc / its.mallocs.size();
  for (std::size_t i = 0; i < index; ++i) first += count(its.mallocs[i]);
  const std::size_t turns = count(its.mallocs[index]);
  std::vector<std::uint64_t> result;
  for (std::size_t k = 0; k < turns; ++k) {
    result.push_back(outcome.solution.offsets[first + (k * its.parts + part) % turns]);
  }
  return result;
}

std::optional<IterationPlan> plan_iteration(const OperationStore& store, const Iteration& iteration,
                                            const PlanningOptions& options, std::string& fault) {
  IterationPlan plan = laid_out(lifetimes(store, iteration, true), 1, options.heuristics);
  if (options.unroll) {
    IterationLifetimes separate = lifetimes(store, iteration, false);
    const std::uint32_t rounds = rounds_needed(separate);
    if (rounds > 1 && rounds <= kMostRounds && separate.lanes.size() == 1) {
      IterationPlan unrolled = laid_out(std::move(separate), rounds, options.heuristics);
      if (unrolled.outcome.solution.bytes < plan.outcome.solution.bytes) plan = std::move(unrolled);
    }
  }
  plan.iteration = iteration;
  plan.detected_at = store.last_sequence();
  if (auto found = layout::find_fault(plan.problem, plan.outcome.solution)) {
    fault = std::move(*found);
    return std::nullopt;
  }
  return plan;
}

}  // namespace memopt::planner
