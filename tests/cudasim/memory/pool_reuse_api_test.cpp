// Which bytes a pool gives out again, to which stream, and when.
#include <atomic>
#include <chrono>
#include <limits>
#include <random>
#include <vector>

#include "pool_fixture.h"

namespace {

TEST_F(PoolTest, TheSameStreamGetsItsBytesAtOnce) {
  const CUdeviceptr first = allocate(kBlock, a);
  EXPECT_EQ(first % 512, 0u);
  EXPECT_EQ(cuMemsetD8Async(first, 1, kBlock, a), CUDA_SUCCESS);
  free(first, a);
  const CUdeviceptr second = allocate(kBlock, a);
  EXPECT_EQ(second, first);
  EXPECT_EQ(cuMemsetD8Async(second, 2, kBlock, a), CUDA_SUCCESS);
  std::vector<unsigned char> back(kBlock);
  EXPECT_EQ(cuMemcpyDtoHAsync(back.data(), second, kBlock, a), CUDA_SUCCESS);
  EXPECT_EQ(back, std::vector<unsigned char>(kBlock, 2));
  free(second, a);
}

TEST_F(PoolTest, AnotherStreamDoesNotGetWhatMayStillBeInUse) {
  const CUdeviceptr first = allocate(kBlock, a);
  EXPECT_EQ(cuMemsetD8Async(first, 1, kBlock, a), CUDA_SUCCESS);
  free(first, a);
  const CUdeviceptr second = allocate(kBlock, b);
  EXPECT_NE(second, first);
  free(second, b);
}

TEST_F(PoolTest, AnEventDependencyPassesBytesOn) {
  const CUdeviceptr first = allocate(kBlock, a);
  EXPECT_EQ(cuMemsetD8Async(first, 1, kBlock, a), CUDA_SUCCESS);
  free(first, a);
  edge(a, b);
  const CUdeviceptr second = allocate(kBlock, b);
  EXPECT_EQ(second, first);
  EXPECT_EQ(cuMemsetD8Async(second, 2, kBlock, b), CUDA_SUCCESS);
  free(second, b);
}

TEST_F(PoolTest, AnEventThatWasRecordedBeforeTheFreeDoesNot) {
  const CUdeviceptr first = allocate(kBlock, a);
  EXPECT_EQ(cuMemsetD8Async(first, 1, kBlock, a), CUDA_SUCCESS);
  edge(a, b);
  free(first, a);
  const CUdeviceptr second = allocate(kBlock, b);
  EXPECT_NE(second, first);
  free(second, b);
}

TEST_F(PoolTest, EventDependenciesCanBeLeftUnused) {
  set_flag(CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, 0);
  const CUdeviceptr first = allocate(kBlock, a);
  EXPECT_EQ(cuMemsetD8Async(first, 1, kBlock, a), CUDA_SUCCESS);
  free(first, a);
  edge(a, b);
  const CUdeviceptr second = allocate(kBlock, b);
  EXPECT_NE(second, first);
  free(second, b);
}

TEST_F(PoolTest, TheLegacyStreamIsADependency) {
  CUstream blocking = nullptr;
  ASSERT_EQ(cuStreamCreate(&blocking, CU_STREAM_DEFAULT), CUDA_SUCCESS);
  const CUdeviceptr first = allocate(kBlock, blocking);
  EXPECT_EQ(cuMemsetD8Async(first, 1, kBlock, blocking), CUDA_SUCCESS);
  free(first, blocking);
  const CUdeviceptr second = allocate(kBlock, nullptr);
  EXPECT_EQ(second, first);
  free(second, nullptr);
}

TEST_F(PoolTest, FreesThatAreOverAreTakenIfThatIsAllowed) {
  for (const int allowed : {1, 0}) {
    set_flag(CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, allowed);
    const CUdeviceptr first = allocate(kMost, a);
    EXPECT_EQ(cuMemsetD8Async(first, 1, kMost, a), CUDA_SUCCESS);
    free(first, a);
    cudasim_host_works(1'000'000);
    const CUdeviceptr second = allocate(kMost, b);
    EXPECT_EQ(second == first, allowed == 1);
    EXPECT_EQ(cuMemsetD8Async(second, 2, kBlock, b), CUDA_SUCCESS);
    std::vector<unsigned char> back(kBlock);
    EXPECT_EQ(cuMemcpyDtoHAsync(back.data(), second, kBlock, b), CUDA_SUCCESS);
    EXPECT_EQ(back, std::vector<unsigned char>(kBlock, 2));
    free(second, b);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  }
}

TEST_F(PoolTest, WhatTheHostHasWaitedForIsAnybodysWhateverThePolicies) {
  for (const auto attribute :
       {CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC,
        CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES}) {
    set_flag(attribute, 0);
  }
  keep(std::numeric_limits<cuuint64_t>::max());
  const CUdeviceptr first = allocate(kBlock, a);
  free(first, a);
  EXPECT_EQ(cuStreamSynchronize(a), CUDA_SUCCESS);
  EXPECT_EQ(allocate(kBlock, b), first);
  free(first, b);
}

TEST_F(PoolTest, AnAnswerIsAsGoodAsAWaitButReleasesNothing) {
  for (const auto attribute :
       {CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC})
    set_flag(attribute, 0);
  const CUdeviceptr first = allocate(kMost, a);
  EXPECT_EQ(cuMemsetD8Async(first, 1, kMost, a), CUDA_SUCCESS);
  free(first, a);
  EXPECT_EQ(cuEventRecord(event, a), CUDA_SUCCESS);
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  cudasim_host_works(1'000'000);
  EXPECT_EQ(cuEventQuery(event), CUDA_SUCCESS);
  EXPECT_EQ(reserved(), kStep);
  EXPECT_EQ(allocate(kMost, b), first);
  EXPECT_EQ(reserved(), kStep);
  free(first, b);
}

void raise_flag(void* flag) { static_cast<std::atomic<bool>*>(flag)->store(true); }

// What a host function tells the program, the driver does not hear: placement is the same whenever it runs.
TEST_F(PoolTest, AHostFunctionIsNoWait) {
  for (const auto attribute :
       {CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC,
        CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES}) {
    set_flag(attribute, 0);
  }
  keep(std::numeric_limits<cuuint64_t>::max());
  const CUdeviceptr first = allocate(kMost, a);
  free(first, a);
  std::atomic<bool> ran{false};
  EXPECT_EQ(cuLaunchHostFunc(a, raise_flag, &ran), CUDA_SUCCESS);
  for (int i = 0; i < 10'000 && !ran.load(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ASSERT_TRUE(ran.load());
  const CUdeviceptr second = allocate(kMost, b);
  EXPECT_NE(second, first);
  EXPECT_EQ(cuStreamSynchronize(a), CUDA_SUCCESS);
  EXPECT_EQ(allocate(kMost, b), first);
  free(first, b);
  free(second, b);
}

TEST_F(PoolTest, AFullDeviceLeadsToAWaitOnTheDevice) {
  const CUdeviceptr first = allocate(48u << 20, a);
  EXPECT_EQ(cuMemsetD8Async(first, 1, 48u << 20, a), CUDA_SUCCESS);  // 3000 + 98304 ns from now + 200
  const std::uint64_t busy_until = now() + 3000 + 98304;
  free(first, a);
  const CUdeviceptr second = allocate(48u << 20, b);
  EXPECT_EQ(second, first);
  EXPECT_LT(now(), busy_until) << "the host did not wait";
  EXPECT_EQ(cuMemsetD8Async(second, 2, 512, b), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(b), CUDA_SUCCESS);
  EXPECT_EQ(now(), busy_until + 3000 + 1);
  EXPECT_EQ(read_back(second, 512), std::vector<unsigned char>(512, 2));
  free(second, b);
}

TEST_F(PoolTest, WithoutInternalDependenciesItIsOutOfMemory) {
  set_flag(CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, 0);
  const CUdeviceptr first = allocate(48u << 20, a);
  EXPECT_EQ(cuMemsetD8Async(first, 1, 48u << 20, a), CUDA_SUCCESS);
  free(first, a);
  CUdeviceptr second = 0;
  EXPECT_EQ(cuMemAllocAsync(&second, 48u << 20, b), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuStreamSynchronize(a), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAllocAsync(&second, 48u << 20, b), CUDA_SUCCESS);
  free(second, b);
}

// Blocks that are made on one stream, used on a second one and freed on a third, as caching allocators' users do it.
// All bytes are read back and are the right ones, with all policies, and on a device that is nearly always full.
TEST_F(PoolTest, BlocksThatWanderOverStreamsKeepTheirContents) {
  constexpr int kRounds = 100;
  constexpr std::size_t kSlot = 4096;
  CUstream c = nullptr;
  ASSERT_EQ(cuStreamCreate(&c, CU_STREAM_DEFAULT), CUDA_SUCCESS);
  const CUstream streams[] = {a, b, c, nullptr};
  for (int policies = 0; policies < 8; ++policies) {
    set_flag(CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, policies & 1);
    set_flag(CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, policies >> 1 & 1);
    set_flag(CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, policies >> 2 & 1);
    keep((policies & 1) == 0 ? 0 : std::numeric_limits<cuuint64_t>::max());
    std::mt19937 random(static_cast<unsigned>(policies));
    const CUdeviceptr seen = ApiTest::allocate(kRounds * kSlot);
    struct Live {
      CUdeviceptr address;
      std::size_t size;
      int round;
      CUstream made_on;
    };
    std::vector<Live> live;
    int synchronisations = 0;
    const auto finish = [&](std::size_t index) {
      const Live block = live[index];
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(index));
      const CUstream user = streams[random() % 4], last = streams[random() % 4];
      edge(block.made_on, user);
      const CUdeviceptr slot = seen + static_cast<std::size_t>(block.round) * kSlot;
      EXPECT_EQ(cuMemcpyDtoDAsync(slot, block.address, kSlot / 2, user), CUDA_SUCCESS);
      EXPECT_EQ(cuMemcpyDtoDAsync(slot + kSlot / 2, block.address + block.size - kSlot / 2, kSlot / 2, user),
                CUDA_SUCCESS);
      edge(user, last);
      free(block.address, last);
    };
    for (int round = 0; round < kRounds; ++round) {
      while (live.size() > random() % 5) finish(random() % live.size());
      const std::size_t size = kSlot + random() % (8u << 20) / 512 * 512;
      const CUstream stream = streams[random() % 4];
      CUdeviceptr address = 0;
      if (cuMemAllocAsync(&address, size, stream) == CUDA_ERROR_OUT_OF_MEMORY) {
        ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
        ++synchronisations;
        ASSERT_EQ(cuMemAllocAsync(&address, size, stream), CUDA_SUCCESS);
      }
      EXPECT_EQ(cuMemsetD8Async(address, static_cast<unsigned char>(round), size, stream), CUDA_SUCCESS);
      live.push_back({address, size, round, stream});
      if (random() % 40 == 0) {
        EXPECT_EQ(cuStreamSynchronize(streams[random() % 4]), CUDA_SUCCESS);
      }
    }
    while (!live.empty()) finish(0);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    const std::vector<unsigned char> back = read_back(seen, kRounds * kSlot);
    for (std::size_t i = 0; i < back.size(); ++i) {
      ASSERT_EQ(back[i], static_cast<unsigned char>(i / kSlot)) << "policies " << policies << ", byte " << i % kSlot;
    }
    EXPECT_EQ(cuMemFree(seen), CUDA_SUCCESS);
    EXPECT_LT(synchronisations, policies >= 4 ? 20 : kRounds) << "policies " << policies;
    EXPECT_EQ(cuMemPoolTrimTo(pool, 0), CUDA_SUCCESS);
    EXPECT_EQ(reserved(), 0u);
  }
}

}  // namespace
