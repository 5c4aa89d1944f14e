// A pool of its own, made the current one, two streams and an event; for tests of stream-ordered allocation.
#pragma once

#include <cstddef>
#include <cstdint>

#include "api_fixture.h"

inline constexpr std::size_t kStep = 32u << 20;  // what a pool takes from the device at once
inline constexpr std::size_t kBlock = 4u << 20;
inline constexpr std::size_t kMost = 20u << 20;  // of which a step has room for one

class PoolTest : public ApiTest {
 protected:
  void SetUp() override {
    ApiTest::SetUp();
    CUmemPoolProps properties = device_pool();
    ASSERT_EQ(cuMemPoolCreate(&pool, &properties), CUDA_SUCCESS);
    ASSERT_EQ(cuDeviceSetMemPool(0, pool), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  }
  void TearDown() override {
    if (pool != nullptr) {
      EXPECT_EQ(cuMemPoolDestroy(pool), CUDA_SUCCESS);
    }
    ApiTest::TearDown();  // its context's end is a synchronisation, after which nothing may be held
  }

  static CUmemPoolProps device_pool() {
    CUmemPoolProps properties{};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    return properties;
  }
  static CUdeviceptr allocate(std::size_t size, CUstream stream) {
    CUdeviceptr out = 0;
    EXPECT_EQ(cuMemAllocAsync(&out, size, stream), CUDA_SUCCESS);
    return out;
  }
  static void free(CUdeviceptr block, CUstream stream) { EXPECT_EQ(cuMemFreeAsync(block, stream), CUDA_SUCCESS); }
  void edge(CUstream from, CUstream to) const {
    EXPECT_EQ(cuEventRecord(event, from), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamWaitEvent(to, event, 0), CUDA_SUCCESS);
  }
  std::uint64_t value(CUmemPool_attribute attribute) const {
    cuuint64_t out = 0;
    EXPECT_EQ(cuMemPoolGetAttribute(pool, attribute, &out), CUDA_SUCCESS);
    return out;
  }
  std::uint64_t reserved() const { return value(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT); }
  std::uint64_t used() const { return value(CU_MEMPOOL_ATTR_USED_MEM_CURRENT); }
  void set_flag(CUmemPool_attribute attribute, int flag) const {
    EXPECT_EQ(cuMemPoolSetAttribute(pool, attribute, &flag), CUDA_SUCCESS);
  }
  void keep(cuuint64_t threshold) const {
    EXPECT_EQ(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold), CUDA_SUCCESS);
  }
  static std::size_t device_free() {
    std::size_t free = 0, total = 0;
    EXPECT_EQ(cuMemGetInfo(&free, &total), CUDA_SUCCESS);
    return free;
  }

  CUmemoryPool pool = nullptr;
  CUstream a = nullptr, b = nullptr;
  CUevent event = nullptr;
};
