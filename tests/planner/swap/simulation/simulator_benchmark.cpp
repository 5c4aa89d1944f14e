// What a full evaluation of a plan costs: the simulator, on one thread.
#include <benchmark/benchmark.h>

#include "planner/swap/model/liveness.h"
#include "planner/swap/search/search.h"
#include "planner/swap/simulation/simulator.h"
#include "tests/planner/swap/layers.h"

namespace memopt::swap {
namespace {

// Seven operations and two blocks a layer; with as many swaps as the search finds in a few attempts.
void full_evaluation(benchmark::State& state) {
  const Problem problem = testing::layers(static_cast<std::uint32_t>(state.range(0)), 1 << 20);
  const Liveness liveness = find_liveness(problem);
  SearchLimits limits;
  limits.time = std::chrono::nanoseconds::max();
  limits.attempts = 5;
  const Decisions decisions = search(problem, liveness, Objective::kFootprint, limits).decisions;
  Simulator simulator(problem, liveness);
  for (auto _ : state) benchmark::DoNotOptimize(simulator.evaluate(decisions));
  state.SetItemsProcessed(state.iterations());
  state.counters["operations"] = static_cast<double>(problem.operations.size());
  state.counters["swaps"] = static_cast<double>(decisions.swaps.size());
}

BENCHMARK(full_evaluation)->Arg(430)->Arg(4300)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace memopt::swap

BENCHMARK_MAIN();
