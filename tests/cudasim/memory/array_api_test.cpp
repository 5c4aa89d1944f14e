// CUDA arrays, and the texture and surface objects made of them and of linear memory.
#include <cstring>

#include "api_fixture.h"

namespace {

class ArrayTest : public ApiTest {
 protected:
  static CUDA_ARRAY3D_DESCRIPTOR floats(std::size_t width, std::size_t height, std::size_t depth = 0,
                                        unsigned flags = 0) {
    CUDA_ARRAY3D_DESCRIPTOR d{};
    d.Width = width;
    d.Height = height;
    d.Depth = depth;
    d.Format = CU_AD_FORMAT_FLOAT;
    d.NumChannels = 1;
    d.Flags = flags;
    return d;
  }
  static CUarray make(const CUDA_ARRAY3D_DESCRIPTOR& d) {
    CUarray array = nullptr;
    EXPECT_EQ(cuArray3DCreate(&array, &d), CUDA_SUCCESS);
    return array;
  }
};

TEST_F(ArrayTest, WhatIsWrittenIsRead) {
  CUarray array = make(floats(7, 5));
  EXPECT_EQ(counters().bytes_held, kGranule);
  const auto given = pattern(7 * 4 * 5, 3);
  CUDA_MEMCPY2D in{};
  in.srcMemoryType = CU_MEMORYTYPE_HOST;
  in.srcHost = given.data();
  in.srcPitch = 28;
  in.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  in.dstArray = array;
  in.WidthInBytes = 28;
  in.Height = 5;
  ASSERT_EQ(cuMemcpy2D(&in), CUDA_SUCCESS);
  // A rectangle inside of it.
  std::vector<unsigned char> got(8 * 2);
  CUDA_MEMCPY2D out{};
  out.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  out.srcArray = array;
  out.srcXInBytes = 12;
  out.srcY = 3;
  out.dstMemoryType = CU_MEMORYTYPE_HOST;
  out.dstHost = got.data();
  out.dstPitch = 8;
  out.WidthInBytes = 8;
  out.Height = 2;
  ASSERT_EQ(cuMemcpy2D(&out), CUDA_SUCCESS);
  for (std::size_t row = 0; row < 2; ++row)
    EXPECT_EQ(std::memcmp(got.data() + 8 * row, given.data() + 28 * (3 + row) + 12, 8), 0) << row;
  out.srcXInBytes = 24;
  EXPECT_EQ(cuMemcpy2D(&out), CUDA_ERROR_INVALID_VALUE) << "beyond the row";
  out.srcXInBytes = 0;
  out.srcY = 4;
  EXPECT_EQ(cuMemcpy2D(&out), CUDA_ERROR_INVALID_VALUE) << "beyond the last row";
  // Bytes of the first row, from and to all sides.
  const CUdeviceptr device = allocate(64);
  CUarray other = make(floats(7, 0));
  EXPECT_EQ(cuMemcpyAtoD(device, array, 4, 20), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyDtoA(other, 0, device, 20), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyAtoA(array, 8, other, 4, 8), CUDA_SUCCESS);
  unsigned char bytes[28];
  EXPECT_EQ(cuMemcpyAtoH(bytes, array, 0, 28), CUDA_SUCCESS);
  EXPECT_EQ(std::memcmp(bytes + 8, given.data() + 8, 8), 0);
  EXPECT_EQ(cuMemcpyHtoA(array, 24, bytes, 8), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyHtoA(nullptr, 0, bytes, 8), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuMemFree(device), CUDA_SUCCESS);
  EXPECT_EQ(cuArrayDestroy(array), CUDA_SUCCESS);
  EXPECT_EQ(cuArrayDestroy(array), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuArrayDestroy(other), CUDA_SUCCESS);
}

TEST_F(ArrayTest, BoxesAndLayers) {
  for (const unsigned flags : {0u, unsigned{CUDA_ARRAY3D_LAYERED}}) {
    CUarray array = make(floats(4, 3, 2, flags));
    const auto given = pattern(16 * 3 * 2, 9);
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = given.data();
    copy.srcPitch = 16;
    copy.srcHeight = 3;
    copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.dstArray = array;
    copy.WidthInBytes = 16;
    copy.Height = 3;
    copy.Depth = 2;
    ASSERT_EQ(cuMemcpy3D(&copy), CUDA_SUCCESS);
    std::vector<unsigned char> got(given.size());
    CUDA_MEMCPY3D back{};
    back.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    back.srcArray = array;
    back.dstMemoryType = CU_MEMORYTYPE_HOST;
    back.dstHost = got.data();
    back.dstPitch = 16;
    back.dstHeight = 3;
    back.WidthInBytes = 16;
    back.Height = 3;
    back.Depth = 2;
    ASSERT_EQ(cuMemcpy3D(&back), CUDA_SUCCESS);
    EXPECT_EQ(got, given);
    back.srcZ = 1;
    EXPECT_EQ(cuMemcpy3D(&back), CUDA_ERROR_INVALID_VALUE);
    CUDA_ARRAY3D_DESCRIPTOR said{};
    EXPECT_EQ(cuArray3DGetDescriptor(&said, array), CUDA_SUCCESS);
    EXPECT_EQ(said.Depth, 2u);
    EXPECT_EQ(said.Flags, flags);
    EXPECT_EQ(cuArrayDestroy(array), CUDA_SUCCESS);
  }
}

TEST_F(ArrayTest, WhatIsNoArray) {
  CUarray array = nullptr;
  auto d = floats(4, 4);
  d.NumChannels = 3;
  EXPECT_EQ(cuArray3DCreate(&array, &d), CUDA_ERROR_INVALID_VALUE);
  d = floats(0, 4);
  EXPECT_EQ(cuArray3DCreate(&array, &d), CUDA_ERROR_INVALID_VALUE);
  d = floats(4, 4, 5, CUDA_ARRAY3D_CUBEMAP);
  EXPECT_EQ(cuArray3DCreate(&array, &d), CUDA_ERROR_INVALID_VALUE) << "a cube has six faces";
  d = floats(4, 4);
  d.Format = CU_AD_FORMAT_NV12;
  EXPECT_EQ(cuArray3DCreate(&array, &d), CUDA_ERROR_NOT_SUPPORTED);
  d = floats(1 << 17, 1 << 17, 1 << 17);
  EXPECT_EQ(cuArray3DCreate(&array, &d), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuArray3DCreate(nullptr, &d), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(counters().bytes_held, 0u);
}

TEST_F(ArrayTest, LevelsOfDetail) {
  CUmipmappedArray whole = nullptr;
  const auto d = floats(8, 4);
  ASSERT_EQ(cuMipmappedArrayCreate(&whole, &d, 100), CUDA_SUCCESS);
  const std::size_t widths[] = {8, 4, 2, 1};
  for (unsigned level = 0; level < 4; ++level) {
    CUarray array = nullptr;
    ASSERT_EQ(cuMipmappedArrayGetLevel(&array, whole, level), CUDA_SUCCESS);
    CUDA_ARRAY_DESCRIPTOR said{};
    EXPECT_EQ(cuArrayGetDescriptor(&said, array), CUDA_SUCCESS);
    EXPECT_EQ(said.Width, widths[level]);
    EXPECT_EQ(cuArrayDestroy(array), CUDA_ERROR_INVALID_HANDLE) << "it is the whole's";
  }
  CUarray none = nullptr;
  EXPECT_EQ(cuMipmappedArrayGetLevel(&none, whole, 4), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMipmappedArrayDestroy(whole), CUDA_SUCCESS);
  EXPECT_EQ(cuMipmappedArrayDestroy(whole), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(ArrayTest, Objects) {
  CUarray array = make(floats(4, 4, 0, CUDA_ARRAY3D_SURFACE_LDST)), plain = make(floats(4, 4));
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = array;
  CUDA_TEXTURE_DESC description{};
  description.filterMode = CU_TR_FILTER_MODE_LINEAR;
  CUtexObject texture = 0, other = 0;
  ASSERT_EQ(cuTexObjectCreate(&texture, &resource, &description, nullptr), CUDA_SUCCESS);
  EXPECT_NE(texture, 0u);
  CUDA_TEXTURE_DESC said{};
  EXPECT_EQ(cuTexObjectGetTextureDesc(&said, texture), CUDA_SUCCESS);
  EXPECT_EQ(said.filterMode, CU_TR_FILTER_MODE_LINEAR);
  CUsurfObject surface = 0;
  ASSERT_EQ(cuSurfObjectCreate(&surface, &resource), CUDA_SUCCESS);
  CUDA_RESOURCE_DESC of_surface{};
  EXPECT_EQ(cuSurfObjectGetResourceDesc(&of_surface, surface), CUDA_SUCCESS);
  EXPECT_EQ(of_surface.res.array.hArray, array);
  EXPECT_EQ(cuTexObjectDestroy(surface), CUDA_ERROR_INVALID_VALUE) << "a surface is no texture";
  resource.res.array.hArray = plain;
  EXPECT_EQ(cuSurfObjectCreate(&surface, &resource), CUDA_ERROR_INVALID_VALUE) << "not made for it";
  CUmipmappedArray whole = nullptr;
  CUDA_ARRAY3D_DESCRIPTOR levels = floats(4, 4);
  ASSERT_EQ(cuMipmappedArrayCreate(&whole, &levels, 2), CUDA_SUCCESS);
  ASSERT_EQ(cuMipmappedArrayGetLevel(&resource.res.array.hArray, whole, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuSurfObjectCreate(&surface, &resource), CUDA_SUCCESS) << "a level may be written";
  EXPECT_EQ(cuTexObjectDestroy(texture), CUDA_SUCCESS);
  EXPECT_EQ(cuTexObjectDestroy(texture), CUDA_ERROR_INVALID_VALUE);

  // Linear memory: all of it has to be there, and integers are not filtered.
  const CUdeviceptr device = allocate(1024);
  resource = {};
  resource.resType = CU_RESOURCE_TYPE_LINEAR;
  resource.res.linear = {device, CU_AD_FORMAT_UNSIGNED_INT32, 1, 1024};
  description = {};
  EXPECT_EQ(cuTexObjectCreate(&other, &resource, &description, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuTexObjectDestroy(other), CUDA_SUCCESS);
  resource.res.linear.sizeInBytes = 2048;
  EXPECT_EQ(cuTexObjectCreate(&other, &resource, &description, nullptr), CUDA_ERROR_INVALID_VALUE);
  resource.res.linear.sizeInBytes = 1024;
  description.filterMode = CU_TR_FILTER_MODE_LINEAR;
  EXPECT_EQ(cuTexObjectCreate(&other, &resource, &description, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFree(device), CUDA_SUCCESS);
  EXPECT_EQ(cuSurfObjectDestroy(surface), CUDA_SUCCESS);
  EXPECT_EQ(cuArrayDestroy(array), CUDA_SUCCESS);
  EXPECT_EQ(cuArrayDestroy(plain), CUDA_SUCCESS);
}

}  // namespace
