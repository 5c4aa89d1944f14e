#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // old entry points are tested too
#include <cuda.h>
#include <gtest/gtest.h>

#include <thread>

#include "check.h"

namespace {

class ContextTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(cuInit(0)); }
  void TearDown() override {
    CUcontext left = nullptr;
    EXPECT_OK(cuCtxGetCurrent(&left));
    EXPECT_EQ(left, nullptr) << "a case must leave an empty stack";
  }
  static CUcontext create() {
    CUcontext context = nullptr;
    EXPECT_OK(cuCtxCreate(&context, nullptr, 0, 0));
    return context;
  }
  static bool primary_active() {
    unsigned flags = 0;
    int active = -1;
    EXPECT_OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    return active == 1;
  }
  static std::size_t free_bytes() {
    std::size_t free = 0, total = 0;
    EXPECT_OK(cuMemGetInfo(&free, &total));
    return free;
  }
};

TEST_F(ContextTest, NoCurrentContextIsInvalidContext) {
  CUdeviceptr block = 0;
  EXPECT_CU(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc(&block, 1));
  EXPECT_CU(CUDA_ERROR_INVALID_CONTEXT, cuCtxSynchronize());
  EXPECT_CU(CUDA_ERROR_INVALID_CONTEXT, cuCtxPopCurrent(nullptr));
  CUdevice device = -1;
  EXPECT_CU(CUDA_ERROR_INVALID_CONTEXT, cuCtxGetDevice(&device));
}

TEST_F(ContextTest, CreateMakesCurrentAndDestroyPops) {
  const CUcontext first = create();
  const CUcontext second = create();
  EXPECT_NE(first, second);
  CUcontext current = nullptr;
  EXPECT_OK(cuCtxGetCurrent(&current));
  EXPECT_EQ(current, second);
  EXPECT_OK(cuCtxDestroy(second));
  EXPECT_OK(cuCtxGetCurrent(&current));
  EXPECT_EQ(current, first);
  EXPECT_OK(cuCtxDestroy(first));
}

TEST_F(ContextTest, StackOrder) {
  const CUcontext first = create();
  const CUcontext second = create();
  EXPECT_OK(cuCtxPushCurrent(first));
  CUcontext popped = nullptr;
  for (const CUcontext expected : {first, second, first}) {
    EXPECT_OK(cuCtxPopCurrent(&popped));
    EXPECT_EQ(popped, expected);
  }
  EXPECT_OK(cuCtxDestroy(first));
  EXPECT_OK(cuCtxDestroy(second));
}

TEST_F(ContextTest, SetCurrentReplacesTheTop) {
  const CUcontext first = create();
  const CUcontext second = create();
  EXPECT_OK(cuCtxSetCurrent(first));
  CUcontext current = nullptr;
  EXPECT_OK(cuCtxGetCurrent(&current));
  EXPECT_EQ(current, first);
  EXPECT_OK(cuCtxSetCurrent(nullptr));
  EXPECT_OK(cuCtxGetCurrent(&current));
  EXPECT_EQ(current, first) << "the one below";
  EXPECT_OK(cuCtxSetCurrent(nullptr));
  EXPECT_OK(cuCtxDestroy(first));
  EXPECT_OK(cuCtxDestroy(second));
}

TEST_F(ContextTest, HandlesAreChecked) {
  int not_a_context = 0;
  const auto stranger = reinterpret_cast<CUcontext>(&not_a_context);
  EXPECT_CU(CUDA_ERROR_INVALID_CONTEXT, cuCtxSetCurrent(stranger));
  EXPECT_CU(CUDA_ERROR_INVALID_CONTEXT, cuCtxPushCurrent(stranger));
  EXPECT_CU(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy(stranger));
  EXPECT_CU(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy(nullptr));

  const CUcontext gone = create();
  EXPECT_OK(cuCtxDestroy(gone));
  EXPECT_CU(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxSetCurrent(gone));
  EXPECT_CU(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxDestroy(gone));
}

TEST_F(ContextTest, DestroyedElsewhereIsNoticedHere) {
  const CUcontext context = create();
  std::thread([&] { EXPECT_OK(cuCtxDestroy(context)); }).join();
  CUdeviceptr block = 0;
  EXPECT_CU(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemAlloc(&block, 1));
  EXPECT_OK(cuCtxPopCurrent(nullptr));
}

TEST_F(ContextTest, StacksArePerThread) {
  const CUcontext context = create();
  std::thread([&] {
    CUcontext current = context;
    EXPECT_OK(cuCtxGetCurrent(&current));
    EXPECT_EQ(current, nullptr);
    EXPECT_OK(cuCtxSetCurrent(context));
    EXPECT_OK(cuCtxSynchronize());
  }).join();
  EXPECT_OK(cuCtxDestroy(context));
}

TEST_F(ContextTest, DestroyGivesMemoryBack) {
  const CUcontext outer = create();
  const std::size_t before = free_bytes();
  const CUcontext inner = create();
  CUdeviceptr block = 0;
  ASSERT_OK(cuMemAlloc(&block, 8 << 20));
  CUstream stream = nullptr;
  ASSERT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  ASSERT_OK(cuMemsetD8Async(block, 1, 8 << 20, stream));
  EXPECT_EQ(free_bytes(), before - (8 << 20));
  EXPECT_OK(cuCtxDestroy(inner));
  EXPECT_EQ(free_bytes(), before);
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemFree(block));
  EXPECT_OK(cuCtxDestroy(outer));
}

TEST_F(ContextTest, PrimaryIsRetainedAndReleased) {
  EXPECT_FALSE(primary_active());
  CUcontext first = nullptr, second = nullptr;
  EXPECT_OK(cuDevicePrimaryCtxRetain(&first, 0));
  EXPECT_OK(cuDevicePrimaryCtxRetain(&second, 0));
  EXPECT_EQ(first, second);
  EXPECT_TRUE(primary_active());
  CUcontext current = first;
  EXPECT_OK(cuCtxGetCurrent(&current));
  EXPECT_EQ(current, nullptr) << "retaining does not make current";
  EXPECT_CU(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy(first));
  EXPECT_OK(cuDevicePrimaryCtxRelease(0));
  EXPECT_TRUE(primary_active());
  EXPECT_OK(cuDevicePrimaryCtxRelease(0));
  EXPECT_FALSE(primary_active());
  EXPECT_CU(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease(0));
  EXPECT_CU(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxSetCurrent(first));
}

TEST_F(ContextTest, PrimaryResetFreesAndOwesARelease) {
  CUcontext primary = nullptr;
  ASSERT_OK(cuDevicePrimaryCtxRetain(&primary, 0));
  ASSERT_OK(cuCtxSetCurrent(primary));
  CUdeviceptr block = 0;
  ASSERT_OK(cuMemAlloc(&block, 4 << 20));
  const std::size_t held = free_bytes();
  unsigned long long old_id = 0, new_id = 0;
  EXPECT_OK(cuCtxGetId(nullptr, &old_id));
  EXPECT_OK(cuDevicePrimaryCtxReset(0));
  EXPECT_FALSE(primary_active());
  EXPECT_CU(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxSynchronize());
  CUcontext again = nullptr;
  EXPECT_OK(cuDevicePrimaryCtxRetain(&again, 0));
  EXPECT_EQ(again, primary);
  EXPECT_OK(cuCtxSynchronize());
  EXPECT_OK(cuCtxGetId(nullptr, &new_id));
  EXPECT_NE(old_id, new_id);
  EXPECT_EQ(free_bytes(), held + (4 << 20));
  EXPECT_OK(cuDevicePrimaryCtxRelease(0));
  EXPECT_TRUE(primary_active());
  EXPECT_OK(cuDevicePrimaryCtxRelease(0));
  EXPECT_FALSE(primary_active());
  EXPECT_OK(cuCtxSetCurrent(nullptr));
}

TEST_F(ContextTest, Flags) {
  EXPECT_OK(cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_BLOCKING_SYNC));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_SPIN | CU_CTX_SCHED_YIELD));
  unsigned flags = 0;
  int active = -1;
  EXPECT_OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT_EQ(flags, unsigned(CU_CTX_SCHED_BLOCKING_SYNC));
  EXPECT_OK(cuDevicePrimaryCtxSetFlags(0, 0));

  CUcontext context = nullptr;
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuCtxCreate(&context, nullptr, 1u << 20, 0));
  ASSERT_OK(cuCtxCreate(&context, nullptr, CU_CTX_SCHED_YIELD, 0));
  EXPECT_OK(cuCtxGetFlags(&flags));
  EXPECT_EQ(flags, unsigned(CU_CTX_SCHED_YIELD));
  EXPECT_OK(cuCtxSetFlags(CU_CTX_SCHED_SPIN));
  EXPECT_OK(cuCtxGetFlags(&flags));
  EXPECT_EQ(flags, unsigned(CU_CTX_SCHED_SPIN));
  EXPECT_OK(cuCtxDestroy(context));
}

TEST_F(ContextTest, Limits) {
  const CUcontext context = create();
  std::size_t value = 0;
  EXPECT_OK(cuCtxGetLimit(&value, CU_LIMIT_MALLOC_HEAP_SIZE));
  EXPECT_EQ(value, std::size_t{8} << 20);
  EXPECT_OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
  EXPECT_OK(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
  EXPECT_EQ(value, 4096u);
  EXPECT_CU(CUDA_ERROR_UNSUPPORTED_LIMIT,
            cuCtxGetLimit(&value, CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH));  // compute capability 9.0
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuCtxGetLimit(&value, unknown_value<CUlimit>(99)));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuCtxSetLimit(CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 129));
  EXPECT_OK(cuCtxDestroy(context));
}

TEST_F(ContextTest, Questions) {
  const CUcontext context = create();
  CUdevice device = -1;
  EXPECT_OK(cuCtxGetDevice(&device));
  EXPECT_EQ(device, 0);
  unsigned version = 0;
  EXPECT_OK(cuCtxGetApiVersion(context, &version));
  EXPECT_EQ(version, 3020u);
  int least = 1, greatest = 1;
  EXPECT_OK(cuCtxGetStreamPriorityRange(&least, &greatest));
  EXPECT_EQ(least, 0);
  EXPECT_LT(greatest, least);
  CUfunc_cache cache = CU_FUNC_CACHE_PREFER_L1;
  EXPECT_OK(cuCtxGetCacheConfig(&cache));
  EXPECT_EQ(cache, CU_FUNC_CACHE_PREFER_NONE);
  EXPECT_OK(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_SHARED));
  EXPECT_OK(cuCtxGetCacheConfig(&cache));
  EXPECT_EQ(cache, CU_FUNC_CACHE_PREFER_SHARED);
  EXPECT_OK(cuCtxResetPersistingL2Cache());
  EXPECT_OK(cuCtxDestroy(context));
}

TEST_F(ContextTest, AttachCounts) {
  const CUcontext context = create();
  CUcontext attached = nullptr;
  EXPECT_OK(cuCtxAttach(&attached, 0));
  EXPECT_EQ(attached, context);
  EXPECT_OK(cuCtxDetach(context));
  EXPECT_OK(cuCtxSynchronize());
  EXPECT_OK(cuCtxDetach(context));
  EXPECT_CU(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxSetCurrent(context));
}

TEST_F(ContextTest, UnsupportedCreationParameters) {
  CUexecAffinityParam affinity{};
  affinity.type = CU_EXEC_AFFINITY_TYPE_SM_COUNT;
  CUctxCreateParams parameters{};
  parameters.execAffinityParams = &affinity;
  parameters.numExecAffinityParams = 1;
  CUcontext context = nullptr;
  EXPECT_CU(CUDA_ERROR_NOT_SUPPORTED, cuCtxCreate(&context, &parameters, 0, 0));
  EXPECT_CU(CUDA_ERROR_INVALID_DEVICE, cuCtxCreate(&context, nullptr, 0, 1));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuCtxCreate(nullptr, nullptr, 0, 0));
}

}  // namespace
