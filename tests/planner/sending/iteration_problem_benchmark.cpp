// What it takes to have the swap planner's problem of an iteration: built, and through a file in memory.
//
// The iteration is that of a published trace (MEMOPT_SHARED), the one with the most operations of those that there are,
// or made up: forward and backward through so many layers.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "planner/iteration/trace_file.h"
#include "planner/sending/iteration_problem.h"
#include "planner/swap/files/plan_file.h"
#include "tests/planner/iteration/stream.h"

namespace memopt::planner {
namespace {

constexpr const char* kLargestTrace = "blockInfo_resnet_315.text";

std::uint64_t same(std::uint64_t ticks) { return ticks; }

IterationPlanner::Options unrolled() {
  IterationPlanner::Options options;
  options.planning.unroll = true;
  options.planning.pools = false;
  return options;
}

void iterate(Stream& stream, std::size_t layers) {
  std::vector<std::uint64_t> activations;
  for (std::size_t i = 0; i < layers; ++i) {
    activations.push_back(stream.malloc((1 + i % 24) << 18, 10 + i));
    stream.launch(static_cast<std::uint32_t>(i), {activations[i == 0 ? 0 : i - 1], activations[i]});
    stream.took(1000);
  }
  for (std::size_t i = layers; i-- > 0;) {
    stream.launch(static_cast<std::uint32_t>(layers + i), {activations[i]});
    stream.took(2000);
    stream.free(activations[i]);
  }
}

// The store forgets nothing meanwhile.
IterationProblemBuilder made_up(std::size_t layers) {
  Stream stream(unrolled());
  while (stream.plans.empty()) iterate(stream, layers);
  return {stream.planner.store(), *stream.planner.plan(), "made up"};
}

std::optional<IterationProblemBuilder> published() {
  const char* shared = std::getenv("MEMOPT_SHARED");
  const std::string path = std::string(shared == nullptr ? "" : shared) + "/traces/" + kLargestTrace;
  if (!std::filesystem::exists(path)) return std::nullopt;
  const Trace trace = read_trace(path);
  Stream stream(unrolled());
  for (const TraceOperation& operation : trace.operations) {
    stream.add(record_of(operation, stream.builder));
    if (!stream.plans.empty()) {
      return IterationProblemBuilder(stream.planner.store(), *stream.planner.plan(), kLargestTrace);
    }
  }
  return std::nullopt;
}

// Layers; 0: the published trace.
std::optional<IterationProblemBuilder> builder_of(benchmark::State& state) {
  if (state.range(0) != 0) return made_up(static_cast<std::size_t>(state.range(0)));
  std::optional<IterationProblemBuilder> builder = published();
  if (!builder) state.SkipWithError("MEMOPT_SHARED names no folder with the trace");
  return builder;
}

void built(benchmark::State& state) {
  const auto builder = builder_of(state);
  if (!builder) return;
  std::size_t operations = 0;
  for (auto _ : state) {
    const IterationProblem iteration = builder->build(same);
    operations = iteration.problem.operations.size();
    benchmark::DoNotOptimize(operations);
  }
  state.counters["operations"] = static_cast<double>(operations);
}

void through_a_file(benchmark::State& state) {
  const auto builder = builder_of(state);
  if (!builder) return;
  std::size_t operations = 0;
  for (auto _ : state) {
    IterationProblem iteration = builder->build(same);
    swap::PlanFile file{
        .problem = std::move(iteration.problem), .decisions = {{}, iteration.places}, .comment = {}, .spelling = {}};
    std::ostringstream text;
    swap::write_plan(file, text);
    const swap::PlanFile read = swap::parse_plan(text.str());
    operations = read.problem.operations.size();
    benchmark::DoNotOptimize(operations);
  }
  state.counters["operations"] = static_cast<double>(operations);
}

BENCHMARK(built)->Arg(0)->Arg(100)->Arg(10000)->Unit(benchmark::kMicrosecond);
BENCHMARK(through_a_file)->Arg(0)->Arg(100)->Arg(10000)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace memopt::planner

BENCHMARK_MAIN();
