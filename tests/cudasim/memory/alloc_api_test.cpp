#include <limits>

#include "api_fixture.h"

namespace {

using AllocTest = ApiTest;

TEST_F(AllocTest, InfoCountsGranules) {
  size_t free = 0, total = 0;
  ASSERT_EQ(cuMemGetInfo(&free, &total), CUDA_SUCCESS);
  EXPECT_EQ(total, size_t{64} << 20);
  EXPECT_EQ(free, total);
  const CUdeviceptr small = allocate(1);
  const CUdeviceptr large = allocate(kGranule + 1);
  ASSERT_EQ(cuMemGetInfo(&free, &total), CUDA_SUCCESS);
  EXPECT_EQ(total - free, 3 * kGranule);
  EXPECT_EQ(counters().bytes_live, kGranule + 2);
  EXPECT_EQ(counters().blocks_live, 2u);
  EXPECT_EQ(small % 512, 0u);
  EXPECT_EQ(cuMemFree(small), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree(large), CUDA_SUCCESS);
}

TEST_F(AllocTest, CapacityIsExact) {
  std::vector<CUdeviceptr> blocks;
  for (int i = 0; i < 32; ++i) blocks.push_back(allocate(kGranule));
  CUdeviceptr out = 0;
  EXPECT_EQ(cuMemAlloc(&out, 1), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemFree(blocks.back()), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAlloc(&out, kGranule + 1), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemAlloc(&out, kGranule), CUDA_SUCCESS);
  EXPECT_EQ(counters().bytes_held, counters().capacity);
}

TEST_F(AllocTest, BadArguments) {
  CUdeviceptr out = 0;
  size_t size = 0;
  EXPECT_EQ(cuMemAlloc(nullptr, 10), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAlloc(&out, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAlloc(&out, std::numeric_limits<size_t>::max()), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemGetInfo(nullptr, &size), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemGetInfo(&size, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFree(0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree(0x1000), CUDA_ERROR_INVALID_VALUE);
  const CUdeviceptr block = allocate(5000);
  EXPECT_EQ(cuMemFree(block + 512), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFree(block), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree(block), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(AllocTest, Pitch) {
  CUdeviceptr out = 0;
  size_t pitch = 0;
  ASSERT_EQ(cuMemAllocPitch(&out, &pitch, 1000, 10, 4), CUDA_SUCCESS);
  EXPECT_EQ(pitch, 1024u);
  size_t size = 0;
  EXPECT_EQ(cuMemGetAddressRange(nullptr, &size, out + 10239), CUDA_SUCCESS);
  EXPECT_EQ(size, 10240u);
  EXPECT_EQ(cuMemAllocPitch(&out, &pitch, 1000, 10, 3), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAllocPitch(&out, &pitch, 0, 10, 4), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAllocPitch(&out, &pitch, 10, 0, 4), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAllocPitch(&out, nullptr, 10, 10, 4), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAllocPitch(&out, &pitch, 1024, std::numeric_limits<size_t>::max() / 512, 4), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(AllocTest, AddressRange) {
  const CUdeviceptr block = allocate(3000);
  CUdeviceptr base = 0;
  size_t size = 0;
  ASSERT_EQ(cuMemGetAddressRange(&base, &size, block + 2999), CUDA_SUCCESS);
  EXPECT_EQ(base, block);
  EXPECT_EQ(size, 3000u);
  EXPECT_EQ(cuMemGetAddressRange(&base, &size, block + 3000), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(cuMemGetAddressRange(&base, &size, 0), CUDA_ERROR_NOT_FOUND);
}

TEST_F(AllocTest, FreeWaitsForEverythingThatIsQueued) {
  CUstream stream = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  const CUdeviceptr used = allocate(1 << 20), other = allocate(1000);
  const std::uint64_t start = now();
  // Issued at start + 200; 3000 + 2^20 / 512 on the device.
  ASSERT_EQ(cuMemsetD8Async(used, 1, 1 << 20, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFree(other), CUDA_SUCCESS);
  EXPECT_EQ(now() - start, std::max<std::uint64_t>(200 + 30000, 200 + 3000 + 2048));
  // And where the device takes longer than the call: four sets of 16 MiB, 3000 + 32768 each.
  const CUdeviceptr large = allocate(16 << 20);
  const std::uint64_t again = now();
  for (int i = 0; i < 4; ++i) ASSERT_EQ(cuMemsetD8Async(large, 1, 16 << 20, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFree(used), CUDA_SUCCESS);
  EXPECT_EQ(now() - again, 200u + 4 * (3000 + 32768));
  ASSERT_EQ(cuMemFree(large), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
}

TEST_F(AllocTest, ManagedMemoryIsTheHostsToo) {
  CUdeviceptr out = 0;
  EXPECT_EQ(cuMemAllocManaged(&out, 100, CU_MEM_ATTACH_SINGLE), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAllocManaged(&out, 0, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(cuMemAllocManaged(&out, 4096, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
  auto* const words = reinterpret_cast<unsigned*>(out);
  words[0] = 7;
  ASSERT_EQ(cuMemsetD32(out + 4, 9, 1023), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(words[0], 7u);
  EXPECT_EQ(words[1023], 9u);

  unsigned managed = 0;
  void* host = nullptr;
  EXPECT_EQ(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, out + 8), CUDA_SUCCESS);
  EXPECT_EQ(managed, 1u);
  EXPECT_EQ(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, out + 8), CUDA_SUCCESS);
  EXPECT_EQ(host, words + 2);

  const CUmemLocation here{CU_MEM_LOCATION_TYPE_DEVICE, {0}}, elsewhere{CU_MEM_LOCATION_TYPE_DEVICE, {1}};
  EXPECT_EQ(cuMemPrefetchAsync(out, 4096, here, 0, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuMemPrefetchAsync(out, 4097, here, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemPrefetchAsync(out, 4096, elsewhere, 0, nullptr), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(cuMemAdvise(out, 4096, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, here), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAdvise(out, 4096, static_cast<CUmem_advise>(7), here), CUDA_ERROR_INVALID_VALUE);
  CUstream stream = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamAttachMemAsync(stream, out, 0, CU_MEM_ATTACH_SINGLE), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamAttachMemAsync(nullptr, out, 0, CU_MEM_ATTACH_SINGLE), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamAttachMemAsync(stream, out + 8, 0, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);

  const CUdeviceptr plain = allocate(4096);
  EXPECT_EQ(cuMemcpyHtoD(plain, words, 4096), CUDA_SUCCESS) << "as a host's address, too";
  EXPECT_EQ(cuMemcpyHtoD(out, reinterpret_cast<void*>(plain), 4096), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemPrefetchAsync(plain, 4096, here, 0, nullptr), CUDA_ERROR_INVALID_VALUE) << "it is not managed";
  ASSERT_EQ(cuMemFree(plain), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFree(out), CUDA_SUCCESS);
}

}  // namespace
