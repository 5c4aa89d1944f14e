// cuLink* of PTX: the texts' names mean each other.
#include <cuda.h>
#include <gtest/gtest.h>

#include <cstring>

namespace {

constexpr char kKernel[] = R"(.version 8.0
.target sm_80
.address_size 64
.extern .global .u32 offset;
.extern .func (.param .b32 r) triple(.param .b32 x);
.visible .entry k(.param .u64 out) { .reg .b32 %r<5>; .reg .b64 %rd<5>;
mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;
{ .param .b32 a; st.param.b32 [a], %r1; .param .b32 b; call (b), triple, (a); ld.param.b32 %r2, [b]; }
ld.global.u32 %r3, [offset]; add.u32 %r2, %r2, %r3; st.global.u32 [%rd1], %r2; ret; })";
constexpr char kFunction[] = R"(.version 8.0
.target sm_80
.address_size 64
.visible .global .u32 offset = 1000;
.visible .func (.param .b32 r) triple(.param .b32 x) { .reg .b32 %r<3>; ld.param.b32 %r1, [x]; mul.lo.u32 %r1, %r1, 3; st.param.b32 [r], %r1; ret; })";

TEST(Link, ModulesOfPtxCallEachOther) {
  CUdevice device;
  CUcontext context;
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  ASSERT_EQ(cuDeviceGet(&device, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, device), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
  CUlinkState link;
  ASSERT_EQ(cuLinkCreate(0, nullptr, nullptr, &link), CUDA_SUCCESS);
  const auto add = [&](const char* text, CUjitInputType type = CU_JIT_INPUT_PTX) {
    return cuLinkAddData(link, type, const_cast<char*>(text), std::strlen(text) + 1, "x", 0, nullptr, nullptr);
  };
  void* image = nullptr;
  std::size_t size = 0;
  EXPECT_EQ(cuLinkComplete(link, &image, &size), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(add(".version 8.0\n.target nothing"), CUDA_ERROR_INVALID_PTX);
  ASSERT_EQ(add(kKernel), CUDA_SUCCESS);
  ASSERT_EQ(add(kFunction), CUDA_SUCCESS);
  EXPECT_EQ(add("x", CU_JIT_INPUT_LIBRARY), CUDA_ERROR_NOT_SUPPORTED);
  ASSERT_EQ(cuLinkComplete(link, &image, &size), CUDA_SUCCESS);
  CUmodule module;
  CUfunction kernel;
  ASSERT_EQ(cuModuleLoadData(&module, image), CUDA_SUCCESS);
  ASSERT_EQ(cuLinkDestroy(link), CUDA_SUCCESS);
  EXPECT_EQ(cuLinkDestroy(link), CUDA_ERROR_INVALID_HANDLE);
  ASSERT_EQ(cuModuleGetFunction(&kernel, module, "k"), CUDA_SUCCESS);
  CUdeviceptr out;
  ASSERT_EQ(cuMemAlloc(&out, 64 * 4), CUDA_SUCCESS);
  void* parameters[] = {&out};
  ASSERT_EQ(cuLaunchKernel(kernel, 1, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr), CUDA_SUCCESS);
  unsigned got[64];
  ASSERT_EQ(cuMemcpyDtoH(got, out, sizeof got), CUDA_SUCCESS);
  for (unsigned i = 0; i < 64; ++i) EXPECT_EQ(got[i], 3 * i + 1000);
}

}  // namespace
