#include "api_fixture.h"

namespace {

class VmmTest : public ApiTest {
 protected:
  CUdeviceptr reserve(size_t size) {
    CUdeviceptr out = 0;
    EXPECT_EQ(cuMemAddressReserve(&out, size, 0, 0, 0), CUDA_SUCCESS);
    return out;
  }
  CUmemGenericAllocationHandle create(size_t size) {
    const CUmemAllocationProp prop = device_memory();
    CUmemGenericAllocationHandle out = 0;
    EXPECT_EQ(cuMemCreate(&out, size, &prop, 0), CUDA_SUCCESS);
    return out;
  }
};

TEST_F(VmmTest, CopiesSeeOneMemoryThroughTwoAddresses) {
  const CUdeviceptr base = reserve(2 * kGranule);
  const auto handle = create(kGranule);
  for (const CUdeviceptr at : {base, base + kGranule}) {
    ASSERT_EQ(cuMemMap(at, kGranule, 0, handle, 0), CUDA_SUCCESS);
    ASSERT_EQ(set_access(at, kGranule, CU_MEM_ACCESS_FLAGS_PROT_READWRITE), CUDA_SUCCESS);
  }
  const auto bytes = pattern(300000, 3);
  ASSERT_EQ(cuMemcpyHtoD(base + 77, bytes.data(), bytes.size()), CUDA_SUCCESS);
  EXPECT_EQ(read_back(base + kGranule + 77, bytes.size()), bytes);
  ASSERT_EQ(cuMemUnmap(base, 2 * kGranule), CUDA_SUCCESS);
  ASSERT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAddressFree(base, 2 * kGranule), CUDA_SUCCESS);
}

TEST_F(VmmTest, CostsGrowWithTheHandlesNamed) {
  const std::uint64_t vmm_calls = counters().vmm_calls;
  std::uint64_t at = now();
  const auto took = [&] {
    const std::uint64_t before = at;
    at = now();
    return at - before;
  };
  const CUdeviceptr base = reserve(3 * kGranule);
  EXPECT_EQ(took(), 1000u);
  const CUmemGenericAllocationHandle handles[] = {create(kGranule), create(2 * kGranule)};
  EXPECT_EQ(took(), 2u * (10 + 29000));
  ASSERT_EQ(cuMemMap(base, kGranule, 0, handles[0], 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemMap(base + kGranule, 2 * kGranule, 0, handles[1], 0), CUDA_SUCCESS);
  EXPECT_EQ(took(), 2u * (20 + 2000));
  ASSERT_EQ(set_access(base, 3 * kGranule, CU_MEM_ACCESS_FLAGS_PROT_READ), CUDA_SUCCESS);
  EXPECT_EQ(took(), 30u + 2 * 38000);
  ASSERT_EQ(cuMemUnmap(base, 3 * kGranule), CUDA_SUCCESS);
  EXPECT_EQ(took(), 40u + 2 * 34000);
  for (const auto handle : handles) ASSERT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(took(), 2u * (50 + 23000));
  ASSERT_EQ(cuMemAddressFree(base, 3 * kGranule), CUDA_SUCCESS);
  EXPECT_EQ(took(), 1100u);
  EXPECT_EQ(counters().vmm_calls - vmm_calls, 10u);
}

// None of these calls waits: work that is still queued faults when it comes to run, and the context is lost.
TEST_F(VmmTest, UseAfterUnmapIsAStickyIllegalAddress) {
  if (adversarial()) GTEST_SKIP() << "the set may have run before the unmap";
  const CUdeviceptr base = reserve(kGranule);
  const auto handle = create(kGranule);
  ASSERT_EQ(cuMemMap(base, kGranule, 0, handle, 0), CUDA_SUCCESS);
  ASSERT_EQ(set_access(base, kGranule, CU_MEM_ACCESS_FLAGS_PROT_READWRITE), CUDA_SUCCESS);
  const CUdeviceptr busy = allocate(32 << 20);
  ASSERT_EQ(cuMemsetD8Async(busy, 1, 32 << 20, nullptr), CUDA_SUCCESS);  // 68 us: longer than the unmap
  ASSERT_EQ(cuMemsetD8Async(base, 1, kGranule, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuMemUnmap(base, kGranule), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  CUdeviceptr out = 0;
  EXPECT_EQ(cuMemAlloc(&out, 10), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAddressFree(base, kGranule), CUDA_SUCCESS);
}

TEST_F(VmmTest, WritingWhatMayOnlyBeReadIsAnIllegalAddress) {
  const CUdeviceptr base = reserve(kGranule);
  const auto handle = create(kGranule);
  ASSERT_EQ(cuMemMap(base, kGranule, 0, handle, 0), CUDA_SUCCESS);
  ASSERT_EQ(set_access(base, kGranule, CU_MEM_ACCESS_FLAGS_PROT_READ), CUDA_SUCCESS);
  EXPECT_EQ(read_back(base, 100).size(), 100u);
  ASSERT_EQ(cuMemsetD8(base, 1, 100), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuMemUnmap(base, kGranule), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAddressFree(base, kGranule), CUDA_SUCCESS);
}

TEST_F(VmmTest, AccessAndPropertiesAreToldBack) {
  const CUdeviceptr base = reserve(kGranule);
  CUmemAllocationProp prop = device_memory();
  prop.allocFlags.gpuDirectRDMACapable = 1;
  prop.allocFlags.compressionType = CU_MEM_ALLOCATION_COMP_GENERIC;
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_EQ(cuMemCreate(&handle, kGranule, &prop, 0), CUDA_SUCCESS);
  CUmemAllocationProp told{};
  ASSERT_EQ(cuMemGetAllocationPropertiesFromHandle(&told, handle), CUDA_SUCCESS);
  EXPECT_EQ(told.location.id, 0);
  EXPECT_EQ(told.allocFlags.gpuDirectRDMACapable, 1);
  EXPECT_EQ(told.allocFlags.compressionType, CU_MEM_ALLOCATION_COMP_NONE);
  const CUmemLocation location{CU_MEM_LOCATION_TYPE_DEVICE, 0};
  unsigned long long flags = 99;
  EXPECT_EQ(cuMemGetAccess(&flags, &location, base), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(cuMemMap(base, kGranule, 0, handle, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemGetAccess(&flags, &location, base), CUDA_SUCCESS);
  EXPECT_EQ(flags, unsigned{CU_MEM_ACCESS_FLAGS_PROT_NONE});
  ASSERT_EQ(set_access(base, kGranule, CU_MEM_ACCESS_FLAGS_PROT_READ), CUDA_SUCCESS);
  ASSERT_EQ(cuMemGetAccess(&flags, &location, base + 5), CUDA_SUCCESS);
  EXPECT_EQ(flags, unsigned{CU_MEM_ACCESS_FLAGS_PROT_READ});
  CUmemGenericAllocationHandle retained = 0;
  ASSERT_EQ(cuMemRetainAllocationHandle(&retained, reinterpret_cast<void*>(base + 5)), CUDA_SUCCESS);
  EXPECT_EQ(retained, handle);
  EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemUnmap(base, kGranule), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAddressFree(base, kGranule), CUDA_SUCCESS);
}

TEST_F(VmmTest, BadArguments) {
  CUmemGenericAllocationHandle handle = 0;
  CUmemAllocationProp prop = device_memory();
  EXPECT_EQ(cuMemCreate(nullptr, kGranule, &prop, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemCreate(&handle, kGranule, nullptr, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemCreate(&handle, kGranule, &prop, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemCreate(&handle, 0, &prop, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemCreate(&handle, 4096, &prop, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemCreate(&handle, 33 * kGranule, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
  prop.location.id = 1;
  EXPECT_EQ(cuMemCreate(&handle, kGranule, &prop, 0), CUDA_ERROR_INVALID_DEVICE);
  prop = device_memory();
  prop.type = CU_MEM_ALLOCATION_TYPE_INVALID;
  EXPECT_EQ(cuMemCreate(&handle, kGranule, &prop, 0), CUDA_ERROR_INVALID_VALUE);
  prop = device_memory();
  prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
  EXPECT_EQ(cuMemCreate(&handle, kGranule, &prop, 0), CUDA_ERROR_NOT_SUPPORTED);
  prop = device_memory();
  prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
  EXPECT_EQ(cuMemCreate(&handle, kGranule, &prop, 0), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cuMemRelease(987654), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAddressReserve(nullptr, kGranule, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
  size_t granularity = 0;
  prop = device_memory();
  ASSERT_EQ(cuMemGetAllocationGranularity(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM), CUDA_SUCCESS);
  EXPECT_EQ(granularity, kGranule);
  EXPECT_EQ(cuMemGetAllocationGranularity(nullptr, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM), CUDA_ERROR_INVALID_VALUE);
  CUmemAccessDesc access{};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
  const CUdeviceptr base = reserve(kGranule);
  EXPECT_EQ(cuMemSetAccess(base, kGranule, &access, 1), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(cuMemSetAccess(base, kGranule, &access, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemSetAccess(base, kGranule, nullptr, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(set_access(base, kGranule, CU_MEM_ACCESS_FLAGS_PROT_READ), CUDA_ERROR_INVALID_VALUE);  // not mapped
  EXPECT_EQ(cuMemcpyHtoD(base, &granularity, 8), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAddressFree(base, kGranule), CUDA_SUCCESS);
}

}  // namespace
