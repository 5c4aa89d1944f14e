// Virtual times of copies and sets, reckoned by hand from round_numbers.json: in 16 B/ns + 5000 ns, out 8 B/ns + 7000
// ns, pageable 4 B/ns, memory 512 B/ns, kernel latency 3000 ns. Exact, whatever the seed.
#include "api_fixture.h"

namespace {

constexpr size_t kSize = 1 << 20;

class CopyTimeTest : public ApiTest {
 protected:
  void SetUp() override {
    ApiTest::SetUp();
    device = allocate(kSize);
    other = allocate(kSize);
    host = pinned(kSize);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    start = now();
  }
  void TearDown() override {
    EXPECT_EQ(cuMemFreeHost(host), CUDA_SUCCESS);
    ApiTest::TearDown();
  }
  std::uint64_t called() const { return now() - start; }
  std::uint64_t done() const {  // waiting costs nothing on this device
    EXPECT_EQ(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
    return now() - start;
  }

  CUdeviceptr device = 0, other = 0;
  void* host = nullptr;
  std::vector<unsigned char> pageable = std::vector<unsigned char>(kSize);
  std::uint64_t start = 0;
};

TEST_F(CopyTimeTest, PinnedIn) {
  ASSERT_EQ(cuMemcpyHtoDAsync(device, host, kSize, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(called(), 800u);
  EXPECT_EQ(done(), 800u + 5000 + 65536);
}

TEST_F(CopyTimeTest, PinnedInSynchronous) {
  ASSERT_EQ(cuMemcpyHtoD(device, host, kSize), CUDA_SUCCESS);
  EXPECT_EQ(called(), 500u + 5000 + 65536);
}

TEST_F(CopyTimeTest, PinnedOut) {
  ASSERT_EQ(cuMemcpyDtoHAsync(host, device, kSize, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(called(), 900u);
  EXPECT_EQ(done(), 900u + 7000 + 131072);
}

TEST_F(CopyTimeTest, WithinTheDeviceNobodyWaits) {
  ASSERT_EQ(cuMemcpyDtoD(device, other, kSize), CUDA_SUCCESS);
  EXPECT_EQ(called(), 700u);
  EXPECT_EQ(done(), 700u + 3000 + 4096);
}

TEST_F(CopyTimeTest, SetsDoNotWait) {
  ASSERT_EQ(cuMemsetD8(device, 1, kSize), CUDA_SUCCESS);
  EXPECT_EQ(called(), 300u);
  EXPECT_EQ(done(), 300u + 3000 + 2048);
}

TEST_F(CopyTimeTest, SetsOfPinnedMemoryWait) {
  ASSERT_EQ(cuMemsetD8(reinterpret_cast<CUdeviceptr>(host), 1, kSize), CUDA_SUCCESS);
  EXPECT_EQ(called(), 300u + 3000 + 131072);
}

TEST_F(CopyTimeTest, SmallPageableInIsStaged) {
  ASSERT_EQ(cuMemcpyHtoD(device, pageable.data(), 65536), CUDA_SUCCESS);
  EXPECT_EQ(called(), 500u + 16384);
  EXPECT_EQ(done(), 500u + 16384 + 5000 + 4096);
}

TEST_F(CopyTimeTest, LargePageableInWaits) {
  ASSERT_EQ(cuMemcpyHtoDAsync(device, pageable.data(), kSize, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(called(), 800u + 5000 + 262144);
}

TEST_F(CopyTimeTest, PageableOutWaits) {
  ASSERT_EQ(cuMemcpyDtoHAsync(pageable.data(), device, 4096, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(called(), 900u + 7000 + 1024);
}

TEST_F(CopyTimeTest, HostToHostWaits) {
  std::vector<unsigned char> to(kSize);
  ASSERT_EQ(cuMemcpy(reinterpret_cast<CUdeviceptr>(to.data()), reinterpret_cast<CUdeviceptr>(pageable.data()), kSize),
            CUDA_SUCCESS);
  EXPECT_EQ(called(), 400u + 262144);
}

TEST_F(CopyTimeTest, TheTwoCopyEnginesWorkAtOnce) {
  CUstream in = nullptr, out = nullptr;
  ASSERT_EQ(cuStreamCreate(&in, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamCreate(&out, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  void* second = pinned(kSize);
  start = now();
  ASSERT_EQ(cuMemcpyHtoDAsync(device, host, kSize, in), CUDA_SUCCESS);    // 800 to 71336
  ASSERT_EQ(cuMemcpyDtoHAsync(second, other, kSize, out), CUDA_SUCCESS);  // 1700 to 139772
  ASSERT_EQ(cuStreamSynchronize(in), CUDA_SUCCESS);
  EXPECT_EQ(called(), 800u + 5000 + 65536);
  ASSERT_EQ(cuStreamSynchronize(out), CUDA_SUCCESS);
  EXPECT_EQ(called(), 1700u + 7000 + 131072);
  ASSERT_EQ(cuMemFreeHost(second), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamDestroy(in), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamDestroy(out), CUDA_SUCCESS);
}

TEST_F(CopyTimeTest, SyncMemopsMakesSynchronousOperationsWait) {
  const unsigned on = 1;
  ASSERT_EQ(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, device), CUDA_SUCCESS);
  start = now();
  ASSERT_EQ(cuMemcpyDtoD(device, other, kSize), CUDA_SUCCESS);
  EXPECT_EQ(called(), 700u + 3000 + 4096);
}

TEST_F(CopyTimeTest, ShapesCostTheirBytes) {
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = host;
  copy.srcPitch = 1024;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = device;
  copy.dstPitch = 2048;
  copy.WidthInBytes = 512;
  copy.Height = 100;
  ASSERT_EQ(cuMemcpy2D(&copy), CUDA_SUCCESS);
  EXPECT_EQ(called(), 100u + 5000 + 51200 / 16);
}

}  // namespace
