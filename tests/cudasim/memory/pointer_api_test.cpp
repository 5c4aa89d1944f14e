#include "api_fixture.h"

namespace {

class PointerTest : public ApiTest {
 protected:
  template <class Value>
  static Value attribute(CUpointer_attribute which, CUdeviceptr pointer) {
    Value value{};
    EXPECT_EQ(cuPointerGetAttribute(&value, which, pointer), CUDA_SUCCESS) << which;
    return value;
  }
};

TEST_F(PointerTest, DeviceBlock) {
  const CUdeviceptr block = allocate(5000), at = block + 100;
  EXPECT_EQ(attribute<CUcontext>(CU_POINTER_ATTRIBUTE_CONTEXT, at), context);
  EXPECT_EQ(attribute<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at), unsigned{CU_MEMORYTYPE_DEVICE});
  EXPECT_EQ(attribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, at), at);
  EXPECT_EQ(attribute<int>(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at), 0);
  EXPECT_EQ(attribute<unsigned>(CU_POINTER_ATTRIBUTE_IS_MANAGED, at), 0u);
  EXPECT_EQ(attribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, at), block);
  EXPECT_EQ(attribute<size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, at), 5000u);
  EXPECT_EQ(attribute<unsigned>(CU_POINTER_ATTRIBUTE_MAPPED, at), 1u);
  void* host = nullptr;
  EXPECT_EQ(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, at), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, block + 5000),
            CUDA_ERROR_INVALID_VALUE);
}

TEST_F(PointerTest, BufferIdsAreNeverUsedTwice) {
  const CUdeviceptr first = allocate(kGranule);
  const auto id = attribute<unsigned long long>(CU_POINTER_ATTRIBUTE_BUFFER_ID, first);
  ASSERT_EQ(cuMemFree(first), CUDA_SUCCESS);
  const CUdeviceptr second = allocate(kGranule);
  EXPECT_EQ(second, first);  // addresses are
  EXPECT_NE(attribute<unsigned long long>(CU_POINTER_ATTRIBUTE_BUFFER_ID, second), id);
}

TEST_F(PointerTest, PinnedAndRegistered) {
  std::vector<char> own(5000);
  ASSERT_EQ(cuMemHostRegister(own.data(), own.size(), 0), CUDA_SUCCESS);
  void* block = pinned(5000);
  for (void* base : {block, static_cast<void*>(own.data())}) {
    const auto at = reinterpret_cast<CUdeviceptr>(base) + 7;
    EXPECT_EQ(attribute<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at), unsigned{CU_MEMORYTYPE_HOST});
    EXPECT_EQ(attribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, at), at);
    EXPECT_EQ(attribute<void*>(CU_POINTER_ATTRIBUTE_HOST_POINTER, at), reinterpret_cast<void*>(at));
    EXPECT_EQ(attribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, at), at - 7);
  }
  ASSERT_EQ(cuMemFreeHost(block), CUDA_SUCCESS);
  ASSERT_EQ(cuMemHostUnregister(own.data()), CUDA_SUCCESS);
}

TEST_F(PointerTest, ReservationAndMapping) {
  CUdeviceptr base = 0;
  ASSERT_EQ(cuMemAddressReserve(&base, 4 * kGranule, 0, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(attribute<unsigned>(CU_POINTER_ATTRIBUTE_MAPPED, base), 0u);
  const CUmemAllocationProp prop = device_memory();
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_EQ(cuMemCreate(&handle, kGranule, &prop, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemMap(base + kGranule, kGranule, 0, handle, 0), CUDA_SUCCESS);
  const CUdeviceptr at = base + kGranule + 9;
  EXPECT_EQ(attribute<unsigned>(CU_POINTER_ATTRIBUTE_MAPPED, at), 1u);
  EXPECT_EQ(attribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, at), base);
  EXPECT_EQ(attribute<size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, at), 4 * kGranule);
  EXPECT_EQ(attribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, at), base + kGranule);
  EXPECT_EQ(attribute<size_t>(CU_POINTER_ATTRIBUTE_MAPPING_SIZE, at), kGranule);
  EXPECT_EQ(attribute<unsigned>(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, at),
            unsigned{CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE});
  ASSERT_EQ(set_access(base + kGranule, kGranule, CU_MEM_ACCESS_FLAGS_PROT_READWRITE), CUDA_SUCCESS);
  EXPECT_EQ(attribute<unsigned>(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, at),
            unsigned{CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE});
  ASSERT_EQ(cuMemUnmap(base + kGranule, kGranule), CUDA_SUCCESS);
  ASSERT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAddressFree(base, 4 * kGranule), CUDA_SUCCESS);
}

TEST_F(PointerTest, UnknownPointers) {
  int own = 0;
  const auto at = reinterpret_cast<CUdeviceptr>(&own);
  unsigned type = 99;
  EXPECT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuPointerGetAttribute(nullptr, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at), CUDA_ERROR_INVALID_VALUE);
  CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_CONTEXT,
                                 CU_POINTER_ATTRIBUTE_HOST_POINTER};
  CUcontext owner = context;
  void* host = &own;
  void* data[] = {&type, &owner, &host};
  ASSERT_EQ(cuPointerGetAttributes(3, which, data, at), CUDA_SUCCESS);
  EXPECT_EQ(type, 0u);
  EXPECT_EQ(owner, nullptr);
  EXPECT_EQ(host, nullptr);
  ASSERT_EQ(cuPointerGetAttributes(3, which, data, allocate(10)), CUDA_SUCCESS);
  EXPECT_EQ(type, unsigned{CU_MEMORYTYPE_DEVICE});
  EXPECT_EQ(owner, context);
  EXPECT_EQ(host, nullptr);
  EXPECT_EQ(cuPointerGetAttributes(0, which, data, at), CUDA_ERROR_INVALID_VALUE);
  const unsigned on = 1;
  EXPECT_EQ(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, at), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_CONTEXT, at), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
