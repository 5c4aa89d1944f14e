// The C interface: every number exact.
#include <cuda.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <utility>
#include <vector>

#include "check.h"
#include "cudasim/cudasim.h"

namespace {

CudasimCounters counters() {
  CudasimCounters now{};
  now.struct_size = sizeof now;
  EXPECT_EQ(cudasim_counters(&now), 0);
  return now;
}

class CountersTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(cuInit(0));
    ASSERT_OK(cuCtxCreate(&context_, nullptr, 0, 0));
  }
  void TearDown() override { EXPECT_OK(cuCtxDestroy(context_)); }
  CUcontext context_ = nullptr;
};

TEST_F(CountersTest, StructSizeIsRespected) {
  EXPECT_EQ(cudasim_counters(nullptr), -1);
  CudasimCounters none{};
  EXPECT_EQ(cudasim_counters(&none), -1);

  struct {
    CudasimCounters counters;
    unsigned char behind[16];
  } longer;
  std::memset(&longer, 0xab, sizeof longer);
  longer.counters.struct_size = 16;  // an older caller
  EXPECT_EQ(cudasim_counters(&longer.counters), 0);
  EXPECT_EQ(longer.counters.interface_version, unsigned(CUDASIM_INTERFACE_VERSION));
  unsigned char after = 0;
  std::memcpy(&after, reinterpret_cast<unsigned char*>(&longer) + 16, 1);
  EXPECT_EQ(after, 0xab);
  longer.counters.struct_size = sizeof longer;  // a newer caller
  EXPECT_EQ(cudasim_counters(&longer.counters), 0);
  EXPECT_EQ(longer.behind[0], 0xab);
}

TEST_F(CountersTest, MemoryIsExact) {
  const CudasimCounters before = counters();
  EXPECT_EQ(before.capacity, std::uint64_t{1} << 30);
  CUdeviceptr large = 0, small = 0;
  ASSERT_OK(cuMemAlloc(&large, (4 << 20) + 1));
  ASSERT_OK(cuMemAlloc(&small, 100));
  CudasimCounters now = counters();
  EXPECT_EQ(now.bytes_live - before.bytes_live, (4u << 20) + 101);
  EXPECT_EQ(now.blocks_live - before.blocks_live, 2u);
  EXPECT_EQ((now.bytes_held - before.bytes_held) % (2u << 20), 0u);
  EXPECT_GE(now.bytes_held - before.bytes_held, 6u << 20);
  std::size_t free = 0, total = 0;
  ASSERT_OK(cuMemGetInfo(&free, &total));
  EXPECT_EQ(total - free, now.bytes_held);

  cudasim_reset_peaks();
  now = counters();
  EXPECT_EQ(now.bytes_live_peak, now.bytes_live);
  EXPECT_EQ(now.bytes_held_peak, now.bytes_held);
  EXPECT_EQ(now.blocks_live_at_peak, 2u);
  EXPECT_EQ(now.blocks_2mib_live_at_peak, 1u);
  const std::uint64_t peak = now.bytes_live_peak;
  ASSERT_OK(cuMemFree(large));
  now = counters();
  EXPECT_EQ(now.bytes_live_peak, peak);
  EXPECT_EQ(now.blocks_live_at_peak, 2u);
  cudasim_reset_peaks();
  now = counters();
  EXPECT_EQ(now.bytes_live_peak, 100u);
  EXPECT_EQ(now.blocks_2mib_live_at_peak, 0u);
  ASSERT_OK(cuMemFree(small));
  EXPECT_EQ(counters().bytes_live, before.bytes_live);
}

TEST_F(CountersTest, CallsCopiesAndSynchronisations) {
  std::vector<char> host(1000);
  CUdeviceptr block = 0;
  ASSERT_OK(cuMemAlloc(&block, host.size()));
  const CudasimCounters before = counters();
  const std::uint64_t copies_in = cudasim_calls("cuMemcpyHtoD_v2");
  ASSERT_OK(cuMemcpyHtoD(block, host.data(), host.size()));
  ASSERT_OK(cuMemcpyHtoD(block, host.data(), 10));
  ASSERT_OK(cuMemcpyDtoH(host.data(), block, 7));
  ASSERT_OK(cuCtxSynchronize());
  EXPECT_EQ(cuMemFree(block + 1), CUDA_ERROR_INVALID_VALUE);  // a refused call is a call
  const CudasimCounters now = counters();
  EXPECT_EQ(cudasim_calls("cuMemcpyHtoD_v2") - copies_in, 2u);
  EXPECT_EQ(now.calls - before.calls, 5u);
  EXPECT_EQ(now.copies - before.copies, 3u);
  EXPECT_EQ(now.bytes_copied_in - before.bytes_copied_in, 1010u);
  EXPECT_EQ(now.bytes_copied_out - before.bytes_copied_out, 7u);
  EXPECT_GE(now.host_synchronizations, before.host_synchronizations + 1);
  EXPECT_EQ(cudasim_calls("cuNoSuchThing"), 0u);
  EXPECT_EQ(cudasim_calls(nullptr), 0u);
  ASSERT_OK(cuMemFree(block));
}

TEST_F(CountersTest, HostClockAdvancesByModelledCosts) {
  const std::uint64_t start = counters().host_now_ns;
  cudasim_host_works(12'345);
  EXPECT_EQ(counters().host_now_ns - start, 12'345u);
  unsigned version = 0;
  ASSERT_OK(cuCtxGetApiVersion(context_, &version));  // "default" of the device file
  EXPECT_EQ(counters().host_now_ns - start, 12'545u);
  std::size_t free = 0, total = 0;
  ASSERT_OK(cuMemGetInfo(&free, &total));
  EXPECT_EQ(counters().host_now_ns - start, 18'545u);
}

TEST_F(CountersTest, VmmCostsArePerHandle) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  CUmemGenericAllocationHandle small = 0, large = 0;
  CUdeviceptr window = 0;
  ASSERT_OK(cuMemAddressReserve(&window, 8 << 20, 0, 0, 0));
  const CudasimCounters before = counters();
  std::uint64_t last = before.host_now_ns;
  const auto took = [&last] {
    const std::uint64_t now = counters().host_now_ns;
    return now - std::exchange(last, now);
  };
  ASSERT_OK(cuMemCreate(&small, 2 << 20, &properties, 0));
  EXPECT_EQ(took(), 29'000u);
  ASSERT_OK(cuMemCreate(&large, 6 << 20, &properties, 0));
  EXPECT_EQ(took(), 29'000u);
  ASSERT_OK(cuMemMap(window, 2 << 20, 0, small, 0));
  ASSERT_OK(cuMemMap(window + (2 << 20), 6 << 20, 0, large, 0));
  EXPECT_EQ(took(), 2 * 2'000u);
  const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, {0}}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  ASSERT_OK(cuMemSetAccess(window, 8 << 20, &access, 1));
  EXPECT_EQ(took(), 2 * 38'000u);
  ASSERT_OK(cuMemUnmap(window, 8 << 20));
  EXPECT_EQ(took(), 2 * 34'000u);
  ASSERT_OK(cuMemRelease(small));
  ASSERT_OK(cuMemRelease(large));
  EXPECT_EQ(took(), 2 * 23'000u);
  EXPECT_EQ(counters().vmm_calls - before.vmm_calls, 8u);
  EXPECT_EQ(counters().bytes_held, before.bytes_held);
  ASSERT_OK(cuMemAddressFree(window, 8 << 20));
}

TEST_F(CountersTest, ReportIsWritten) {
  const std::string path = testing::TempDir() + "/cudasim_report_test." + std::to_string(::getpid());
  EXPECT_EQ(cudasim_write_report(path.c_str()), 0);
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_NE(text.find("\"NVIDIA H200 (simulated)\""), std::string::npos);
  EXPECT_EQ(std::remove(path.c_str()), 0);
  EXPECT_EQ(cudasim_write_report("/no/such/folder/report.json"), ENOENT);
  EXPECT_EQ(cudasim_write_report(nullptr), EINVAL);
}

TEST_F(CountersTest, NoRaceIsAnEmptyText) { EXPECT_STREQ(cudasim_last_race(), ""); }

}  // namespace
