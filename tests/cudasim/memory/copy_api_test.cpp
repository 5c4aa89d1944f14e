#include <cstring>

#include "api_fixture.h"

namespace {

using CopyTest = ApiTest;

// Every size class: within one run, staged, above the staging limit, in pieces.
TEST_F(CopyTest, ContentsArriveWhateverTheSizeAndTheKindOfHostMemory) {
  for (const size_t size : {size_t{1}, size_t{511}, size_t{65536}, size_t{65537}, size_t{131072}, size_t{1000003}}) {
    const auto bytes = pattern(size, static_cast<unsigned>(size));
    const CUdeviceptr a = allocate(size), b = allocate(size);
    auto* in = static_cast<unsigned char*>(pinned(size));
    auto* out = static_cast<unsigned char*>(pinned(size));
    ASSERT_EQ(cuMemcpyHtoD(a, bytes.data(), size), CUDA_SUCCESS);
    ASSERT_EQ(cuMemcpyDtoD(b, a, size), CUDA_SUCCESS);
    EXPECT_EQ(read_back(b, size), bytes);
    std::memcpy(in, bytes.data(), size);
    ASSERT_EQ(cuMemsetD8(a, 0, size), CUDA_SUCCESS);
    ASSERT_EQ(cuMemcpyHtoDAsync(a, in, size, nullptr), CUDA_SUCCESS);
    ASSERT_EQ(cuMemcpyDtoHAsync(out, a, size, nullptr), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
    EXPECT_EQ(std::memcmp(out, bytes.data(), size), 0);
    for (const CUdeviceptr block : {a, b}) ASSERT_EQ(cuMemFree(block), CUDA_SUCCESS);
    for (void* host : {in, out}) ASSERT_EQ(cuMemFreeHost(host), CUDA_SUCCESS);
  }
}

TEST_F(CopyTest, UnifiedCopiesFindTheDirectionThemselves) {
  const auto bytes = pattern(200000, 5);
  std::vector<unsigned char> back(bytes.size()), host(bytes.size());
  const CUdeviceptr device = allocate(bytes.size());
  const auto address = [](const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); };
  ASSERT_EQ(cuMemcpy(device, address(bytes.data()), bytes.size()), CUDA_SUCCESS);
  ASSERT_EQ(cuMemcpyAsync(address(back.data()), device, bytes.size(), nullptr), CUDA_SUCCESS);  // pageable: has waited
  EXPECT_EQ(back, bytes);
  ASSERT_EQ(cuMemcpy(address(host.data()), address(back.data()), back.size()), CUDA_SUCCESS);
  EXPECT_EQ(host, bytes);
  ASSERT_EQ(cuMemcpyPeer(device, context, device, context, 0), CUDA_SUCCESS);
}

// The program may change a pageable source as soon as the call is back.
TEST_F(CopyTest, PageableSourcesAreReadDuringTheCall) {
  CUstream stream = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  for (const size_t size : {size_t{1000}, size_t{300000}}) {
    auto bytes = pattern(size, 1);
    const auto kept = bytes;
    const CUdeviceptr device = allocate(size);
    ASSERT_EQ(cuMemcpyHtoDAsync(device, bytes.data(), size, stream), CUDA_SUCCESS);
    std::fill(bytes.begin(), bytes.end(), static_cast<unsigned char>(0));
    ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_EQ(read_back(device, size), kept);
  }
  ASSERT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
}

// The bytes of queued copies change when the device gets there, not at the call.
TEST_F(CopyTest, PinnedDestinationsChangeLater) {
  if (adversarial()) GTEST_SKIP() << "an adversary may run the copy at once";
  const CUdeviceptr device = allocate(1000);
  auto* host = static_cast<unsigned char*>(pinned(1000));
  ASSERT_EQ(cuMemsetD8(device, 1, 1000), CUDA_SUCCESS);
  ASSERT_EQ(cuMemcpyDtoHAsync(host, device, 1000, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(host[0], 0);
  ASSERT_EQ(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(host[0], 1);
  ASSERT_EQ(cuMemFreeHost(host), CUDA_SUCCESS);
}

TEST_F(CopyTest, Sets) {
  const CUdeviceptr device = allocate(400000);
  ASSERT_EQ(cuMemsetD32(device, 0x11223344, 100000), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD16Async(device + 2, 0xAABB, 1, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD8Async(device + 399999, 0xEE, 1, nullptr), CUDA_SUCCESS);
  const auto bytes = read_back(device, 400000);
  EXPECT_EQ((std::vector<unsigned char>(bytes.begin(), bytes.begin() + 8)),
            (std::vector<unsigned char>{0x44, 0x33, 0xBB, 0xAA, 0x44, 0x33, 0x22, 0x11}));
  EXPECT_EQ(bytes[399999], 0xEE);
  EXPECT_EQ(cuMemsetD32(device + 2, 0, 1), CUDA_ERROR_INVALID_VALUE);  // alignment
  EXPECT_EQ(cuMemsetD16(device + 1, 0, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemsetD8(device, 0, 400001), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemsetD32(device, 0, SIZE_MAX / 2), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemsetD8(0, 0, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemsetD8(device, 0, 0), CUDA_SUCCESS);
}

TEST_F(CopyTest, BadArguments) {
  const CUdeviceptr device = allocate(1000), gone = allocate(kGranule);
  ASSERT_EQ(cuMemFree(gone), CUDA_SUCCESS);
  char host[1000] = {};
  EXPECT_EQ(cuMemcpyHtoD(0, host, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyHtoD(device, nullptr, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyDtoH(nullptr, device, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyHtoD(device, host, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyHtoD(device + 1, host, 1000), CUDA_ERROR_INVALID_VALUE);  // over the end
  EXPECT_EQ(cuMemcpyHtoD(gone, host, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyDtoH(host, gone, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyDtoD(device, gone, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyHtoD(reinterpret_cast<CUdeviceptr>(host), host, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyHtoD(device, reinterpret_cast<void*>(device), 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyHtoD(device, host, SIZE_MAX), CUDA_ERROR_INVALID_VALUE);
  // A bad host pointer is the call's error; the context lives on.
  EXPECT_EQ(cuMemcpyHtoD(device, reinterpret_cast<void*>(64), 10), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyDtoH(reinterpret_cast<void*>(64), device, 10), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyPeer(device, nullptr, device, context, 1), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuMemcpyHtoD(device, host, 1000), CUDA_SUCCESS);
}

TEST_F(CopyTest, CountersCountCopiesAndBytes) {
  const CudasimCounters before = counters();
  const CUdeviceptr device = allocate(1000);
  char host[1000] = {};
  ASSERT_EQ(cuMemcpyHtoD(device, host, 1000), CUDA_SUCCESS);
  ASSERT_EQ(cuMemcpyDtoH(host, device, 300), CUDA_SUCCESS);
  ASSERT_EQ(cuMemcpyDtoD(device, device + 500, 500), CUDA_SUCCESS);
  EXPECT_EQ(counters().copies - before.copies, 3u);
  EXPECT_EQ(counters().bytes_copied_in - before.bytes_copied_in, 1000u);
  EXPECT_EQ(counters().bytes_copied_out - before.bytes_copied_out, 300u);
}

TEST_F(CopyTest, Batches) {
  CUstream stream = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  const auto bytes = pattern(2000, 2);
  const CUdeviceptr device = allocate(2000);
  CUdeviceptr to[] = {device, device + 1000}, from[2];
  for (size_t i = 0; i < 2; ++i) from[i] = reinterpret_cast<CUdeviceptr>(bytes.data() + i * 1000);
  size_t sizes[] = {1000, 1000}, indices[] = {0};
  CUmemcpyAttributes attributes[1] = {};
  EXPECT_EQ(cuMemcpyBatchAsync(to, from, sizes, 2, attributes, indices, 1, stream), CUDA_ERROR_INVALID_VALUE);
  attributes[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
  EXPECT_EQ(cuMemcpyBatchAsync(to, from, sizes, 2, attributes, indices, 1, nullptr), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(cuMemcpyBatchAsync(to, from, sizes, 2, attributes, indices, 1, stream), CUDA_SUCCESS);
  EXPECT_EQ(read_back(device, 2000), bytes);
  ASSERT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
}

}  // namespace
