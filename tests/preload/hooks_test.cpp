// The hooks of operation_hooks.inc on their own: each calls a driver made of this test, and tells an agent made of this
// test.
#include <gtest/gtest.h>
#include <pthread.h>

#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/agent.h"
#include "agent/memory/arena.h"
#include "agent/operations/launch_parameters.h"
#include "agent/operations/operations.h"
#include "agent/operations/pinned_memory.h"
#include "agent/recording/recorder.h"
#include "preload/relief.h"
#include "preload/typed_hooks.h"

namespace {

// What reached the driver.
struct DriverCall {
  memopt::preload::Hook hook{};
  std::string arguments;  // their bytes
};
std::vector<DriverCall> g_driver;
CUresult g_result = CUDA_SUCCESS;

template <typename... Arguments>
std::string bytes_of(const Arguments&... arguments) {
  std::string bytes;
  (bytes.append(reinterpret_cast<const char*>(&arguments), sizeof(arguments)), ...);
  return bytes;
}

// What the agent was told.
struct Agent {
  bool watched = true;
  bool serialize = false;
  std::vector<memopt::agent::LaunchCall> launches;
  std::vector<memopt::agent::CopyCall> copies;
  std::vector<memopt::agent::MemsetCall> memsets;
  std::vector<std::string> notes;
  std::map<std::uint64_t, std::size_t> pinned;
  std::set<CUstream> captured;
  bool serves_pools = false;
  bool follows = false;
  CUmemoryPool pool_of_blocks = nullptr;
  std::uint64_t unused = 0;  // address in memory of ours and in no block
  bool behind_free = false;
  bool relieves_cached = false;
  bool relieves_all = false;
  std::vector<std::pair<memopt::agent::Relief, std::size_t>> reliefs;
  std::vector<std::string> pool_calls;
  std::vector<memopt::agent::device_times_detail::Open> measured;  // as each hook ended
};
Agent g_agent;

void note(const char* what) { g_agent.notes.emplace_back(what); }

}  // namespace

namespace memopt::agent {

std::uint64_t arena_range_begin = 0x7000'0000'0000;
std::uint64_t arena_range_bytes = 1u << 30;
std::uint64_t pinned_memory_begin = 0;
std::uint64_t pinned_memory_bytes = 0;
std::uint32_t recorder_state = 0;

// As if every operation were measured.
constinit thread_local device_times_detail::Open device_times_detail::open = Open::kNo;
void device_times_detail::end() noexcept { g_agent.measured.push_back(std::exchange(open, Open::kNo)); }
void measure() { device_times_detail::open = device_times_detail::Open::kYes; }

bool operations_are_watched() noexcept { return g_agent.watched; }
bool before_launch(const LaunchCall& call) noexcept {
  measure();
  g_agent.launches.push_back(call);
  return g_agent.serialize;
}
void before_copy(const CopyCall& call) noexcept {
  measure();
  g_agent.copies.push_back(call);
}
void before_memset(const MemsetCall& call) noexcept {
  measure();
  g_agent.memsets.push_back(call);
}
void before_host_function(StreamName) noexcept { note("host function"); }
void before_unknown_work(StreamName) noexcept {
  measure();
  note("unknown work");
}
void note_escape(std::uint64_t address) noexcept {
  if (arena_may_own(address)) note("escape");
}
void before_capture(CUstream) noexcept { note("capture begins"); }
void capture_ended(CUstream) noexcept { note("capture ended"); }
bool is_captured(StreamName stream) noexcept { return g_agent.captured.contains(stream.handle); }
std::uint64_t stream_number(StreamName) noexcept { return 0; }
std::uint64_t record_plain(shm::RecordKind, const void*, std::size_t) noexcept { return 0; }
void functions_were_unloaded() noexcept { note("unloaded"); }
void pinned_memory_added(std::uint64_t address, std::size_t bytes) noexcept {
  if (address != 0) g_agent.pinned[address] = bytes;
}
std::size_t pinned_memory_removed(std::uint64_t address) noexcept {
  const auto found = g_agent.pinned.find(address);
  if (found == g_agent.pinned.end()) return 0;
  const std::size_t bytes = found->second;
  g_agent.pinned.erase(found);
  return bytes;
}
bool is_in_pinned_range(std::uint64_t) noexcept { return false; }
bool arena_block_at(std::uint64_t address, BlockExtent* extent) noexcept {
  if (!arena_may_own(address)) return false;
  *extent = {.base = arena_range_begin, .bytes = 777, .number = 1, .pool = g_agent.pool_of_blocks};
  return true;
}
void arena_note_sync_memops(std::uint64_t, bool on) noexcept { note(on ? "sync on" : "sync off"); }
bool arena_is_unused(std::uint64_t address) noexcept { return address == g_agent.unused; }
std::uint64_t arena_reserve_bytes() noexcept { return 1000; }
void note_context_change() noexcept { note("context change"); }
Served arena_allocate_async(CUdeviceptr* address, std::size_t bytes, CUmemoryPool pool, StreamName stream,
                            void*) noexcept {
  g_agent.pool_calls.push_back("allocate " + std::to_string(bytes) + (pool == nullptr ? " current" : " named") +
                               (stream.per_thread ? " per thread" : ""));
  if (!g_agent.serves_pools) return {};
  *address = arena_range_begin;
  return {true, CUDA_SUCCESS};
}
Served arena_free_async(CUdeviceptr address, StreamName stream) noexcept {
  if (!arena_may_own(address)) return {};
  g_agent.pool_calls.push_back(stream.per_thread ? "free per thread" : "free");
  return {true, CUDA_SUCCESS};
}
bool arena_note_async(CUdeviceptr, std::size_t bytes, StreamName, void*) noexcept {
  g_agent.pool_calls.push_back("driver made " + std::to_string(bytes));
  return g_agent.follows;
}
bool arena_relieve(Relief relief, std::size_t wanted) noexcept {
  g_agent.reliefs.emplace_back(relief, wanted);
  return relief == Relief::kCached ? g_agent.relieves_cached : g_agent.relieves_all;
}
BlockTable& blocks() noexcept {
  static MemoryGauge gauge;
  static BlockTable table(gauge);
  return table;
}
void note_pool_created(CUmemoryPool, const CUmemPoolProps& properties) noexcept {
  g_agent.pool_calls.push_back("created on " + std::to_string(properties.location.id));
}
void note_pool_destroyed(CUmemoryPool) noexcept { g_agent.pool_calls.emplace_back("destroyed"); }
void note_pool_access(CUmemoryPool, CUdevice device) noexcept {
  g_agent.pool_calls.push_back("used by " + std::to_string(device));
}
void note_current_pool_changed() noexcept { g_agent.pool_calls.emplace_back("another"); }
void arena_pool_use(CUmemoryPool, CUmemPool_attribute, std::uint64_t* value) noexcept { *value += 5000; }
void arena_pool_reset(CUmemoryPool, CUmemPool_attribute) noexcept { g_agent.pool_calls.emplace_back("reset"); }
void arena_pool_trim(CUmemoryPool, std::size_t keep) noexcept {
  g_agent.pool_calls.push_back("trim to " + std::to_string(keep));
}
void note_stream_created(CUstream) noexcept { note("stream created"); }
void note_stream_destroyed(CUstream) noexcept { note("stream destroyed"); }
bool arena_on = true;
void note_failure(CUresult) noexcept {}
void note_stream_may_be_held_up(StreamName) noexcept { note("may be held up"); }
void note_event_in_graph(CUevent, bool external) noexcept { note(external ? "event of a graph" : "event captured"); }
bool is_behind_free(CUevent) noexcept { return g_agent.behind_free; }
bool is_behind_free(StreamName) noexcept { return g_agent.behind_free; }
HostWait begin_host_wait_for_context() noexcept { return {}; }
HostWait begin_host_wait_for_own(StreamName) noexcept { return {}; }
HostWait begin_host_wait_for_stream(StreamName) noexcept { return {}; }
HostWait begin_host_wait_for_event(CUevent) noexcept { return {}; }
void host_wait_done(const HostWait&) noexcept { note("host waited"); }
EventRecord begin_event_record(CUevent event, StreamName) noexcept {
  note(g_driver.empty() ? "event is recorded" : "event is recorded, after the driver's call");
  EventRecord record;
  record.event = event;
  return record;
}
void event_record_done(const EventRecord&, bool succeeded) noexcept {
  note(succeeded ? "event recorded" : "event not recorded");
}
void note_event_destroyed(CUevent) noexcept { note("event destroyed"); }
EventWait begin_event_wait(StreamName, CUevent event) noexcept {
  note(g_driver.empty() ? "event is waited for" : "event is waited for, after the driver's call");
  EventWait wait;
  wait.event = event;
  return wait;
}
void event_wait_done(const EventWait&) noexcept { note("event waited"); }

}  // namespace memopt::agent

namespace memopt::preload {
namespace {

std::map<CUdeviceptr, unsigned int> g_memory_types;

template <Hook hook, typename Pointer>
struct Real;
// The driver's functions wait as poll() does.
bool g_cancellation_point = false;

template <Hook hook, typename... Parameters>
struct Real<hook, CUresult (*)(Parameters...)> {
  static CUresult call(Parameters... arguments) {
    g_driver.push_back({hook, bytes_of(arguments...)});
    if (g_cancellation_point) pthread_testcancel();
    return g_result;
  }
};

// A driver's answer that hooks ask for themselves.
CUresult pointer_attribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  g_driver.push_back({Hook::cuPointerGetAttribute, bytes_of(data, attribute, address)});
  const auto known = g_memory_types.find(address);
  if (attribute != CU_POINTER_ATTRIBUTE_MEMORY_TYPE || data == nullptr) return g_result;
  if (known == g_memory_types.end()) return CUDA_ERROR_INVALID_VALUE;
  *static_cast<unsigned int*>(data) = known->second;
  return CUDA_SUCCESS;
}

}  // namespace

void* real_function(Hook hook) noexcept {
  if (hook == Hook::cuPointerGetAttribute) return reinterpret_cast<void*>(&pointer_attribute);
  switch (hook) {
#define MEMOPT_HOOK(index, symbol, type) \
  case Hook::symbol:                     \
    return reinterpret_cast<void*>(&Real<Hook::symbol, type>::call);
#include "memopt_entry_points/hooks.inc"
  }
  return nullptr;
}

namespace {

class Hooks : public testing::Test {
 protected:
  void SetUp() override {
    g_agent = Agent();
    g_driver.clear();
    g_memory_types.clear();
    g_result = CUDA_SUCCESS;
  }
};

template <typename Pointer>
struct EveryState;
template <typename... Parameters>
struct EveryState<CUresult (*)(Parameters...)> {
  // Null for pointers and handles (a hook must bear them), a pattern in every byte of anything else.
  template <typename Value>
  static Value argument(std::size_t seed) {
    if constexpr (std::is_pointer_v<Value>) return nullptr;
    if constexpr (std::is_enum_v<Value>) return static_cast<Value>(1);
    Value value;
    std::memset(&value, static_cast<int>(seed + 1), sizeof(value));
    return value;
  }
  template <std::size_t... index>
  static void check(const char* symbol, Hook hook, CUresult (*function)(Parameters...), std::index_sequence<index...>) {
    for (const bool watched : {true, false}) {
      for (const CUresult result : {CUDA_SUCCESS, CUDA_ERROR_ILLEGAL_ADDRESS}) {
        SCOPED_TRACE(std::string(symbol) + (watched ? ", watched" : "") + ", " + std::to_string(result));
        g_agent.watched = watched;
        g_driver.clear();
        g_result = result;
        EXPECT_EQ(function(argument<Parameters>(index)...), result);
        std::vector<std::string> reached;
        for (const DriverCall& call : g_driver) {
          if (call.hook == hook) reached.push_back(call.arguments);
        }
        EXPECT_EQ(reached, std::vector<std::string>{bytes_of(argument<Parameters>(index)...)});
      }
    }
  }
};

// Every hook of the list, with arguments of which nothing may be read, in every state: the driver gets the same once,
// and its result comes back.
TEST_F(Hooks, AllArgumentsAndTheResultPassUnchanged) {
#define MEMOPT_TYPED(symbol)                                                                  \
  [&]<typename... Parameters>(CUresult (*function)(Parameters...)) {                          \
    EveryState<CUresult (*)(Parameters...)>::check(#symbol, Hook::symbol, function,           \
                                                   std::index_sequence_for<Parameters...>()); \
  }(static_cast<Signature<Hook::symbol>::Pointer>(&hooks::symbol));
#include "preload/operation_hooks.inc"
#undef MEMOPT_TYPED
}

template <typename Pointer>
struct OutOfMemory;
template <typename... Parameters>
struct OutOfMemory<CUresult (*)(Parameters...)> {
  template <std::size_t... index>
  static void check(const char* symbol, Hook hook, CUresult (*function)(Parameters...), std::index_sequence<index...>) {
    SCOPED_TRACE(symbol);
    g_result = CUDA_ERROR_OUT_OF_MEMORY;
    for (const bool relieves : {false, true}) {
      g_agent = Agent();
      g_agent.relieves_all = relieves;
      g_driver.clear();
      EXPECT_EQ(function(EveryState<CUresult (*)(Parameters...)>::template argument<Parameters>(index)...), g_result);
      std::size_t reached = 0;
      for (const DriverCall& call : g_driver) reached += call.hook == hook ? 1 : 0;
      EXPECT_EQ(reached, relieves ? 2u : 1u);
      EXPECT_EQ(g_agent.reliefs.size(), 2u) << "what is cached first, then the plan's memory";
    }
  }
};
template <Hook hook>
void expect_relief(const char* symbol, typename Signature<hook>::Pointer function) {
  [&]<typename... Parameters>(CUresult (*typed)(Parameters...)) {
    OutOfMemory<CUresult (*)(Parameters...)>::check(symbol, hook, typed, std::index_sequence_for<Parameters...>());
  }(function);
}

TEST_F(Hooks, WhateverCanNeedMemoryIsCalledAgainOnceThereIsSome) {
#define MEMOPT_RELIEVED(symbol) expect_relief<Hook::symbol>(#symbol, &Relieved<Hook::symbol>::call);
#include "preload/relieved_hooks.inc"
#undef MEMOPT_RELIEVED
#define WITH_HOOK(symbol) expect_relief<Hook::symbol>(#symbol, &hooks::symbol);
  WITH_HOOK(cuMemAllocManaged)
  WITH_HOOK(cuMemAllocAsync)
  WITH_HOOK(cuMemAllocAsync_ptsz)
  WITH_HOOK(cuMemAllocFromPoolAsync)
  WITH_HOOK(cuMemAllocFromPoolAsync_ptsz)
  WITH_HOOK(cuMemPoolCreate)
  WITH_HOOK(cuCtxCreate)
  WITH_HOOK(cuCtxCreate_v2)
  WITH_HOOK(cuCtxCreate_v3)
  WITH_HOOK(cuCtxCreate_v4)
  WITH_HOOK(cuStreamCreate)
  WITH_HOOK(cuStreamCreateWithPriority)
  WITH_HOOK(cuLaunchKernel)
  WITH_HOOK(cuLaunchKernel_ptsz)
  WITH_HOOK(cuLaunchKernelEx)
  WITH_HOOK(cuLaunchKernelEx_ptsz)
  WITH_HOOK(cuLaunchCooperativeKernel)
  WITH_HOOK(cuLaunchCooperativeKernel_ptsz)
  WITH_HOOK(cuGraphLaunch)
  WITH_HOOK(cuGraphLaunch_ptsz)
#undef WITH_HOOK
}

// Those that are forwarded with relief and nothing else are forwarded as they came.
TEST_F(Hooks, RelievedCallsPassUnchanged) {
#define MEMOPT_RELIEVED(symbol)                                                               \
  [&]<typename... Parameters>(CUresult (*function)(Parameters...)) {                          \
    EveryState<CUresult (*)(Parameters...)>::check(#symbol, Hook::symbol, function,           \
                                                   std::index_sequence_for<Parameters...>()); \
  }(static_cast<Signature<Hook::symbol>::Pointer>(&Relieved<Hook::symbol>::call));
#include "preload/relieved_hooks.inc"
#undef MEMOPT_RELIEVED
}

constexpr CUdeviceptr kOurs = 0x7000'0000'1000;
CUstream stream() { return reinterpret_cast<CUstream>(0x500); }

TEST_F(Hooks, ALaunchIsDescribedWhole) {
  void* parameters[1] = {};
  void* extra[1] = {};
  const auto function = reinterpret_cast<CUfunction>(0x77);
  hooks::cuLaunchKernel_ptsz(function, 1, 2, 3, 4, 5, 6, 7, stream(), parameters, extra);
  ASSERT_EQ(g_agent.launches.size(), 1u);
  const agent::LaunchCall& call = g_agent.launches[0];
  EXPECT_EQ(call.function, function);
  EXPECT_EQ(call.grid[2], 3u);
  EXPECT_EQ(call.block[1], 5u);
  EXPECT_EQ(call.shared_bytes, 7u);
  EXPECT_EQ(call.stream.handle, stream());
  EXPECT_TRUE(call.stream.per_thread);
  EXPECT_EQ(call.parameters, parameters);
  EXPECT_EQ(call.extra, extra);
}

TEST_F(Hooks, ALaunchThatMayOverlapIsSerializedWhereItMust) {
  CUlaunchAttribute attributes[2] = {};
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attributes[0].value.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  CUlaunchConfig config{};
  config.attrs = attributes;
  config.numAttrs = 2;
  const CUlaunchConfig* given = &config;
  hooks::cuLaunchKernelEx(&config, nullptr, nullptr, nullptr);
  ASSERT_EQ(g_agent.launches.size(), 1u);
  EXPECT_TRUE(g_agent.launches[0].overlaps_previous);
  EXPECT_EQ(std::memcmp(g_driver.back().arguments.data(), &given, sizeof(given)), 0);
  g_agent.serialize = true;
  hooks::cuLaunchKernelEx(&config, nullptr, nullptr, nullptr);
  EXPECT_NE(std::memcmp(g_driver.back().arguments.data(), &given, sizeof(given)), 0) << "a changed configuration";
  EXPECT_EQ(config.numAttrs, 2u);
}

using Calls = std::vector<std::string>;

TEST_F(Hooks, StreamOrderedAllocationIsServedOrPassedOn) {
  const auto pool = reinterpret_cast<CUmemoryPool>(0x33);
  CUdeviceptr address = 0;
  EXPECT_EQ(hooks::cuMemAllocAsync(&address, 100, stream()), CUDA_SUCCESS);
  EXPECT_EQ(hooks::cuMemAllocFromPoolAsync_ptsz(&address, 200, pool, stream()), CUDA_SUCCESS);
  EXPECT_EQ(g_driver.size(), 2u);
  EXPECT_EQ(g_agent.pool_calls,
            (Calls{"allocate 100 current", "driver made 100", "allocate 200 named per thread", "driver made 200"}));
  g_agent = Agent();
  g_driver.clear();
  g_agent.serves_pools = true;
  EXPECT_EQ(hooks::cuMemAllocAsync_ptsz(&address, 300, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(address, agent::arena_range_begin);
  EXPECT_EQ(hooks::cuMemFreeAsync_ptsz(address, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(hooks::cuMemFreeAsync(address, nullptr), CUDA_SUCCESS);
  EXPECT_TRUE(g_driver.empty());
  EXPECT_EQ(g_agent.pool_calls, (Calls{"allocate 300 current per thread", "free per thread", "free"}));
  EXPECT_EQ(hooks::cuMemFreeAsync(address - 1, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(g_driver.size(), 1u);
}

TEST_F(Hooks, TheDriverNeedNotKnowThePoolOfABlock) {
  const auto pool = reinterpret_cast<CUmemoryPool>(0x33);
  CUmemoryPool found = nullptr;
  g_result = CUDA_ERROR_INVALID_VALUE;
  EXPECT_EQ(hooks::cuPointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, kOurs), CUDA_SUCCESS);
  EXPECT_EQ(found, nullptr);
  g_agent.pool_of_blocks = pool;
  EXPECT_EQ(hooks::cuPointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, kOurs), CUDA_SUCCESS);
  EXPECT_EQ(found, pool);
}

// A thread that is cancelled while the driver waits for the device ends behind the call, not in the middle of it.
TEST_F(Hooks, WaitingCallsAreNotCancelledWithin) {
  static int passed = 0;
  passed = 0;
  g_cancellation_point = true;
  pthread_t thread;
  ASSERT_EQ(pthread_create(
                &thread, nullptr,
                [](void*) -> void* {
                  pthread_cancel(pthread_self());
                  char host[16];
                  hooks::cuStreamSynchronize(nullptr);
                  hooks::cuStreamSynchronize_ptsz(nullptr);
                  hooks::cuEventSynchronize(nullptr);
                  hooks::cuCtxSynchronize();
                  hooks::cuCtxSynchronize_v2(nullptr);
                  hooks::cuMemcpyDtoH_v2(host, 0x7000'0000'0000, sizeof(host));
                  hooks::cuMemcpyHtoD_v2(0x7000'0000'0000, host, sizeof(host));
                  hooks::cuModuleUnload(nullptr);
                  passed = 1;
                  pthread_testcancel();
                  return nullptr;
                },
                nullptr),
            0);
  void* result = nullptr;
  ASSERT_EQ(pthread_join(thread, &result), 0);
  g_cancellation_point = false;
  EXPECT_EQ(passed, 1);
  EXPECT_EQ(result, PTHREAD_CANCELED);
}

TEST_F(Hooks, ABlockIsCountedOnce) {
  CUdeviceptr address = 0x1000;
  EXPECT_EQ(hooks::cuMemAllocAsync(&address, 100, stream()), CUDA_SUCCESS);
  shm::Bytes size;
  EXPECT_TRUE(agent::blocks().erase(address, &size));
  g_agent.follows = true;
  EXPECT_EQ(hooks::cuMemAllocAsync(&address, 100, stream()), CUDA_SUCCESS);
  EXPECT_FALSE(agent::blocks().erase(address, &size)) << "whoever follows it counts it";
}

TEST_F(Hooks, WhatIsHeldWithoutNeedIsGivenBackBeforeAPoolIsOutOfMemory) {
  CUdeviceptr address = 0;
  using agent::Relief;
  const std::vector<std::pair<Relief, std::size_t>> both{{Relief::kCached, 100}, {Relief::kAll, 100}};
  g_result = CUDA_ERROR_OUT_OF_MEMORY;
  EXPECT_EQ(hooks::cuMemAllocAsync(&address, 100, stream()), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(g_driver.size(), 1u) << "nothing was given back: the answer is the driver's";
  EXPECT_EQ(g_agent.reliefs, both);
  g_agent.relieves_cached = true;
  EXPECT_EQ(hooks::cuMemAllocAsync(&address, 100, stream()), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(g_driver.size(), 3u);
  g_agent.relieves_all = true;
  EXPECT_EQ(hooks::cuMemAllocAsync(&address, 100, stream()), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(g_driver.size(), 6u);
}

TEST_F(Hooks, PoolsAreFollowedAndAnswerForWhatIsServedInTheirPlace) {
  auto pool = reinterpret_cast<CUmemoryPool>(0x33);
  CUmemPoolProps properties{};
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 3};
  const CUmemAccessDesc access[] = {{{CU_MEM_LOCATION_TYPE_DEVICE, 3}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
                                    {{CU_MEM_LOCATION_TYPE_HOST, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE}};
  std::uint64_t amount = 1;
  std::uint64_t threshold = 2;
  for (const CUresult result : {CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS}) {
    g_result = result;
    EXPECT_EQ(hooks::cuMemPoolCreate(&pool, &properties), result);
    EXPECT_EQ(hooks::cuMemPoolSetAccess(pool, access, 2), result);
    EXPECT_EQ(hooks::cuDeviceSetMemPool(3, pool), result);
    EXPECT_EQ(hooks::cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &amount), result);
    EXPECT_EQ(hooks::cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold), result);
    EXPECT_EQ(hooks::cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &amount), result);
    EXPECT_EQ(hooks::cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold), result);
    EXPECT_EQ(hooks::cuMemPoolTrimTo(pool, 77), result);
    EXPECT_EQ(hooks::cuMemPoolDestroy(pool), result);
    if (result != CUDA_SUCCESS) {
      EXPECT_EQ(g_agent.pool_calls, Calls{});
      EXPECT_EQ(amount, 1u);
    }
  }
  EXPECT_EQ(g_agent.pool_calls,
            (Calls{"created on 3", "used by 3", "used by -1", "another", "reset", "trim to 77", "destroyed"}));
  EXPECT_EQ(amount, 5001u);
  EXPECT_EQ(threshold, 2u);
}

struct CopyRow {
  const char* name;
  std::function<void()> call;
  shm::CopyKind kind;
  std::uint64_t to;
  std::uint64_t from;
  std::size_t bytes;
  std::size_t to_extent;
  bool host_waits;
};

TEST_F(Hooks, CopiesAreDescribedByTheirSides) {
  char host[64] = {};
  const auto host_address = reinterpret_cast<CUdeviceptr>(host);
  CUDA_MEMCPY2D rows{};
  rows.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  rows.dstDevice = kOurs;
  rows.dstPitch = 100;
  rows.dstY = 2;
  rows.dstXInBytes = 5;
  rows.srcMemoryType = CU_MEMORYTYPE_HOST;
  rows.srcHost = host;
  rows.WidthInBytes = 10;
  rows.Height = 3;
  CUdeviceptr batch_to[1] = {kOurs};
  CUdeviceptr batch_from[1] = {kOurs + 64};
  size_t batch_bytes[1] = {8};
  using enum shm::CopyKind;
  const CopyRow table[] = {
      {"HtoD", [&] { hooks::cuMemcpyHtoD_v2(kOurs, host, 64); }, kToDevice, kOurs, 0, 64, 64, false},
      {"DtoH", [&] { hooks::cuMemcpyDtoH_v2(host, kOurs, 64); }, kToHost, 0, kOurs, 64, 64, true},
      {"DtoHAsync", [&] { hooks::cuMemcpyDtoHAsync_v2(host, kOurs, 64, stream()); }, kToHost, 0, kOurs, 64, 64, false},
      {"DtoD", [&] { hooks::cuMemcpyDtoD_v2(kOurs, kOurs + 64, 32); }, kOnDevice, kOurs, kOurs + 64, 32, 32, false},
      {"to foreign", [&] { hooks::cuMemcpyDtoDAsync_v2(0x9000, kOurs, 32, stream()); }, kOnDevice, 0, kOurs, 32, 32,
       false},
      {"unified to host", [&] { hooks::cuMemcpy(host_address, kOurs, 16); }, kToHost, 0, kOurs, 16, 16, true},
      {"unified from host", [&] { hooks::cuMemcpyAsync(kOurs, host_address, 16, stream()); }, kToDevice, kOurs, 0, 16,
       16, false},
      {"2D", [&] { hooks::cuMemcpy2DAsync_v2(&rows, stream()); }, kToDevice, kOurs + 205, 0, 30, 210, false},
      {"batch",
       [&] { hooks::cuMemcpyBatchAsync_v2(batch_to, batch_from, batch_bytes, 1, nullptr, nullptr, 0, stream()); },
       kOnDevice, kOurs, kOurs + 64, 8, 8, false},
  };
  for (const CopyRow& row : table) {
    SCOPED_TRACE(row.name);
    g_agent = Agent();
    row.call();
    ASSERT_EQ(g_agent.copies.size(), 1u);
    const agent::CopyCall& copy = g_agent.copies[0];
    EXPECT_EQ(copy.kind, row.kind);
    EXPECT_EQ(copy.to, row.to);
    EXPECT_EQ(copy.from, row.from);
    EXPECT_EQ(copy.bytes, row.bytes);
    EXPECT_EQ(copy.to_extent, row.to_extent);
    EXPECT_EQ(copy.host_waits, row.host_waits);
    EXPECT_EQ(copy.from_host != nullptr, row.kind == kToDevice);
    EXPECT_EQ(g_agent.notes, row.host_waits ? std::vector<std::string>{"host waited"} : std::vector<std::string>{});
  }
}

// A driver takes a device's address where the host's is asked for; we must not read it.
TEST_F(Hooks, ADevicesAddressIsNotReadAsTheHosts) {
  g_memory_types[0x9000] = CU_MEMORYTYPE_DEVICE;
  hooks::cuMemcpyHtoD_v2(kOurs, reinterpret_cast<const void*>(0x9000), 64);
  ASSERT_EQ(g_agent.copies.size(), 1u);
  EXPECT_EQ(g_agent.copies[0].from_host, nullptr);
  EXPECT_EQ(g_agent.copies[0].kind, shm::CopyKind::kOnDevice);
}

TEST_F(Hooks, MemsetsTellTheirExtent) {
  hooks::cuMemsetD32Async(kOurs, 1, 10, stream());
  hooks::cuMemsetD2D16_v2_ptds(kOurs, 100, 1, 10, 3);
  ASSERT_EQ(g_agent.memsets.size(), 2u);
  EXPECT_EQ(g_agent.memsets[0].bytes, 40u);
  EXPECT_EQ(g_agent.memsets[0].stream.handle, stream());
  EXPECT_EQ(g_agent.memsets[1].bytes, 220u);
  EXPECT_TRUE(g_agent.memsets[1].stream.per_thread);
}

struct NoteRow {
  const char* name;
  std::function<void()> call;
  std::vector<std::string> told;    // after success
  std::vector<std::string> failed;  // after a refusal
};

TEST_F(Hooks, OrderIsToldWhereItIsKnown) {
  CUstream made = nullptr;
  const auto event = reinterpret_cast<CUevent>(0x60);
  const NoteRow table[] = {
      {"create", [&] { hooks::cuStreamCreate(&made, 0); }, {"stream created"}, {}},
      {"destroy", [&] { hooks::cuStreamDestroy_v2(stream()); }, {"stream destroyed"}, {"stream destroyed"}},
      {"synchronize", [&] { hooks::cuStreamSynchronize(stream()); }, {"host waited"}, {}},
      {"query", [&] { hooks::cuStreamQuery(stream()); }, {"host waited"}, {}},
      {"wait",
       [&] { hooks::cuStreamWaitEvent(stream(), event, 0); },
       {"event is waited for", "event waited"},
       {"event is waited for"}},
      {"wait for a value",
       [&] { hooks::cuStreamWaitValue32_v2(stream(), kOurs, 1, 0); },
       {"may be held up"},
       {"may be held up"}},
      {"record",
       [&] { hooks::cuEventRecord(event, stream()); },
       {"event is recorded", "event recorded"},
       {"event is recorded", "event not recorded"}},
      {"record node",
       [&] { hooks::cuGraphAddEventRecordNode(nullptr, nullptr, nullptr, 0, event); },
       {"event of a graph"},
       {"event of a graph"}},
      {"event destroy", [&] { hooks::cuEventDestroy_v2(event); }, {"event destroyed"}, {"event destroyed"}},
      {"event synchronize", [&] { hooks::cuEventSynchronize(event); }, {"host waited"}, {}},
      {"event query", [&] { hooks::cuEventQuery(event); }, {"host waited"}, {}},
      {"context synchronize", [&] { hooks::cuCtxSynchronize(); }, {"host waited"}, {}},
      {"capture",
       [&] { hooks::cuStreamBeginCapture_v2(stream(), CU_STREAM_CAPTURE_MODE_GLOBAL); },
       {"capture begins"},
       {"capture begins", "capture ended"}},
      {"end capture", [&] { hooks::cuStreamEndCapture(stream(), nullptr); }, {"capture ended"}, {}},
      {"host function",
       [&] { hooks::cuLaunchHostFunc(stream(), nullptr, nullptr); },
       {"host function"},
       {"host function"}},
      {"graph", [&] { hooks::cuGraphLaunch(nullptr, stream()); }, {"unknown work"}, {"unknown work"}},
      {"set current", [&] { hooks::cuCtxSetCurrent(nullptr); }, {"context change"}, {"context change"}},
      {"unload", [&] { hooks::cuModuleUnload(nullptr); }, {"unloaded"}, {"unloaded"}},
      {"tensor map",
       [&] { hooks::cuTensorMapReplaceAddress(nullptr, reinterpret_cast<void*>(kOurs)); },
       {"escape"},
       {"escape"}},
  };
  for (const NoteRow& row : table) {
    SCOPED_TRACE(row.name);
    g_agent = Agent();
    g_driver.clear();
    g_result = CUDA_SUCCESS;
    row.call();
    EXPECT_EQ(g_agent.notes, row.told);
    g_agent = Agent();
    g_driver.clear();
    g_result = CUDA_ERROR_NOT_READY;
    row.call();
    EXPECT_EQ(g_agent.notes, row.failed);
  }
}

TEST_F(Hooks, EventsOfACaptureAreNoOrder) {
  g_agent.captured.insert(stream());
  hooks::cuEventRecord(nullptr, stream());
  hooks::cuStreamWaitEvent(stream(), nullptr, 0);
  hooks::cuEventRecordWithFlags(nullptr, stream(), CU_EVENT_RECORD_EXTERNAL);
  EXPECT_EQ(g_agent.notes, (std::vector<std::string>{"event captured", "event of a graph"}));
}

// A plain free of ours does not wait, but the program is told what would be so if it had.
TEST_F(Hooks, WhatWasQueuedBeforeAFreeIsWaitedForWhenItIsAskedFor) {
  const auto event = reinterpret_cast<CUevent>(0x60);
  const auto calls = [&](const std::function<void()>& call) {
    g_driver.clear();
    call();
    std::vector<memopt::preload::Hook> hooks;
    for (const DriverCall& made : g_driver) hooks.push_back(made.hook);
    return hooks;
  };
  using memopt::preload::Hook;
  using Made = std::vector<Hook>;
  float milliseconds = 0;
  g_result = CUDA_ERROR_NOT_READY;
  EXPECT_EQ(calls([&] { hooks::cuEventQuery(event); }), Made{Hook::cuEventQuery});
  g_agent.behind_free = true;
  EXPECT_EQ(calls([&] { hooks::cuEventQuery(event); }), (Made{Hook::cuEventQuery, Hook::cuEventSynchronize}));
  EXPECT_EQ(calls([&] { hooks::cuStreamQuery(stream()); }), (Made{Hook::cuStreamQuery, Hook::cuStreamSynchronize}));
  EXPECT_EQ(calls([&] { hooks::cuEventElapsedTime_v2(&milliseconds, event, event); }),
            (Made{Hook::cuEventElapsedTime_v2, Hook::cuEventSynchronize, Hook::cuEventSynchronize,
                  Hook::cuEventElapsedTime_v2}));
}

TEST_F(Hooks, HostMemoryIsKnownWhileItLives) {
  void* memory = reinterpret_cast<void*>(0x4000);
  hooks::cuMemHostAlloc(&memory, 100, 0);
  EXPECT_EQ(g_agent.pinned, (std::map<std::uint64_t, std::size_t>{{0x4000, 100}}));
  g_result = CUDA_ERROR_INVALID_VALUE;
  hooks::cuMemFreeHost(memory);
  EXPECT_EQ(g_agent.pinned.size(), 1u) << "a refused free is taken back";
  g_result = CUDA_SUCCESS;
  hooks::cuMemFreeHost(memory);
  EXPECT_TRUE(g_agent.pinned.empty());
}

TEST_F(Hooks, QuestionsAreAnsweredForTheBlock) {
  size_t free = 5;
  size_t total = 100000;
  hooks::cuMemGetInfo_v2(&free, &total);
  EXPECT_EQ(free, 1005u);
  total = 500;
  hooks::cuMemGetInfo_v2(&free, &total);
  EXPECT_EQ(free, 500u);
  CUdeviceptr base = 1;
  size_t bytes = 2;
  hooks::cuMemGetAddressRange_v2(&base, &bytes, kOurs);
  EXPECT_EQ(base, 0x7000'0000'0000u);
  EXPECT_EQ(bytes, 777u);
  hooks::cuPointerGetAttribute(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, 0x1234);
  EXPECT_EQ(bytes, 777u) << "not ours: the driver's answer stays";
  CUpointer_attribute attributes[2] = {CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
  void* data[2] = {&base, &bytes};
  base = bytes = 0;
  hooks::cuPointerGetAttributes(2, attributes, data, kOurs);
  EXPECT_EQ(base, 0x7000'0000'0000u);
  EXPECT_EQ(bytes, 777u);
  base = 1;
  g_result = CUDA_ERROR_INVALID_CONTEXT;
  EXPECT_EQ(hooks::cuMemGetAddressRange_v2(&base, &bytes, kOurs), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(base, 1u);
}

// The time of what the driver has refused, or of several operations in one call, means nothing.
TEST_F(Hooks, OperationsAreMeasuredIfTheDriverTakesThem) {
  using agent::device_times_detail::Open;
  const auto stream = reinterpret_cast<CUstream>(0x100);
  CUdeviceptr to[] = {0x7000'0000'0000, 0x7000'0000'1000}, from[] = {0x7000'0000'2000, 0x7000'0000'3000};
  std::size_t bytes[] = {16, 16}, failed = 0;
  CUlaunchConfig config{};
  CUDA_MEMCPY2D shaped{};
  shaped.WidthInBytes = shaped.Height = 4;
  const std::function<CUresult()> calls[] = {
      [&] { return hooks::cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr); },
      [&] { return hooks::cuLaunchKernelEx(&config, nullptr, nullptr, nullptr); },
      [&] { return hooks::cuLaunchGrid(nullptr, 1, 1); },
      [&] { return hooks::cuGraphLaunch(nullptr, stream); },
      [&] { return hooks::cuMemsetD8Async(to[0], 1, 16, stream); },
      [&] { return hooks::cuMemcpyDtoDAsync_v2(to[0], from[0], 16, stream); },
      [&] { return hooks::cuMemcpyDtoD_v2(to[0], from[0], 16); },
      [&] { return hooks::cuMemcpy2D_v2(&shaped); },
      [&] { return hooks::cuMemcpyBatchAsync(to, from, bytes, 1, nullptr, nullptr, 0, &failed, stream); },
      [&] { return hooks::cuStreamWriteValue32_v2(stream, to[0], 1, 0); },
      [&] { return hooks::cuStreamBatchMemOp_v2(stream, 0, nullptr, 0); },
  };
  for (const auto& call : calls) {
    for (const CUresult result : {CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE}) {
      g_agent.measured.clear();
      g_result = result;
      EXPECT_EQ(call(), result);
      EXPECT_EQ(g_agent.measured, (std::vector<Open>{result == CUDA_SUCCESS ? Open::kYes : Open::kFailed}))
          << &call - calls;
    }
  }
  g_agent.measured.clear();
  g_result = CUDA_SUCCESS;
  hooks::cuMemcpyBatchAsync(to, from, bytes, 2, nullptr, nullptr, 0, &failed, stream);
  EXPECT_EQ(g_agent.measured, (std::vector<Open>{Open::kFailed}));
}

}  // namespace
}  // namespace memopt::preload
