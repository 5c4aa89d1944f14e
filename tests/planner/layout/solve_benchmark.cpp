// How long plans take on problems shaped like training, on one thread: the first plan, a skyline more, and solving
// again after a few changes. The label has the height in parts of the lower bound.
#include <benchmark/benchmark.h>

#include <limits>
#include <string>
#include <vector>

#include "planner/layout/bounds.h"
#include "planner/layout/priorities.h"
#include "planner/layout/skyline.h"
#include "planner/layout/solve.h"
#include "tests/planner/layout/training_like.h"

namespace memopt::layout {
namespace {

Problem problem_of(const benchmark::State& state) {
  TrainingShape shape;
  shape.buffers = static_cast<std::uint64_t>(state.range(0)) * 9 / 7;  // that many come out
  shape.two_rounds = state.range(1) == 2;
  return training_like(shape, 1);
}

void label(benchmark::State& state, const Problem& problem, const Solution& solution) {
  const std::uint64_t bound = lower_bound_of(problem, Timeline(problem));
  state.SetLabel("height " + std::to_string(static_cast<double>(solution.height) / static_cast<double>(bound)));
  state.counters["buffers"] = static_cast<double>(problem.buffers.size());
}

// The least work gives one skyline: what a program waits for.
void first_plan(benchmark::State& state) {
  const Problem problem = problem_of(state);
  Limits limits;
  limits.work = 1;
  Outcome outcome;
  for (auto _ : state) benchmark::DoNotOptimize(outcome = solve(problem, limits));
  label(state, problem, outcome.solution);
}

void one_more_skyline(benchmark::State& state) {
  const Problem problem = problem_of(state);
  const Timeline timeline(problem);
  Skyline skyline(problem, timeline);
  std::vector<std::uint32_t> priorities;
  Solution solution;
  for (auto _ : state) {
    rank(problem, timeline, keys_of(problem, timeline, {1, 1}), priorities);
    const Watch watch({});
    Allowance allowance(watch);
    skyline.run(priorities, std::numeric_limits<std::uint64_t>::max(), allowance, solution);
  }
  label(state, problem, solution);
}

void again_after_few_changes(benchmark::State& state) {
  Problem problem = problem_of(state);
  Limits limits;
  limits.work = 1;
  const std::vector<std::uint64_t> before = solve(problem, limits).solution.offsets;
  for (std::size_t i = 7; i < problem.buffers.size(); i += problem.buffers.size() / 5) problem.buffers[i].bytes += 512;
  Outcome outcome;
  for (auto _ : state) benchmark::DoNotOptimize(outcome = solve_again(problem, before, {}));
  label(state, problem, outcome.solution);
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  for (const int rounds : {1, 2}) {
    for (const int buffers : {5'000, 60'000, 200'000}) benchmark->Args({buffers, rounds});
  }
  benchmark->Unit(benchmark::kMillisecond);
}

BENCHMARK(first_plan)->Apply(sizes);
BENCHMARK(one_more_skyline)->Apply(sizes);
BENCHMARK(again_after_few_changes)->Args({5'000, 1})->Args({5'000, 2})->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace memopt::layout

BENCHMARK_MAIN();
