#include "planner/iteration/iteration_plan.h"

#include <algorithm>

#include "planner/layout/solve.h"
#include "planner/layout/validation.h"

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

IterationPlan laid_out(IterationLifetimes lifetimes, std::uint32_t rounds, const layout::Limits& limits) {
  IterationPlan plan;
  plan.lifetimes = std::move(lifetimes);
  plan.rounds = rounds;
  plan.problem = layout_problem(plan.lifetimes, rounds);
  plan.outcome = layout::solve(plan.problem, limits);
  return plan;
}

}  // namespace

layout::Problem layout_problem(const IterationLifetimes& lifetimes, std::uint32_t rounds) {
  layout::Problem problem;
  const std::uint64_t operations = lifetimes.operations * rounds;
  // Needed from one operation to another, both included, the second perhaps an iteration later.
  const auto add = [&](std::uint64_t bytes, std::uint64_t begin, std::uint64_t end) {
    if (end - begin >= operations - 1) {
      problem.add(bytes, {0, operations});
    } else if (end < operations) {
      problem.add(bytes, {begin, end + 1});
    } else {
      const layout::Interval parts[] = {{0, end - operations + 1}, {begin, operations}};
      problem.add(bytes, parts);
    }
  };
  for (const LaneMallocs& lane : lifetimes.lanes) {
    for (const MallocLife& malloc : lane.mallocs) {
      const std::uint64_t bytes = place_bytes(malloc.bytes);
      if (rounds > 1) {
        for (std::uint64_t round = 0; round < rounds; ++round) {
          const std::uint64_t shift = round * lifetimes.operations;
          add(bytes, malloc.born + shift, malloc.freed + shift);
        }
      } else if (malloc.always) {
        for (std::uint32_t place = 0; place < malloc.places; ++place) add(bytes, 0, operations - 1);
      } else {
        add(bytes, malloc.born, malloc.freed);
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
  IterationPlan plan = laid_out(lifetimes(store, iteration, true), 1, options.limits);
  if (options.unroll) {
    IterationLifetimes separate = lifetimes(store, iteration, false);
    const std::uint32_t rounds = rounds_needed(separate);
    if (rounds > 1 && rounds <= kMostRounds && separate.lanes.size() == 1) {
      IterationPlan unrolled = laid_out(std::move(separate), rounds, options.limits);
      if (unrolled.outcome.solution.height < plan.outcome.solution.height) plan = std::move(unrolled);
    }
  }
  plan.iteration = iteration;
  plan.detected_at = store.last_sequence();
  if (auto found = layout::validate(plan.problem, plan.outcome.solution)) {
    fault = std::move(*found);
    return std::nullopt;
  }
  return plan;
}

}  // namespace memopt::planner
