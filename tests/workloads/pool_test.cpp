// The caching pool, preloaded in front of the simulated runtime: contents stay right when blocks pass between streams
// and threads, and memory is kept, shared and given back as its README says. Run with the simulator's adversary, under
// which a missing wait corrupts; the happens-before checker, which turns one into exit code 86, watches as well.
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kMiB = 1 << 20;

#define CHECK_CUDA(call) ASSERT_EQ((call), cudaSuccess) << #call

// Calls of a driver function so far, asked of the simulator.
std::uint64_t driver_calls(const char* name) {
  static auto* const calls =
      reinterpret_cast<std::uint64_t (*)(const char*)>(dlsym(dlopen("libcuda.so.1", RTLD_LAZY), "cudasim_calls"));
  if (calls == nullptr) throw std::runtime_error("libcuda.so.1 is not the simulator's");
  return calls(name);
}

std::uint64_t driver_allocations() { return driver_calls("cuMemAlloc_v2"); }

class CachingPool : public testing::Test {
 protected:
  void SetUp() override {
    // Otherwise every test here would pass without the pool.
    ASSERT_NE(dlsym(RTLD_DEFAULT, "cudaMalloc"), dlsym(dlopen("libcudart.so.13", RTLD_LAZY), "cudaMalloc"))
        << "the pool is not preloaded";
    CHECK_CUDA(cudaStreamCreateWithFlags(&a_, cudaStreamNonBlocking));
    CHECK_CUDA(cudaStreamCreateWithFlags(&b_, cudaStreamNonBlocking));
  }
  void TearDown() override {
    CHECK_CUDA(cudaDeviceSynchronize());
    CHECK_CUDA(cudaStreamDestroy(a_));
    CHECK_CUDA(cudaStreamDestroy(b_));
  }

  static void* allocate(std::size_t size) {
    void* pointer = nullptr;
    EXPECT_EQ(cudaMalloc(&pointer, size), cudaSuccess);
    return pointer;
  }
  static std::vector<unsigned char> read(const void* device, std::size_t size) {
    std::vector<unsigned char> bytes(size);
    EXPECT_EQ(cudaMemcpy(bytes.data(), device, size, cudaMemcpyDeviceToHost), cudaSuccess);
    return bytes;
  }
  static void expect_all(const void* device, std::size_t size, unsigned char value) {
    const auto bytes = read(device, size);
    EXPECT_EQ(std::count(bytes.begin(), bytes.end(), value), static_cast<std::ptrdiff_t>(size))
        << "of value " << int(value);
  }

  cudaStream_t a_ = nullptr, b_ = nullptr;
};

TEST_F(CachingPool, ServesTheSameSizeAgainWithoutTheDriver) {
  void* first = allocate(30 * kMiB);
  CHECK_CUDA(cudaFree(first));
  const auto before = driver_allocations();
  void* second = allocate(30 * kMiB);
  EXPECT_EQ(second, first);
  EXPECT_EQ(driver_allocations(), before);
  CHECK_CUDA(cudaFree(second));
}

TEST_F(CachingPool, SmallBlocksShareSegmentsAndMergeAgain) {
  std::vector<void*> blocks;
  const auto before = driver_allocations();
  // 2 MiB in 1,024 blocks of 2 KiB, each asked for a byte short of it.
  for (int i = 0; i < 1024; ++i) blocks.push_back(allocate(2047));
  EXPECT_LE(driver_allocations(), before + 2);
  std::sort(blocks.begin(), blocks.end());
  for (std::size_t i = 1; i < blocks.size(); ++i) {
    EXPECT_GE(static_cast<char*>(blocks[i]) - static_cast<char*>(blocks[i - 1]), 2048);
  }
  for (void* block : blocks) EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 512, 0u);
  // Freed in an order that leaves holes until the end.
  for (std::size_t i = 0; i < blocks.size(); i += 2) CHECK_CUDA(cudaFree(blocks[i]));
  for (std::size_t i = 1; i < blocks.size(); i += 2) CHECK_CUDA(cudaFree(blocks[i]));
  const auto freed = driver_allocations();
  void* whole = allocate(kMiB);
  EXPECT_EQ(driver_allocations(), freed) << "the holes did not become one block";
  CHECK_CUDA(cudaFree(whole));
}

TEST_F(CachingPool, BlocksPassBetweenStreamsInOrder) {
  constexpr std::size_t kSize = 12 * kMiB;
  void* kept_a = allocate(kSize);
  void* kept_b = allocate(kSize);
  void* first = allocate(kSize);
  CHECK_CUDA(cudaMemsetAsync(first, 1, kSize, a_));
  CHECK_CUDA(cudaMemcpyAsync(kept_a, first, kSize, cudaMemcpyDeviceToDevice, a_));
  const auto waits = driver_calls("cuStreamWaitEvent");
  CHECK_CUDA(cudaFree(first));
  void* second = allocate(kSize);
  ASSERT_EQ(second, first) << "the test needs the block to pass on";
  CHECK_CUDA(cudaMemsetAsync(second, 2, kSize, b_));
  EXPECT_GT(driver_calls("cuStreamWaitEvent"), waits);
  CHECK_CUDA(cudaMemcpyAsync(kept_b, second, kSize, cudaMemcpyDeviceToDevice, b_));
  CHECK_CUDA(cudaFree(second));
  CHECK_CUDA(cudaStreamSynchronize(a_));
  CHECK_CUDA(cudaStreamSynchronize(b_));
  expect_all(kept_a, kSize, 1);
  expect_all(kept_b, kSize, 2);
  CHECK_CUDA(cudaFree(kept_a));
  CHECK_CUDA(cudaFree(kept_b));
}

TEST_F(CachingPool, SameStreamNeedsNoWait) {
  void* first = allocate(12 * kMiB);
  CHECK_CUDA(cudaMemsetAsync(first, 1, 12 * kMiB, a_));
  CHECK_CUDA(cudaFree(first));
  const auto waits = driver_calls("cuStreamWaitEvent");
  void* second = allocate(12 * kMiB);
  CHECK_CUDA(cudaMemsetAsync(second, 2, 12 * kMiB, a_));
  EXPECT_EQ(driver_calls("cuStreamWaitEvent"), waits);
  CHECK_CUDA(cudaStreamSynchronize(a_));
  expect_all(second, 12 * kMiB, 2);
  CHECK_CUDA(cudaFree(second));
}

TEST_F(CachingPool, WorkOfADestroyedStreamIsWaitedFor) {
  constexpr std::size_t kSize = 14 * kMiB;
  void* kept = allocate(kSize);
  void* first = allocate(kSize);
  cudaStream_t brief = nullptr;
  CHECK_CUDA(cudaStreamCreateWithFlags(&brief, cudaStreamNonBlocking));
  CHECK_CUDA(cudaMemsetAsync(first, 3, kSize, brief));
  CHECK_CUDA(cudaMemcpyAsync(kept, first, kSize, cudaMemcpyDeviceToDevice, brief));
  CHECK_CUDA(cudaStreamDestroy(brief));
  CHECK_CUDA(cudaFree(first));
  void* second = allocate(kSize);
  CHECK_CUDA(cudaMemsetAsync(second, 4, kSize, a_));
  CHECK_CUDA(cudaDeviceSynchronize());
  expect_all(kept, kSize, 3);
  expect_all(second, kSize, 4);
  CHECK_CUDA(cudaFree(kept));
  CHECK_CUDA(cudaFree(second));
}

TEST_F(CachingPool, AFreeWaitsForCopiesToTheHost) {
  constexpr std::size_t kSize = 4 * kMiB;
  unsigned char* host = nullptr;
  CHECK_CUDA(cudaMallocHost(reinterpret_cast<void**>(&host), kSize));
  std::fill_n(host, kSize, std::uint8_t{0});
  void* device = allocate(kSize);
  CHECK_CUDA(cudaMemsetAsync(device, 5, kSize, a_));
  CHECK_CUDA(cudaMemcpyAsync(host, device, kSize, cudaMemcpyDeviceToHost, a_));
  CHECK_CUDA(cudaFree(device));
  EXPECT_EQ(std::count(host, host + kSize, 5), static_cast<std::ptrdiff_t>(kSize));
  CHECK_CUDA(cudaFreeHost(host));
}

TEST_F(CachingPool, CachedSegmentsAreGivenBackBeforeMemoryRunsOut) {
  std::size_t free_before = 0, free_cached = 0, total = 0;
  CHECK_CUDA(cudaMemGetInfo(&free_before, &total));
  const std::size_t half = free_before / 2 / kMiB * kMiB;
  void* first = allocate(half);
  CHECK_CUDA(cudaFree(first));
  CHECK_CUDA(cudaMemGetInfo(&free_cached, &total));
  EXPECT_EQ(free_cached, free_before) << "what is cached can be had";
  void* second = allocate(half + 64 * kMiB);
  CHECK_CUDA(cudaMemset(second, 6, half + 64 * kMiB));
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "the failed first try must not be seen";
  void* third = nullptr;
  EXPECT_EQ(cudaMalloc(&third, half), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  CHECK_CUDA(cudaFree(second));
}

TEST_F(CachingPool, WrongFreesAreErrors) {
  auto* block = static_cast<char*>(allocate(kMiB));
  EXPECT_EQ(cudaFree(block + 512), cudaErrorInvalidValue);
  CHECK_CUDA(cudaFree(block));
  EXPECT_EQ(cudaFree(block), cudaErrorInvalidValue);
  CHECK_CUDA(cudaFree(nullptr));
}

TEST_F(CachingPool, MemoryOfOthersPassesThrough) {
  void* pitched = nullptr;
  std::size_t pitch = 0;
  CHECK_CUDA(cudaMallocPitch(&pitched, &pitch, 1000, 16));
  CHECK_CUDA(cudaMemset2D(pitched, pitch, 7, 1000, 16));
  const auto frees = driver_calls("cuMemFree_v2");
  CHECK_CUDA(cudaFree(pitched));
  EXPECT_EQ(driver_calls("cuMemFree_v2"), frees + 1);
}

// Threads with two streams each, that all draw from the same pool and free what is still being written and read. What
// each block held when it was freed was copied to memory that only its thread knows.
TEST_F(CachingPool, ContentsSurviveManyThreadsAndStreams) {
  constexpr int kThreads = 6;
  constexpr int kRounds = 60;
  constexpr std::size_t kLargest = 3 * kMiB;
  const auto work = [](int index) {
    cudaStream_t streams[2] = {};
    for (cudaStream_t& stream : streams) CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    std::uint64_t random = 0x9e3779b97f4a7c15u * static_cast<std::uint64_t>(index + 1);
    const auto draw = [&](std::uint64_t below) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      return (random >> 33) % below;
    };
    constexpr std::size_t kSample = 4096;
    unsigned char* samples = nullptr;
    CHECK_CUDA(cudaMalloc(reinterpret_cast<void**>(&samples), 2 * kRounds * kSample));
    std::vector<unsigned char> expected;
    for (int round = 0; round < kRounds; ++round) {
      const std::size_t size = kSample + draw(kLargest);
      const auto value = static_cast<unsigned char>(1 + draw(255));
      cudaStream_t stream = streams[draw(2)];
      unsigned char* block = nullptr;
      CHECK_CUDA(cudaMalloc(reinterpret_cast<void**>(&block), size));
      CHECK_CUDA(cudaMemsetAsync(block, value, size, stream));
      // Both ends: a neighbour that is too long shows at one of them.
      for (const std::size_t offset : {std::size_t{0}, size - kSample}) {
        CHECK_CUDA(cudaMemcpyAsync(samples + expected.size() * kSample, block + offset, kSample,
                                   cudaMemcpyDeviceToDevice, stream));
        expected.push_back(value);
      }
      CHECK_CUDA(cudaFree(block));
    }
    for (cudaStream_t stream : streams) CHECK_CUDA(cudaStreamSynchronize(stream));
    const auto bytes = read(samples, expected.size() * kSample);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(i * kSample);
      EXPECT_EQ(std::count(first, first + kSample, expected[i]), static_cast<std::ptrdiff_t>(kSample))
          << "thread " << index << ", sample " << i;
    }
    CHECK_CUDA(cudaFree(samples));
    for (cudaStream_t stream : streams) CHECK_CUDA(cudaStreamDestroy(stream));
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
