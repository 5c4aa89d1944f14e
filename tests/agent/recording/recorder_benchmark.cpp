// Cost of recording: per event, per frame of a call stack, and of measuring how long the device takes. For numbers:
// --benchmark_min_time=1
//
// The ring is emptied between batches, outside the measured time, so that no record is dropped.
#include <benchmark/benchmark.h>

#include "agent/process/driver.h"
#include "agent/recording/device_times.h"
#include "agent/recording/recorder.h"
#include "agent/stacks/stack_walker.h"
#include "tests/agent/fake_link.h"

namespace memopt::agent {
namespace {

constexpr int kBatch = 4096;

void record_frees(benchmark::State& state) {
  test::reset_link(16u << 20);
  start_recording(false);
  for (auto _ : state) {
    for (std::uint64_t i = 0; i < kBatch; ++i) record_free({i, 0}, 0);
    state.PauseTiming();
    test::read_records();
    state.ResumeTiming();
  }
  stop_recording();
  state.SetItemsProcessed(state.iterations() * kBatch);
}
BENCHMARK(record_frees);

void record_launches_with_8_blocks(benchmark::State& state) {
  test::reset_link(16u << 20);
  start_recording(false);
  const std::uint64_t blocks[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  shm::LaunchBody body{};
  body.accesses = 8;
  for (auto _ : state) {
    for (int i = 0; i < kBatch; ++i) record_launch(1, body, blocks, 0);
    state.PauseTiming();
    test::read_records();
    state.ResumeTiming();
  }
  stop_recording();
  state.SetItemsProcessed(state.iterations() * kBatch);
}
BENCHMARK(record_launches_with_8_blocks);

// A malloc's record with its walk, from that many frames further out.
[[gnu::noinline]] void record_mallocs_at(int depth) {
  if (depth > 0) {
    record_mallocs_at(depth - 1);
    asm volatile("");  // no tail call
    return;
  }
  for (int i = 0; i < kBatch; ++i) {
    record_malloc({1, 2, 0, reinterpret_cast<std::uint64_t>(__builtin_return_address(0)), 0, 0}, 0);
  }
}

void record_mallocs(benchmark::State& state) {
  test::reset_link(16u << 20);
  start_recording(false);
  for (auto _ : state) {
    record_mallocs_at(static_cast<int>(state.range(0)));
    state.PauseTiming();
    test::read_records();
    state.ResumeTiming();
  }
  stop_recording();
  state.SetItemsProcessed(state.iterations() * kBatch);
  state.SetLabel(stack_walker().status().kind);
}
BENCHMARK(record_mallocs)->Arg(0)->Arg(10)->Arg(30);

// What choosing adds to a recorded operation, and measuring those that are chosen, but for the driver's own part.
void time_operations(benchmark::State& state) {
  test::reset_link(16u << 20);
  start_device_times(static_cast<std::uint32_t>(state.range(0)));
  start_recording(true);
  record_free({1, 0}, 0);  // the thread has its lane
  for (auto _ : state) {
    for (std::uint64_t i = 1; i <= kBatch; ++i) {
      time_operation({nullptr, false}, i);
      operation_queued();
    }
    state.PauseTiming();
    test::read_records();
    state.ResumeTiming();
  }
  stop_recording();
  forget_device_times_after_fork();
  state.SetItemsProcessed(state.iterations() * kBatch);
}
BENCHMARK(time_operations)->Arg(0)->Arg(16)->Arg(1);

Driver make_driver() {
  Driver driver;
  driver.event_create = [](CUevent* event, unsigned int) {
    static std::uintptr_t last = 0;
    *event = reinterpret_cast<CUevent>(++last);
    return CUDA_SUCCESS;
  };
  driver.event_record = [](CUevent, CUstream) { return CUDA_SUCCESS; };
  driver.event_query = [](CUevent) { return CUDA_SUCCESS; };
  driver.event_elapsed = [](float* milliseconds, CUevent, CUevent) {
    *milliseconds = 1;
    return CUDA_SUCCESS;
  };
  return driver;
}

}  // namespace

const Driver& driver() noexcept {
  static const Driver instance = make_driver();
  return instance;
}

}  // namespace memopt::agent

BENCHMARK_MAIN();
