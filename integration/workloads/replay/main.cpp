// Replays an operation trace through the CUDA driver API, with contents that are verified; see ../README.md.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <thread>
#include <vector>

#include "driver.h"
#include "meter.h"
#include "options.h"
#include "player.h"
#include "simulator.h"
#include "steady.h"
#include "summary.h"
#include "trace.h"

namespace {

using namespace replay;

Trace load(const Options& options) {
  Trace trace = read_trace(options.trace);
  if (!trace.cut.empty()) {
    std::fprintf(stderr, "replay: %s ends early, what is there is played: %s\n", options.trace.c_str(),
                 trace.cut.c_str());
  }
  if (options.allocations_only) return allocations_only(trace);
  if (trace.accesses == 0) {
    throw TraceError(
        options.trace +
        ": allocations and frees alone, no reads and writes: nothing to verify; --allocations-only replays it");
  }
  return trace;
}

std::string module_path(const Options& options) {
  if (!options.module.empty()) return options.module;
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "replay_kernels.fatbin";
}

std::size_t iterations_of(const Options& options, const Trace& trace, const std::optional<Steady>& steady) {
  if (options.iterations && !steady) {
    throw TraceError(options.trace + ": no iteration to repeat: the trace's " +
                     std::to_string(trace.operations.size()) +
                     " operations do not end in an exact repeat that frees what it allocates");
  }
  const std::size_t iterations = options.iterations.value_or(steady ? steady->iterations : 1);
  if (options.warm_up.value_or(0) >= iterations) {
    throw TraceError("--warm-up " + std::to_string(*options.warm_up) + " leaves nothing of " +
                     std::to_string(iterations) + " iterations");
  }
  return iterations;
}

int run(const Options& options) {
  const Trace trace = load(options);
  const std::optional<Steady> steady = find_steady(trace);
  const std::size_t iterations = iterations_of(options, trace, steady);

  const Device device(module_path(options));
  const Simulator simulator;
  Load load;
  Meter meter(simulator, options.threads, iterations, options.warm_up.value_or(iterations / 2));
  const Stage stage{trace,      steady ? &*steady : nullptr,
                    options,    device,
                    simulator,  load,
                    iterations, [&meter](std::size_t done, unsigned thread) { meter.iteration_done(done, thread); }};

  Summary summary;
  summary.trace = options.trace;
  summary.trace_operations = trace.operations.size();
  summary.ignored = trace.ignored;
  summary.period = steady ? steady->period : 0;
  summary.trace_iterations = steady ? steady->iterations : 0;
  summary.streams = options.streams;
  summary.threads = options.threads;
  summary.iterations = iterations;

  std::vector<Summary> parts(options.threads);
  const auto play = [&](unsigned thread) {
    device.make_current();
    Player player(stage, thread);
    player.play();
    if (options.corrupt_at && thread == 0 && !player.corrupted()) {
      std::fprintf(stderr, "replay: --corrupt-at found nothing to corrupt\n");
    }
    const Verified& verified = player.verified();
    Summary& part = parts[thread];
    part.operations = player.operations();
    part.first_reads = player.first_reads();
    part.bytes_verified = verified.bytes;
    part.pages_verified = verified.pages;
    part.mismatches = verified.mismatches;
    part.checksum = verified.checksum;
  };
  {
    std::vector<std::thread> threads;
    for (unsigned i = 1; i < options.threads; ++i) threads.emplace_back(play, i);
    play(0);
    for (std::thread& thread : threads) thread.join();
  }
  for (const Summary& part : parts) {
    summary.operations += part.operations;
    summary.first_reads += part.first_reads;
    summary.bytes_verified += part.bytes_verified;
    summary.pages_verified += part.pages_verified;
    summary.mismatches += part.mismatches;
    summary.checksum = (summary.checksum ^ part.checksum) * 0x100000001b3u;
  }
  summary.peak_load = load.peak();
  if (simulator.present()) {
    summary.simulated = Summary::Simulated{meter.held_peak(), meter.held_peak_after_warm_up(), meter.warm_up(),
                                           meter.steady_iterations(), meter.rates()};
  }
  if (!options.json.empty()) {
    if (const auto error = write_json(summary, options.json)) {
      std::fprintf(stderr, "replay: --json: %s\n", error->c_str());
      return kExitUsage;
    }
  }
  print(summary, options.quiet);
  return summary.mismatches == 0 ? 0 : kExitMismatch;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  try {
    return run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "replay: %s\n", error.what());
    return kExitUsage;
  }
}
