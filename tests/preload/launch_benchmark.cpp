// What counting costs: a launch through the shim against the bare call of the same function, in one process. Runs with
// the shim preloaded and the fake driver. After the benchmarks it prints both and their difference.
#include <benchmark/benchmark.h>
#include <dlfcn.h>

#include <cstdio>
#include <map>
#include <string>

#include "driver_calls.h"
#include "fake_driver.h"

namespace {

using Launch = PFN_cuLaunchKernel_v4000;
using Synchronize = PFN_cuStreamSynchronize_v2000;

void* driver() {
  static void* const handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return handle;
}
void* bare(const char* symbol) {
  return reinterpret_cast<decltype(&fake_export)>(dlsym(driver(), "fake_export"))(symbol);
}

void launch(benchmark::State& state, void* address) {
  const auto function = reinterpret_cast<Launch>(address);
  void* parameters[] = {nullptr};
  for (auto _ : state) {
    benchmark::DoNotOptimize(function(nullptr, 1, 2, 3, 4, 5, 6, 7, nullptr, parameters, nullptr));
  }
}

void synchronize(benchmark::State& state, void* address) {
  const auto function = reinterpret_cast<Synchronize>(address);
  for (auto _ : state) benchmark::DoNotOptimize(function(nullptr));
}

// Keeps the best time of each, as the others only say what else the machine did.
class BestTimes : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.run_type != Run::RT_Iteration || run.error_occurred) continue;
      const std::string name = run.run_name.function_name;
      const double time = run.GetAdjustedCPUTime();
      const auto [known, is_new] = best_.emplace(name, time);
      if (!is_new && time < known->second) known->second = time;
    }
    ConsoleReporter::ReportRuns(runs);
  }
  void print_difference(const std::string& name) const {
    const auto through = best_.find(name + "/shim");
    const auto native = best_.find(name + "/bare");
    if (through == best_.end() || native == best_.end()) return;
    std::printf("%s: %.2f ns through the shim, %.2f ns bare, difference %.2f ns\n", name.c_str(), through->second,
                native->second, through->second - native->second);
  }

 private:
  std::map<std::string, double> best_;
};

}  // namespace

int main(int argc, char** argv) {
  if (driver() == nullptr || dlsym(RTLD_DEFAULT, "memopt_version") == nullptr ||
      dlsym(driver(), "cuLaunchKernel") == bare("cuLaunchKernel") ||
      dlsym(driver(), "cuStreamSynchronize") == bare("cuStreamSynchronize")) {
    std::fprintf(stderr, "run with libmemopt.so preloaded and the fake driver in LD_LIBRARY_PATH\n");
    return 1;
  }
  for (const bool through : {false, true}) {
    const std::string suffix = through ? "/shim" : "/bare";
    const auto address = [&](const char* symbol) { return through ? dlsym(driver(), symbol) : bare(symbol); };
    benchmark::RegisterBenchmark(("launch" + suffix).c_str(), launch, address("cuLaunchKernel"));
    benchmark::RegisterBenchmark(("synchronize" + suffix).c_str(), synchronize, address("cuStreamSynchronize"));
  }
  benchmark::Initialize(&argc, argv);
  BestTimes reporter;
  if (benchmark::RunSpecifiedBenchmarks(&reporter) != 4) return 1;
  reporter.print_difference("launch");
  reporter.print_difference("synchronize");
  return 0;
}
