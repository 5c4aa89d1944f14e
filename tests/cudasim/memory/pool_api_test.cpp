// Memory pools through the driver API: what they hold, how blocks are freed, what they are asked.
#include <limits>
#include <vector>

#include "pool_fixture.h"

namespace {

// --- what is held

TEST_F(PoolTest, SmallBlocksShareAStepOfTheDevice) {
  const CUdeviceptr first = allocate(1000, a), second = allocate(1, a);
  EXPECT_EQ(second, first + 1024);
  EXPECT_EQ(reserved(), kStep);
  EXPECT_EQ(used(), 1536u);
  EXPECT_EQ(device_free(), (64u << 20) - kStep);
  EXPECT_EQ(counters().bytes_live, 1001u);
  EXPECT_EQ(counters().blocks_live, 2u);
  free(first, a);
  EXPECT_EQ(used(), 512u);
  free(second, a);
  EXPECT_EQ(used(), 0u);
  EXPECT_EQ(counters().bytes_live, 0u);
  EXPECT_EQ(reserved(), kStep) << "it goes at a synchronisation";
  EXPECT_EQ(cuStreamSynchronize(b), CUDA_SUCCESS);
  EXPECT_EQ(reserved(), kStep) << "which must have to do with the free";
  EXPECT_EQ(cuStreamSynchronize(a), CUDA_SUCCESS);
  EXPECT_EQ(reserved(), 0u);
  EXPECT_EQ(device_free(), 64u << 20);
}

TEST_F(PoolTest, EverySynchronisationReleases) {
  for (int kind = 0; kind < 3; ++kind) {
    free(allocate(kBlock, a), a);
    EXPECT_EQ(cuEventRecord(event, a), CUDA_SUCCESS);
    EXPECT_EQ(reserved(), kStep);
    if (kind == 0) {
      EXPECT_EQ(cuStreamSynchronize(a), CUDA_SUCCESS);
    }
    if (kind == 1) {
      EXPECT_EQ(cuEventSynchronize(event), CUDA_SUCCESS);
    }
    if (kind == 2) {
      EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    }
    EXPECT_EQ(reserved(), 0u) << kind;
  }
}

TEST_F(PoolTest, TheThresholdKeepsAndTrimGives) {
  keep(kStep);
  const CUdeviceptr first = allocate(20u << 20, a), second = allocate(24u << 20, a);
  free(first, a);
  free(second, a);
  EXPECT_EQ(cuMemPoolTrimTo(pool, 0), CUDA_SUCCESS);
  EXPECT_EQ(reserved(), 2 * kStep) << "nobody has waited for the frees";
  EXPECT_EQ(cuStreamSynchronize(a), CUDA_SUCCESS);
  EXPECT_EQ(reserved(), kStep);
  EXPECT_EQ(cuMemPoolTrimTo(pool, kStep + 1), CUDA_SUCCESS);
  EXPECT_EQ(reserved(), kStep) << "less is there than is to be kept";
  EXPECT_EQ(cuMemPoolTrimTo(pool, 1), CUDA_SUCCESS);
  EXPECT_EQ(reserved(), kStep) << "at least so much must stay";
  EXPECT_EQ(cuMemPoolTrimTo(pool, 0), CUDA_SUCCESS);
  EXPECT_EQ(reserved(), 0u);
}

TEST_F(PoolTest, WatermarksAreSetBackToWhatIsNow) {
  const CUdeviceptr first = allocate(kBlock, a), second = allocate(kBlock, a);
  free(first, a);
  EXPECT_EQ(value(CU_MEMPOOL_ATTR_USED_MEM_HIGH), 2 * kBlock);
  EXPECT_EQ(value(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), kStep);
  cuuint64_t number = 1;
  EXPECT_EQ(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &number), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &number), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &number), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &number), CUDA_ERROR_INVALID_VALUE);
  number = 0;
  EXPECT_EQ(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &number), CUDA_SUCCESS);
  EXPECT_EQ(value(CU_MEMPOOL_ATTR_USED_MEM_HIGH), kBlock);
  free(second, a);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(value(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), kStep);
  EXPECT_EQ(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &number), CUDA_SUCCESS);
  EXPECT_EQ(value(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 0u);
}

TEST_F(PoolTest, OutOfMemoryIsToldAtTheCall) {
  CUdeviceptr out = 0;
  EXPECT_EQ(cuMemAllocAsync(&out, (64u << 20) + 1, a), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemAllocAsync(&out, std::numeric_limits<size_t>::max(), a), CUDA_ERROR_OUT_OF_MEMORY);
  const CUdeviceptr half = allocate(40u << 20, a);
  EXPECT_EQ(cuMemAllocAsync(&out, 30u << 20, a), CUDA_ERROR_OUT_OF_MEMORY);
  const CUdeviceptr rest = allocate(24u << 20, a);  // less than a step is left: exactly this
  EXPECT_EQ(device_free(), 0u);
  free(half, a);
  free(rest, a);
}

TEST_F(PoolTest, OthersGetWhatAPoolOnlyKeeps) {
  keep(std::numeric_limits<cuuint64_t>::max());
  free(allocate(40u << 20, a), a);
  CUdeviceptr plain = 0;
  EXPECT_EQ(cuMemAlloc(&plain, 50u << 20), CUDA_ERROR_OUT_OF_MEMORY) << "the free may not be over";
  EXPECT_EQ(cuStreamSynchronize(a), CUDA_SUCCESS);
  EXPECT_EQ(reserved(), 40u << 20);
  EXPECT_EQ(cuMemAlloc(&plain, 50u << 20), CUDA_SUCCESS);
  EXPECT_EQ(reserved(), 0u);
  EXPECT_EQ(cuMemFree(plain), CUDA_SUCCESS);
}

TEST_F(PoolTest, AStepCostsWhatTheCallsForItCost) {
  const std::uint64_t start = now();
  const CUdeviceptr first = allocate(kBlock, a);
  EXPECT_EQ(now() - start, 100u + 29010 + 2020 + 38030);
  const std::uint64_t again = now();
  const CUdeviceptr second = allocate(kBlock, a);
  EXPECT_EQ(now() - again, 100u);
  free(first, a);
  free(second, a);
}

// --- frees of the other kind

TEST_F(PoolTest, FreeingAtOnceWaitsForNothing) {
  const CUdeviceptr used_block = allocate(16u << 20, a), block = allocate(kBlock, a);
  EXPECT_EQ(cuStreamSynchronize(a), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD8Async(used_block, 1, 16u << 20, a), CUDA_SUCCESS);
  const std::uint64_t start = now();
  EXPECT_EQ(cuMemFree(block), CUDA_SUCCESS);
  EXPECT_EQ(now() - start, 30000u);
  EXPECT_EQ(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(allocate(kBlock, b), block) << "anybody's at once";
  free(used_block, a);
  free(block, b);
}

TEST_F(PoolTest, BlocksOfMemAllocMayBeFreedInOrder) {
  const CUdeviceptr large = ApiTest::allocate(kBlock), small = ApiTest::allocate(5000);
  EXPECT_EQ(cuMemsetD8Async(large, 3, kBlock, a), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD8Async(small, 4, 5000, a), CUDA_SUCCESS);
  std::vector<unsigned char> back(kBlock);
  EXPECT_EQ(cuMemcpyDtoHAsync(back.data(), large, kBlock, a), CUDA_SUCCESS);
  free(large, a);
  free(small, a);
  EXPECT_EQ(counters().blocks_live, 0u);
  EXPECT_EQ(cuMemFree(large), CUDA_ERROR_INVALID_VALUE) << "it is freed";
  EXPECT_EQ(cuMemFreeAsync(small, a), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamSynchronize(a), CUDA_SUCCESS);
  EXPECT_EQ(back, std::vector<unsigned char>(kBlock, 3));
  EXPECT_EQ(device_free(), 64u << 20);
}

TEST_F(PoolTest, TheEndOfTheContextEndsQueuedFrees) {
  const CUdeviceptr plain = ApiTest::allocate(kBlock), small = ApiTest::allocate(100), pooled = allocate(kBlock, b);
  for (const CUdeviceptr block : {plain, pooled}) EXPECT_EQ(cuMemsetD8Async(block, 1, kBlock, b), CUDA_SUCCESS);
  for (const CUdeviceptr block : {plain, small, pooled}) free(block, b);
  EXPECT_LT(device_free(), 64u << 20);  // TearDown sees to the rest
}

TEST_F(PoolTest, WhatIsFreedInOrderComesBackWhenTheDeviceIsFull) {
  const CUdeviceptr plain = ApiTest::allocate(40u << 20);
  free(plain, a);
  CUdeviceptr next = 0;
  EXPECT_EQ(cuMemAlloc(&next, 40u << 20), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuEventRecord(event, a), CUDA_SUCCESS);
  cudasim_host_works(1'000'000);
  EXPECT_EQ(cuEventQuery(event), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAlloc(&next, 40u << 20), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree(next), CUDA_SUCCESS);
}

TEST_F(PoolTest, OnlyBlocksCanBeFreed) {
  const CUdeviceptr block = allocate(kBlock, a);
  EXPECT_EQ(cuMemFreeAsync(0, a), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFreeAsync(block + 512, a), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFreeAsync(0x1000, a), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFreeAsync(block, reinterpret_cast<CUstream>(0x1234)), CUDA_ERROR_INVALID_HANDLE);
  free(block, a);
  EXPECT_EQ(cuMemFreeAsync(block, a), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFree(block), CUDA_ERROR_INVALID_VALUE);
}

// --- pools

TEST_F(PoolTest, Defaults) {
  int flag = -1;
  for (const auto attribute :
       {CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC,
        CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES}) {
    EXPECT_EQ(cuMemPoolGetAttribute(pool, attribute, &flag), CUDA_SUCCESS);
    EXPECT_EQ(flag, 1);
  }
  EXPECT_EQ(value(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD), 0u);
  EXPECT_EQ(reserved(), 0u);
  EXPECT_EQ(cuMemPoolGetAttribute(pool, CUmemPool_attribute(15), &flag), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemPoolSetAttribute(pool, CUmemPool_attribute(15), &flag), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemPoolGetAttribute(nullptr, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &flag), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(PoolTest, TheDefaultPoolStaysAndTheCurrentOneChanges) {
  CUmemoryPool fixed = nullptr, current = nullptr;
  ASSERT_EQ(cuDeviceGetDefaultMemPool(&fixed, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuDeviceGetMemPool(&current, 0), CUDA_SUCCESS);
  EXPECT_EQ(current, pool);
  EXPECT_EQ(cuMemPoolDestroy(fixed), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuDeviceGetMemPool(&current, 1), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(cuDeviceSetMemPool(0, nullptr), CUDA_ERROR_INVALID_VALUE);
  CUmemLocation location{CU_MEM_LOCATION_TYPE_DEVICE, 0};
  EXPECT_EQ(cuMemGetMemPool(&current, &location, CU_MEM_ALLOCATION_TYPE_PINNED), CUDA_SUCCESS);
  EXPECT_EQ(current, pool);
  EXPECT_EQ(cuMemGetMemPool(&current, &location, CU_MEM_ALLOCATION_TYPE_MANAGED), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cuMemSetMemPool(&location, CU_MEM_ALLOCATION_TYPE_PINNED, fixed), CUDA_SUCCESS);
  EXPECT_EQ(cuMemGetDefaultMemPool(&current, &location, CU_MEM_ALLOCATION_TYPE_PINNED), CUDA_SUCCESS);
  EXPECT_EQ(current, fixed);

  // The current pool goes, and the default one takes its place.
  EXPECT_EQ(cuDeviceSetMemPool(0, pool), CUDA_SUCCESS);
  const CUdeviceptr block = allocate(kBlock, a);
  EXPECT_EQ(cuMemPoolDestroy(pool), CUDA_SUCCESS);
  EXPECT_EQ(cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuDeviceGetMemPool(&current, 0), CUDA_SUCCESS);
  EXPECT_EQ(current, fixed);
  CUdeviceptr out = 0;
  EXPECT_EQ(cuMemAllocFromPoolAsync(&out, kBlock, pool, a), CUDA_ERROR_INVALID_VALUE);
  // Its blocks live on, and what it holds goes with the last of them.
  EXPECT_EQ(cuMemsetD8Async(block, 5, kBlock, a), CUDA_SUCCESS);
  EXPECT_EQ(device_free(), (64u << 20) - kStep);
  free(block, a);
  EXPECT_EQ(cuStreamSynchronize(a), CUDA_SUCCESS);
  EXPECT_EQ(device_free(), 64u << 20);
  pool = nullptr;
}

TEST_F(PoolTest, OnePoolsBytesAreNotAnothers) {
  CUmemoryPool fixed = nullptr;
  ASSERT_EQ(cuDeviceGetDefaultMemPool(&fixed, 0), CUDA_SUCCESS);
  free(allocate(kBlock, a), a);
  CUdeviceptr other = 0;
  EXPECT_EQ(cuMemAllocFromPoolAsync(&other, kBlock, fixed, a), CUDA_SUCCESS);
  EXPECT_EQ(device_free(), 0u) << "a step each";
  CUmemoryPool of_block = nullptr;
  EXPECT_EQ(cuPointerGetAttribute(&of_block, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, other + 5), CUDA_SUCCESS);
  EXPECT_EQ(of_block, fixed);
  free(other, a);
}

TEST_F(PoolTest, ALimitOfItsOwn) {
  CUmemPoolProps properties = device_pool();
  properties.maxSize = 8u << 20;
  CUmemoryPool small = nullptr;
  ASSERT_EQ(cuMemPoolCreate(&small, &properties), CUDA_SUCCESS);
  CUdeviceptr first = 0, second = 0;
  EXPECT_EQ(cuMemAllocFromPoolAsync(&first, 6u << 20, small, a), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAllocFromPoolAsync(&second, 3u << 20, small, a), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemAllocFromPoolAsync(&second, 2u << 20, small, a), CUDA_SUCCESS);
  free(first, a);
  free(second, a);
  EXPECT_EQ(cuMemPoolDestroy(small), CUDA_SUCCESS);
  properties.maxSize = 1000;
  ASSERT_EQ(cuMemPoolCreate(&small, &properties), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAllocFromPoolAsync(&first, 1000, small, a), CUDA_SUCCESS) << "limits are rounded up";
  EXPECT_EQ(device_free(), (64u << 20) - (8u << 20) - kGranule) << "what was freed above is still held";
  EXPECT_EQ(cuMemAllocFromPoolAsync(&second, kGranule, small, a), CUDA_ERROR_OUT_OF_MEMORY);
  free(first, a);
  EXPECT_EQ(cuMemPoolDestroy(small), CUDA_SUCCESS);
}

TEST_F(PoolTest, PropertiesThatThisDeviceLacks) {
  CUmemoryPool out = nullptr;
  CUmemPoolProps properties = device_pool();
  properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  EXPECT_EQ(cuMemPoolCreate(&out, &properties), CUDA_ERROR_NOT_SUPPORTED);
  properties = device_pool();
  properties.location.id = 1;
  EXPECT_EQ(cuMemPoolCreate(&out, &properties), CUDA_ERROR_INVALID_VALUE);
  properties.location = {CU_MEM_LOCATION_TYPE_HOST, 0};
  EXPECT_EQ(cuMemPoolCreate(&out, &properties), CUDA_ERROR_NOT_SUPPORTED);
  properties.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0};
  EXPECT_EQ(cuMemPoolCreate(&out, &properties), CUDA_ERROR_INVALID_VALUE);
  properties = device_pool();
  properties.reserved[3] = 1;
  EXPECT_EQ(cuMemPoolCreate(&out, &properties), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemPoolCreate(&out, nullptr), CUDA_ERROR_INVALID_VALUE);
  int handle = 0;
  EXPECT_EQ(cuMemPoolExportToShareableHandle(&handle, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
            CUDA_ERROR_NOT_SUPPORTED);
}

TEST_F(PoolTest, Access) {
  CUmemAccessDesc access{};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  EXPECT_EQ(cuMemPoolSetAccess(pool, &access, 1), CUDA_SUCCESS);
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  EXPECT_EQ(cuMemPoolSetAccess(pool, &access, 1), CUDA_ERROR_INVALID_VALUE) << "it can't be taken from its device";
  access.location.id = 1;
  EXPECT_EQ(cuMemPoolSetAccess(pool, &access, 1), CUDA_ERROR_INVALID_DEVICE);
  CUmemAccess_flags flags{};
  CUmemLocation location{CU_MEM_LOCATION_TYPE_DEVICE, 0};
  EXPECT_EQ(cuMemPoolGetAccess(&flags, pool, &location), CUDA_SUCCESS);
  EXPECT_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  location.id = 1;
  EXPECT_EQ(cuMemPoolGetAccess(&flags, pool, &location), CUDA_ERROR_INVALID_DEVICE);
}

TEST_F(PoolTest, WhatAPointerIs) {
  const CUdeviceptr block = allocate(3000, a);
  CUdeviceptr base = 0;
  size_t size = 0;
  EXPECT_EQ(cuMemGetAddressRange(&base, &size, block + 2999), CUDA_SUCCESS);
  EXPECT_EQ(base, block);
  EXPECT_EQ(size, 3000u);
  CUcontext of = context;
  EXPECT_EQ(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_CONTEXT, block), CUDA_SUCCESS);
  EXPECT_EQ(of, nullptr) << "it belongs to no context";
  CUmemoryPool of_block = nullptr;
  EXPECT_EQ(cuPointerGetAttribute(&of_block, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, block), CUDA_SUCCESS);
  EXPECT_EQ(of_block, pool);
  unsigned type = 0;
  EXPECT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, block), CUDA_SUCCESS);
  EXPECT_EQ(type, unsigned(CU_MEMORYTYPE_DEVICE));
  const CUdeviceptr plain = ApiTest::allocate(100);
  EXPECT_EQ(cuPointerGetAttribute(&of_block, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, plain), CUDA_SUCCESS);
  EXPECT_EQ(of_block, nullptr);
  EXPECT_EQ(cuMemFree(plain), CUDA_SUCCESS);
  free(block, a);
}

TEST_F(PoolTest, BadArguments) {
  CUdeviceptr out = 0;
  EXPECT_EQ(cuMemAllocAsync(nullptr, 10, a), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAllocAsync(&out, 0, a), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAllocFromPoolAsync(&out, 10, nullptr, a), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAllocAsync(&out, 10, reinterpret_cast<CUstream>(0x1234)), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(PoolTest, TheStreamsContextCounts) {
  CUcontext popped = nullptr;
  ASSERT_EQ(cuCtxPopCurrent(&popped), CUDA_SUCCESS);
  const CUdeviceptr block = allocate(1000, a);
  free(block, a);
  CUdeviceptr out = 0;
  EXPECT_EQ(cuMemAllocAsync(&out, 10, nullptr), CUDA_ERROR_INVALID_CONTEXT);
  ASSERT_EQ(cuCtxPushCurrent(popped), CUDA_SUCCESS);
}

TEST_F(PoolTest, AResetOfThePrimaryContextTakesItsBlocks) {
  CUcontext primary = nullptr, popped = nullptr;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&primary, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxPushCurrent(primary), CUDA_SUCCESS);
  CUstream stream = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD8Async(allocate(kBlock, stream), 1, kBlock, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
  EXPECT_EQ(counters().bytes_held, 0u);
  EXPECT_EQ(cuCtxPopCurrent(&popped), CUDA_SUCCESS);
  EXPECT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
}

}  // namespace
