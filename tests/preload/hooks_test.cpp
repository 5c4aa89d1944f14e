// The hooks of operation_hooks.inc on their own: each calls a driver made of this test, and tells an agent made of this
// test.
#include "tests/preload/fake_agent.h"

namespace memopt::preload {
namespace {

using namespace test;

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
      // Blocks that leave make room for others, which are served here.
      const bool serves = hook == Hook::cuMemAllocAsync || hook == Hook::cuMemAllocAsync_ptsz;
      EXPECT_EQ(g_agent.reliefs.size(), serves ? 2u : 3u)
          << "what is cached first, then the plan's memory, then blocks";
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

TEST_F(Hooks, BlocksLeaveBeforeAPoolIsOutOfMemory) {
  g_result = CUDA_ERROR_OUT_OF_MEMORY;
  g_agent.swaps = true;
  CUdeviceptr address = 0;
  EXPECT_EQ(hooks::cuMemAllocAsync(&address, 100, stream()), CUDA_SUCCESS);
  EXPECT_EQ(address, agent::arena_range_begin) << "the second time it is served here";
  EXPECT_EQ(g_driver.size(), 1u);
  shm::Bytes size;
  EXPECT_FALSE(agent::blocks().erase(address, &size)) << "it is none of the driver's";
}

TEST_F(Hooks, BlocksLeaveForOtherCalls) {
  g_result = CUDA_ERROR_OUT_OF_MEMORY;
  g_agent.swaps_for_others = true;
  CUmemoryPool pool = nullptr;
  const CUmemPoolProps properties{};
  EXPECT_EQ(hooks::cuMemPoolCreate(&pool, &properties), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(g_driver.size(), 2u) << "the driver is asked again";
  ASSERT_EQ(g_agent.reliefs.size(), 3u);
  EXPECT_EQ(g_agent.reliefs.back(), std::pair(agent::Relief::kBlocks, std::size_t{0}));
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
