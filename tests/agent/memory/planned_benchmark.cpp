// What memopt costs the host while a plan is followed: a planned malloc and free, and what is done before a launch that
// names eight blocks. The agent alone, over a driver that does nothing, so that nothing else is in the numbers; the
// trampoline and the hook add some nanoseconds (preload_launch_benchmark).
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "agent/agent.h"
#include "agent/memory/arena.h"
#include "agent/memory/arena_state.h"
#include "agent/operations/operations.h"
#include "agent/order/in_flight.h"
#include "agent/recording/recorder.h"

namespace memopt::agent {
namespace {

constexpr std::size_t kBlocks = 200;  // mallocs of an iteration
std::uint64_t g_next_address = 0x7f0000000000;
std::uint64_t g_driver_calls = 0;

Driver quiet_driver() {
  Driver functions;
  functions.mem_get_info = [](size_t* free, size_t* total) { return *free = *total = size_t{8} << 30, CUDA_SUCCESS; };
  functions.default_pool = [](CUmemoryPool*, CUdevice) { return CUDA_ERROR_NOT_SUPPORTED; };
  functions.device_attribute = [](int* value, CUdevice_attribute, CUdevice) { return *value = 1, CUDA_SUCCESS; };
  functions.current_context = [](CUcontext* context) {
    return *context = reinterpret_cast<CUcontext>(0x10), CUDA_SUCCESS;
  };
  functions.current_device = [](CUdevice* device) { return *device = 0, CUDA_SUCCESS; };
  functions.granularity = [](size_t* bytes, const CUmemAllocationProp*, CUmemAllocationGranularity_flags) {
    return *bytes = size_t{2} << 20, CUDA_SUCCESS;
  };
  functions.address_reserve = [](CUdeviceptr* address, size_t bytes, size_t, CUdeviceptr, unsigned long long) {
    *address = g_next_address;
    g_next_address += bytes;
    return CUDA_SUCCESS;
  };
  functions.create = [](CUmemGenericAllocationHandle* handle, size_t, const CUmemAllocationProp*, unsigned long long) {
    return *handle = ++g_driver_calls, CUDA_SUCCESS;
  };
  functions.release = [](CUmemGenericAllocationHandle) { return ++g_driver_calls, CUDA_SUCCESS; };
  functions.map = [](CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long) {
    return ++g_driver_calls, CUDA_SUCCESS;
  };
  functions.unmap = [](CUdeviceptr, size_t) { return ++g_driver_calls, CUDA_SUCCESS; };
  functions.set_access = [](CUdeviceptr, size_t, const CUmemAccessDesc*, size_t) {
    return ++g_driver_calls, CUDA_SUCCESS;
  };
  functions.event_create = [](CUevent* event, unsigned int) {
    return *event = reinterpret_cast<CUevent>(16 * ++g_driver_calls), CUDA_SUCCESS;
  };
  functions.event_record = [](CUevent, CUstream) { return ++g_driver_calls, CUDA_SUCCESS; };
  functions.event_query = [](CUevent) { return CUDA_SUCCESS; };
  functions.stream_wait_event = [](CUstream, CUevent, unsigned int) { return ++g_driver_calls, CUDA_SUCCESS; };
  functions.event_synchronize = [](CUevent) { return ++g_driver_calls, CUDA_SUCCESS; };
  functions.stream_synchronize = [](CUstream) { return ++g_driver_calls, CUDA_SUCCESS; };
  functions.synchronize_context = []() { return ++g_driver_calls, CUDA_SUCCESS; };
  functions.stream_is_capturing = [](CUstream, CUstreamCaptureStatus* status) {
    return *status = CU_STREAM_CAPTURE_STATUS_NONE, CUDA_SUCCESS;
  };
  functions.stream_flags = [](CUstream, unsigned int* flags) { return *flags = 0, CUDA_SUCCESS; };
  functions.function_parameter = [](CUfunction, size_t index, size_t* offset, size_t* bytes) {
    *offset = index * 8;
    *bytes = 8;
    return index < 8 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  };
  functions.kernel_parameter = [](CUkernel, size_t, size_t*, size_t*) { return CUDA_ERROR_INVALID_VALUE; };
  functions.function_name = [](const char** name, CUfunction) { return *name = "kernel", CUDA_SUCCESS; };
  functions.kernel_name = [](const char**, CUkernel) { return CUDA_ERROR_INVALID_HANDLE; };
  return functions;
}

constexpr Interposer kInterposer{nullptr, 0, nullptr, nullptr, quiet_driver};

std::uint64_t size_of(std::size_t i) { return 4096 + i % 37 * 81920 + i * 8; }

CUdeviceptr allocate(std::size_t i) {
  CUdeviceptr address = 0;
  if (arena_allocate(&address, size_of(i), nullptr).result != CUDA_SUCCESS || address == 0) std::abort();
  return address;
}

// An iteration with a stack of up to eight live blocks, as activations are; the same places each time.
template <typename Visit>
void iterate(Visit&& visit) {
  CUdeviceptr live[8] = {};
  for (std::size_t i = 0; i < kBlocks; ++i) {
    CUdeviceptr& slot = live[i % 8];
    if (slot != 0) arena_free(slot);
    slot = allocate(i);
    visit(live);
  }
  for (const CUdeviceptr address : live) arena_free(address);
}

// Follows a plan, made by hand, from the next iteration on.
void go_live() {
  iterate([](const auto&) {});
  auto plan = std::make_unique<Plan>();
  plan->generation = 1;
  std::uint64_t offset[8] = {};
  std::uint64_t largest = 0;
  for (std::size_t i = 0; i < kBlocks; ++i) largest = std::max(largest, size_of(i));
  largest = (largest + 511) / 512 * 512;
  for (std::size_t i = 0; i < 8; ++i) offset[i] = i * largest;
  for (std::size_t i = 0; i < kBlocks; ++i) {
    plan->mallocs.push_back({size_of(i), 0, i, 1, static_cast<std::uint32_t>(i), i + 8});
    plan->places.push_back({offset[i % 8], (size_of(i) + 511) / 512 * 512});
  }
  plan->slab_bytes = plan->peak_load = 8 * largest;
  plan->operations = kBlocks;
  plan->lanes.push_back({current_lane(), 1, std::span<const shm::PlannedMalloc>(plan->mallocs)});
  {
    ArenaLock lock;
    arena_adopt(*arena(), *plan);
  }
  for (int i = 0; i < 12; ++i) iterate([](const auto&) {});
  stop_recording();
  if (arena()->phase != Arena::Phase::kLive || arena()->deviations != 0 || recording()) {
    std::fprintf(stderr, "the plan is not followed: nothing to measure\n");
    std::exit(1);
  }
}

void malloc_and_free(benchmark::State& state) {
  std::uint64_t pairs = 0;
  const std::uint64_t calls = g_driver_calls;
  for (auto _ : state) {
    iterate([](const auto&) {});
    pairs += kBlocks;
  }
  state.counters["ns per pair"] =
      benchmark::Counter(static_cast<double>(pairs) * 1e-9, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  if (g_driver_calls != calls) state.SkipWithError("the driver was called");
}

void launch(benchmark::State& state) {
  std::vector<CUdeviceptr> blocks;
  for (std::size_t i = 0; i < 8; ++i) blocks.push_back(allocate(i));
  std::vector<std::uint64_t> values(blocks.begin(), blocks.end());
  void* parameters[8];
  for (std::size_t i = 0; i < 8; ++i) parameters[i] = &values[i];
  LaunchCall call;
  call.function = reinterpret_cast<CUfunction>(0x1234);
  call.stream = {reinterpret_cast<CUstream>(0x100), false};
  call.parameters = parameters;
  for (auto _ : state) {
    const QueuedAtEnd scope;
    benchmark::DoNotOptimize(before_launch(call));
  }
  for (const CUdeviceptr block : blocks) arena_free(block);
  // That was the beginning of an iteration, and no more: the plan is found again.
  for (int i = 0; i < 5000 && (i < 3 || recording()); ++i) iterate([](const auto&) {});
}

}  // namespace
}  // namespace memopt::agent

int main(int argc, char** argv) {
  using namespace memopt::agent;
  setenv("MEMOPT_PLANNER", "/nonexistent/memoptd", 1);  // the plan is made here
  setenv("MEMOPT_LOG", "error", 1);
  first_call(kInterposer, 0);
  go_live();
  benchmark::RegisterBenchmark("launch with 8 pointers, added", launch);
  benchmark::RegisterBenchmark("planned malloc and free", malloc_and_free);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
