#include <cstring>

#include "api_fixture.h"

namespace {

class ShapedCopyTest : public ApiTest {
 protected:
  // From pageable host memory to a device block with a pitch.
  CUDA_MEMCPY2D in(const void* host, size_t host_pitch, CUdeviceptr device, size_t device_pitch) {
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = host;
    copy.srcPitch = host_pitch;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = device;
    copy.dstPitch = device_pitch;
    return copy;
  }
};

TEST_F(ShapedCopyTest, RowsLandWhereTheyShouldAndNowhereElse) {
  const auto host = pattern(20 * 10, 1);
  const CUdeviceptr device = allocate(32 * 10);
  ASSERT_EQ(cuMemsetD8(device, 0, 320), CUDA_SUCCESS);
  CUDA_MEMCPY2D copy = in(host.data(), 20, device, 32);
  copy.srcXInBytes = 3;
  copy.srcY = 2;
  copy.dstXInBytes = 5;
  copy.dstY = 1;
  copy.WidthInBytes = 7;
  copy.Height = 4;
  ASSERT_EQ(cuMemcpy2D(&copy), CUDA_SUCCESS);
  std::vector<unsigned char> expected(320, 0);
  for (size_t y = 0; y < 4; ++y) std::memcpy(&expected[(y + 1) * 32 + 5], &host[(y + 2) * 20 + 3], 7);
  EXPECT_EQ(read_back(device, 320), expected);
}

TEST_F(ShapedCopyTest, EdgesOf2D) {
  const auto host = pattern(1000, 2);
  const CUdeviceptr device = allocate(100);
  CUDA_MEMCPY2D copy = in(host.data(), 10, device, 10);
  copy.WidthInBytes = 10;
  EXPECT_EQ(cuMemcpy2D(&copy), CUDA_SUCCESS);  // no rows
  copy.Height = 10;
  EXPECT_EQ(cuMemcpy2D(&copy), CUDA_SUCCESS);  // the last byte is the block's last
  copy.Height = 11;
  EXPECT_EQ(cuMemcpy2D(&copy), CUDA_ERROR_INVALID_VALUE);
  copy.Height = 2;
  copy.dstPitch = 9;
  EXPECT_EQ(cuMemcpy2D(&copy), CUDA_ERROR_INVALID_VALUE);  // narrower than a row
  copy.dstPitch = 0;
  EXPECT_EQ(cuMemcpy2D(&copy), CUDA_SUCCESS);  // packed
  copy.srcPitch = size_t{1} << 31;
  EXPECT_EQ(cuMemcpy2D(&copy), CUDA_ERROR_INVALID_VALUE);  // wider than any pitch
  copy = in(host.data(), 10, device, 10);
  copy.WidthInBytes = 1;
  copy.Height = SIZE_MAX;
  EXPECT_EQ(cuMemcpy2D(&copy), CUDA_ERROR_INVALID_VALUE);
  copy.Height = 1;
  copy.dstY = SIZE_MAX / 2;
  EXPECT_EQ(cuMemcpy2D(&copy), CUDA_ERROR_INVALID_VALUE);
  copy.dstY = 0;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  EXPECT_EQ(cuMemcpy2D(&copy), CUDA_ERROR_INVALID_HANDLE);  // which is none
  copy.dstMemoryType = static_cast<CUmemorytype>(7);
  EXPECT_EQ(cuMemcpy2D(&copy), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpy2D(nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(ShapedCopyTest, SlicesOf3D) {
  const auto host = pattern(6 * 5 * 4, 3);
  const CUdeviceptr device = allocate(8 * 7 * 4);
  ASSERT_EQ(cuMemsetD8(device, 0, 8 * 7 * 4), CUDA_SUCCESS);
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = host.data();
  copy.srcPitch = 6;
  copy.srcHeight = 5;
  copy.srcZ = 1;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = device;
  copy.dstPitch = 8;
  copy.dstHeight = 7;
  copy.dstY = 2;
  copy.WidthInBytes = 4;
  copy.Height = 3;
  copy.Depth = 3;
  ASSERT_EQ(cuMemcpy3D(&copy), CUDA_SUCCESS);
  std::vector<unsigned char> expected(8 * 7 * 4, 0);
  for (size_t z = 0; z < 3; ++z) {
    for (size_t y = 0; y < 3; ++y) std::memcpy(&expected[z * 56 + (y + 2) * 8], &host[(z + 1) * 30 + y * 6], 4);
  }
  EXPECT_EQ(read_back(device, expected.size()), expected);
  copy.srcHeight = 2;
  EXPECT_EQ(cuMemcpy3D(&copy), CUDA_ERROR_INVALID_VALUE);  // slices that overlap
  copy.srcHeight = 5;
  copy.srcLOD = 1;
  EXPECT_EQ(cuMemcpy3D(&copy), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(ShapedCopyTest, SetsOfRows) {
  const CUdeviceptr device = allocate(64 * 3);
  ASSERT_EQ(cuMemsetD8(device, 1, 192), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD2D16(device + 2, 64, 0xBBAA, 3, 3), CUDA_SUCCESS);
  std::vector<unsigned char> expected(192, 1);
  for (size_t y = 0; y < 3; ++y) {
    for (size_t x = 0; x < 6; ++x) expected[y * 64 + 2 + x] = x % 2 == 0 ? 0xAA : 0xBB;
  }
  EXPECT_EQ(read_back(device, 192), expected);
  EXPECT_EQ(cuMemsetD2D32(device, 62, 0, 2, 2), CUDA_ERROR_INVALID_VALUE);  // rows out of step
  EXPECT_EQ(cuMemsetD2D8(device, 4, 0, 5, 2), CUDA_ERROR_INVALID_VALUE);    // narrower than a row
  EXPECT_EQ(cuMemsetD2D8(device, 64, 0, 64, 4), CUDA_ERROR_INVALID_VALUE);  // over the end
  EXPECT_EQ(cuMemsetD2D8(device, 64, 0, 64, 0), CUDA_SUCCESS);
}

}  // namespace
