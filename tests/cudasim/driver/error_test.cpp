#include <cuda.h>
#include <gtest/gtest.h>

#include "check.h"

namespace {

TEST(ErrorTest, NamesAndTexts) {
  const char* text = nullptr;
  EXPECT_OK(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text));
  EXPECT_STREQ(text, "CUDA_ERROR_OUT_OF_MEMORY");
  EXPECT_OK(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
  EXPECT_STREQ(text, "out of memory");
  EXPECT_EQ(cuGetErrorName(unknown_value<CUresult>(12345), &text), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(text, nullptr);
  EXPECT_EQ(cuGetErrorString(CUDA_SUCCESS, nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST(ErrorTest, InitFlagsAndVersion) {
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuInit(1));
  EXPECT_OK(cuInit(0));
  int version = 0;
  EXPECT_OK(cuDriverGetVersion(&version));
  EXPECT_EQ(version, 13000);
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuDriverGetVersion(nullptr));
}

}  // namespace
