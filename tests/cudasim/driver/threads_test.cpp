// Many threads in the driver at once; under ThreadSanitizer this is the test of its locking.
#include <cuda.h>
#include <gtest/gtest.h>

#include <barrier>
#include <thread>
#include <vector>

#include "check.h"
#include "cudasim/cudasim.h"

namespace {

constexpr int kThreads = 8;
constexpr int kRounds = 200;

TEST(ThreadsTest, EightThreadsHammer) {
  ASSERT_OK(cuInit(0));
  CUcontext context = nullptr;
  ASSERT_OK(cuCtxCreate(&context, nullptr, 0, 0));
  const std::uint64_t allocations = cudasim_calls("cuMemAlloc_v2");
  const std::uint64_t frees = cudasim_calls("cuMemFree_v2");
  std::barrier start(kThreads);
  std::vector<std::thread> threads;
  for (int index = 0; index < kThreads; ++index) {
    threads.emplace_back([&, index] {
      start.arrive_and_wait();
      EXPECT_OK(cuCtxSetCurrent(context));
      CUstream stream = nullptr;
      EXPECT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
      for (int round = 0; round < kRounds; ++round) {
        std::vector<unsigned char> back(512, 0);
        CUdeviceptr block = 0;
        EXPECT_OK(cuMemAlloc(&block, back.size()));
        EXPECT_OK(cuMemsetD8Async(block, static_cast<unsigned char>(index + 1), back.size(), stream));
        EXPECT_OK(cuMemcpyDtoHAsync(back.data(), block, back.size(), stream));
        EXPECT_OK(cuStreamSynchronize(stream));
        EXPECT_EQ(back, std::vector<unsigned char>(512, static_cast<unsigned char>(index + 1)));
        EXPECT_OK(cuMemFree(block));
        CudasimCounters counters{};
        counters.struct_size = sizeof counters;
        EXPECT_EQ(cudasim_counters(&counters), 0);
        EXPECT_EQ(counters.races, 0u) << cudasim_last_race();
      }
      EXPECT_OK(cuStreamDestroy(stream));
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(cudasim_calls("cuMemAlloc_v2") - allocations, std::uint64_t{kThreads} * kRounds);
  EXPECT_EQ(cudasim_calls("cuMemFree_v2") - frees, std::uint64_t{kThreads} * kRounds);
  EXPECT_OK(cuCtxDestroy(context));
}

}  // namespace
