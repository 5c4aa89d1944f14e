// How long plans take on problems shaped like training, on one thread: the first plan, a skyline more, and solving
// again after a few changes. The label has the height in parts of the lower bound.
#include <benchmark/benchmark.h>

#include <limits>
#include <string>
#include <vector>

#include "planner/layout/portfolio/solve.h"
#include "planner/layout/problem/bounds.h"
#include "planner/layout/skyline/priorities.h"
#include "planner/layout/skyline/skyline.h"
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
  const std::uint64_t bound = lower_bound_of(problem, Sections(problem));
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
  const Sections sections(problem);
  Skyline skyline(problem, sections);
  std::vector<std::uint32_t> priorities;
  Solution solution;
  for (auto _ : state) {
    rank(problem, sections, keys_of(problem, sections, {1, 1}), priorities);
    const Deadline deadline({});
    Allowance allowance(deadline);
    skyline.run(priorities, std::numeric_limits<std::uint64_t>::max(), allowance, solution);
  }
  label(state, problem, solution);
}

void solve_again(benchmark::State& state, const Problem& problem, const std::vector<std::uint64_t>& before) {
  Outcome outcome;
  for (auto _ : state) benchmark::DoNotOptimize(outcome = solve_again(problem, before, {}));
  label(state, problem, outcome.solution);
  std::size_t moved = 0;
  for (std::size_t i = 0; i < before.size(); ++i) moved += outcome.solution.offsets[i] != before[i];
  state.counters["moved"] = static_cast<double>(moved);
}

std::vector<std::uint64_t> first_offsets(const Problem& problem) {
  Limits limits;
  limits.work = 1;
  return solve(problem, limits).solution.offsets;
}

void again_after_five_grew(benchmark::State& state) {
  Problem problem = problem_of(state);
  const std::vector<std::uint64_t> before = first_offsets(problem);
  for (std::size_t i = 7; i < problem.buffers.size(); i += problem.buffers.size() / 5) problem.buffers[i].bytes += 512;
  solve_again(state, problem, before);
}

void again_with_a_new_one(benchmark::State& state) {
  Problem problem = problem_of(state);
  std::vector<std::uint64_t> before = first_offsets(problem);
  const Buffer like = problem.buffers[problem.buffers.size() / 3];
  problem.add(like.bytes, problem.intervals[like.first]);
  before.push_back(kAnywhere);
  solve_again(state, problem, before);
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  for (const int rounds : {1, 2}) {
    for (const int buffers : {5'000, 60'000, 200'000}) benchmark->Args({buffers, rounds});
  }
  benchmark->Unit(benchmark::kMillisecond);
}

BENCHMARK(first_plan)->Apply(sizes);
BENCHMARK(one_more_skyline)->Apply(sizes);
BENCHMARK(again_after_five_grew)->Apply(sizes);
BENCHMARK(again_with_a_new_one)->Apply(sizes);

}  // namespace
}  // namespace memopt::layout

BENCHMARK_MAIN();
