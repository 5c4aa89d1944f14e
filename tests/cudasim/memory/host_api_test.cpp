#include <cstring>

#include "api_fixture.h"

namespace {

using HostMemoryTest = ApiTest;

TEST_F(HostMemoryTest, PinnedMemoryIsTheDevicesToo) {
  void* host = nullptr;
  ASSERT_EQ(cuMemHostAlloc(&host, 10000, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP), CUDA_SUCCESS);
  std::memset(host, 7, 10000);
  CUdeviceptr device = 0;
  ASSERT_EQ(cuMemHostGetDevicePointer(&device, static_cast<char*>(host) + 5, 0), CUDA_SUCCESS);
  EXPECT_EQ(device, reinterpret_cast<CUdeviceptr>(host) + 5);
  unsigned flags = 0;
  ASSERT_EQ(cuMemHostGetFlags(&flags, host), CUDA_SUCCESS);
  EXPECT_EQ(flags, unsigned{CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP});
  ASSERT_EQ(cuMemsetD8(device, 9, 10), CUDA_SUCCESS);  // waits: the memory is the host's
  EXPECT_EQ(static_cast<char*>(host)[4], 7);
  EXPECT_EQ(static_cast<char*>(host)[5], 9);
  EXPECT_EQ(static_cast<char*>(host)[14], 9);
  EXPECT_EQ(static_cast<char*>(host)[15], 7);
  EXPECT_EQ(counters().bytes_held, 0u);
  EXPECT_EQ(cuMemFreeHost(static_cast<char*>(host) + 5), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFreeHost(host), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFreeHost(host), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(HostMemoryTest, BadArguments) {
  void* host = nullptr;
  EXPECT_EQ(cuMemHostAlloc(nullptr, 10, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemHostAlloc(&host, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemHostAlloc(&host, 10, 8), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemHostAlloc(&host, size_t{1} << 60, 0), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemAllocHost(nullptr, 10), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFreeHost(nullptr), CUDA_ERROR_INVALID_VALUE);
  unsigned flags = 0;
  EXPECT_EQ(cuMemHostGetFlags(&flags, &flags), CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr device = 0;
  EXPECT_EQ(cuMemHostGetDevicePointer(&device, &flags, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(HostMemoryTest, RegisteredMemoryCountsAsPinned) {
  std::vector<char> own(100000, 3);
  ASSERT_EQ(cuMemHostRegister(own.data(), own.size(), CU_MEMHOSTREGISTER_DEVICEMAP), CUDA_SUCCESS);
  EXPECT_EQ(cuMemHostRegister(own.data(), own.size(), 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  EXPECT_EQ(cuMemHostRegister(own.data() + 99999, 10, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  CUdeviceptr device = 0;
  ASSERT_EQ(cuMemHostGetDevicePointer(&device, own.data(), 0), CUDA_SUCCESS);
  EXPECT_EQ(device, reinterpret_cast<CUdeviceptr>(own.data()));
  unsigned flags = 0;
  EXPECT_EQ(cuMemHostGetFlags(&flags, own.data()), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFreeHost(own.data()), CUDA_ERROR_INVALID_VALUE);
  const CUdeviceptr block = allocate(100000);
  // Registered only in part: not one kind of memory.
  EXPECT_EQ(cuMemcpyHtoD(block, own.data() + 1, 100000), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyHtoD(block, own.data(), 100000), CUDA_SUCCESS);
  EXPECT_EQ(cuMemHostUnregister(own.data() + 1), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  EXPECT_EQ(cuMemHostUnregister(own.data()), CUDA_SUCCESS);
  EXPECT_EQ(cuMemHostUnregister(own.data()), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

TEST_F(HostMemoryTest, WhatCanNotBeRegistered) {
  EXPECT_EQ(cuMemHostRegister(nullptr, 10, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemHostRegister(reinterpret_cast<void*>(4096), 10, 0), CUDA_ERROR_INVALID_VALUE);  // nothing is there
  char own = 0;
  EXPECT_EQ(cuMemHostRegister(&own, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemHostRegister(&own, 1, 64), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemHostRegister(&own, 1, CU_MEMHOSTREGISTER_IOMEMORY), CUDA_ERROR_NOT_SUPPORTED);
}

}  // namespace
