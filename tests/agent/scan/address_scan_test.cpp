#include "agent/scan/address_scan.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "agent/scan/scan_kernel.h"

namespace memopt::agent {
namespace {

constexpr std::uint64_t kBegin = 0x7000'0000'0000;
constexpr std::uint64_t kBytes = std::uint64_t{64} << 30;

struct Launch {
  unsigned grid_x, grid_y, threads;
  CUstream stream;
  CUdeviceptr slot, pages;
  std::uint64_t begin, bytes;
  std::uint32_t serial;
};
struct Fake {
  CUresult load = CUDA_SUCCESS, find = CUDA_SUCCESS, pin = CUDA_SUCCESS, ask = CUDA_SUCCESS, launch = CUDA_SUCCESS;
  std::vector<Launch> launches;
  int pinned = 0;
};
Fake g_fake;

Driver functions() {
  Driver driver;
  driver.module_load = [](CUmodule*, const void* image) {
    EXPECT_STREQ(static_cast<const char*>(image), kScanKernel);
    return g_fake.load;
  };
  driver.module_function = [](CUfunction* function, CUmodule, const char* name) {
    EXPECT_STREQ(name, kScanKernelName);
    *function = reinterpret_cast<CUfunction>(0x10);
    return g_fake.find;
  };
  driver.host_register = [](void*, std::size_t, unsigned) {
    g_fake.pinned += g_fake.pin == CUDA_SUCCESS ? 1 : 0;
    return g_fake.pin;
  };
  driver.host_unregister = [](void*) {
    --g_fake.pinned;
    return CUDA_SUCCESS;
  };
  driver.host_device_pointer = [](CUdeviceptr* address, void* memory, unsigned) {
    *address = reinterpret_cast<CUdeviceptr>(memory);
    return g_fake.ask;
  };
  driver.launch_kernel = [](CUfunction, unsigned x, unsigned y, unsigned, unsigned threads, unsigned, unsigned,
                            unsigned, CUstream stream, void** parameters, void**) {
    const auto word = [&](int i) { return *static_cast<const std::uint64_t*>(parameters[i]); };
    g_fake.launches.push_back(
        {x, y, threads, stream, word(0), word(1), word(2), word(3), *static_cast<const std::uint32_t*>(parameters[4])});
    return g_fake.launch;
  };
  return driver;
}

class Scans : public testing::Test {
 protected:
  void SetUp() override {
    g_fake = {};
    ASSERT_TRUE(AddressScan::make(driver, kBytes, &kernel, &why)) << why;
    ASSERT_TRUE(scan.use(kernel, kBegin));
  }
  void TearDown() override { scan.end(driver); }

  Driver driver = functions();
  ScanKernel kernel;
  std::string why;
  AddressScan scan;
};

TEST_F(Scans, ALaunchOfTheKernelSaysWhereToLookAndWhatFor) {
  Scan* const one = scan.begin(3, {reinterpret_cast<CUstream>(0x50), false}, {5, 17}, kBegin + (1 << 20));
  ASSERT_NE(one, nullptr);
  ASSERT_TRUE(AddressScan::add(*one, kBegin + 512, 64));
  ASSERT_TRUE(AddressScan::add(*one, kBegin + 4096, (1 << 20) + 4));
  ASSERT_EQ(AddressScan::queue(driver, *one), CUDA_SUCCESS);
  ASSERT_EQ(g_fake.launches.size(), 1u);
  const Launch& launch = g_fake.launches[0];
  EXPECT_EQ(launch.grid_y, 2u);
  EXPECT_GE(std::uint64_t{launch.grid_x} * launch.threads * 64, std::uint64_t{1} << 17)
      << "no thread looks at too many";
  EXPECT_EQ(launch.stream, reinterpret_cast<CUstream>(0x50));
  EXPECT_EQ(launch.begin, kBegin);
  EXPECT_EQ(launch.bytes, std::uint64_t{1} << 20);
  EXPECT_EQ(launch.serial, one->serial);
  const auto& slot = *reinterpret_cast<const ScanSlot*>(launch.slot);
  EXPECT_EQ(slot.ranges[0].words, 8u);
  EXPECT_EQ(slot.ranges[1].base, kBegin + 4096);
  EXPECT_EQ(slot.ranges[1].words, std::uint64_t{1} << 17) << "a part of a word is none";
  EXPECT_NE(slot.serial, one->serial) << "the kernel has not run";
  // Pages that it marks are those of blocks.
  EXPECT_FALSE(scan.is_marked(kBegin + kBytes - 4096, 4095));
  reinterpret_cast<std::uint8_t*>(launch.pages)[(kBytes >> kScanPageShift) - 1] = 1;
  EXPECT_TRUE(scan.is_marked(kBegin + kBytes - 4096, 4095));
  EXPECT_FALSE(scan.is_marked(kBegin, kBytes / 2));
  reinterpret_cast<std::uint8_t*>(launch.pages)[(kBytes >> kScanPageShift) - 1] = 0;
  AddressScan::end(*one);
}

TEST_F(Scans, AThreadsOwnStreamIsNamedAsSuch) {
  Scan* const one = scan.begin(3, {nullptr, true}, {5, 17}, kBegin + 1);
  ASSERT_TRUE(AddressScan::add(*one, kBegin, 64));
  ASSERT_EQ(AddressScan::queue(driver, *one), CUDA_SUCCESS);
  EXPECT_EQ(g_fake.launches[0].stream, CU_STREAM_PER_THREAD);
  AddressScan::end(*one);
}

TEST_F(Scans, AScanHasRoomForSomeRangesAndThereAreSomeScans) {
  std::set<Scan*> all;
  for (std::size_t i = 0; i < AddressScan::kScans; ++i) all.insert(scan.begin(1, {}, {5, 1}, kBegin));
  EXPECT_EQ(all.size(), AddressScan::kScans);
  EXPECT_EQ(all.count(nullptr), 0u);
  EXPECT_EQ(scan.begin(1, {}, {5, 1}, kBegin), nullptr);
  Scan* const one = *all.begin();
  for (std::size_t i = 0; i < ScanSlot::kMostRanges; ++i) ASSERT_TRUE(AddressScan::add(*one, kBegin, 8));
  EXPECT_FALSE(AddressScan::add(*one, kBegin, 8));
  const std::uint32_t serial = one->serial;
  AddressScan::end(*one);
  Scan* const again = scan.begin(1, {}, {5, 1}, kBegin);
  ASSERT_EQ(again, one);
  EXPECT_NE(again->serial, serial);
  EXPECT_EQ(again->ranges, 0u);
  for (Scan* const other : all) AddressScan::end(*other);
}

TEST_F(Scans, WhatIsLookedAtMoreSeldomEachTime) {
  std::vector<int> small, large;
  for (int i = 1; i <= 20; ++i) {
    if (scan.is_due(1, kBegin, 4096)) small.push_back(i);
    // Blocks of a size count as one.
    if (scan.is_due(1, kBegin + 4096 * static_cast<unsigned>(i), 1 << 20)) large.push_back(i);
  }
  EXPECT_EQ(small, (std::vector<int>{1, 2, 4, 8, 16}));
  EXPECT_EQ(large, (std::vector<int>{1, 2, 4, 8, 16}));
  EXPECT_TRUE(scan.is_due(1, kBegin + 8192, 4096)) << "another block";
  EXPECT_TRUE(scan.is_due(2, kBegin, 4096)) << "another function";
  EXPECT_TRUE(scan.is_due(1, kBegin, 2 << 20)) << "another size";
  EXPECT_FALSE(scan.is_due(3, kBegin, 7)) << "no address has room in it";
  // Where there was an address.
  EXPECT_FALSE(is_suspect(1));
  scan.found_behind(1);
  EXPECT_TRUE(is_suspect(1));
  EXPECT_FALSE(is_suspect(2));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(scan.is_due(1, kBegin, 4096));
  EXPECT_TRUE(scan.is_due(1, kBegin + (std::uint64_t{1} << 30), 1 << 20)) << "large ones one by one";
}

TEST_F(Scans, ManyFunctionsAndBlocksAreForgottenSomeTime) {
  for (std::uint32_t i = 0; i < 200'000; ++i) EXPECT_TRUE(scan.is_due(i + 10, kBegin, 4096));
  EXPECT_TRUE(scan.is_due(10, kBegin, 4096));
}

TEST_F(Scans, TheEndOfAContextEndsItsScans) {
  Scan* const queued = scan.begin(1, {}, {5, 1}, kBegin);
  __atomic_store_n(&queued->state, Scan::State::kQueued, __ATOMIC_RELEASE);
  EXPECT_EQ(g_fake.pinned, 1);
  scan.end(driver);
  EXPECT_EQ(g_fake.pinned, 0);
  EXPECT_FALSE(scan.is_ready());
  EXPECT_EQ(scan.begin(1, {}, {5, 1}, kBegin), nullptr);
  ASSERT_TRUE(AddressScan::make(driver, kBytes, &kernel, &why)) << why;
  ASSERT_TRUE(scan.use(kernel, kBegin));
  EXPECT_EQ(queued->state, Scan::State::kFree);
  Scan* const next = scan.begin(1, {}, {5, 1}, kBegin);
  ASSERT_NE(next, nullptr);
  AddressScan::end(*next);
}

TEST(MakingTheKernel, WhatTheDriverRefusesIsSaid) {
  const Driver driver = functions();
  const auto refused = [&](CUresult Fake::*step) {
    g_fake = {};
    g_fake.*step = CUDA_ERROR_NOT_SUPPORTED;
    ScanKernel kernel;
    std::string why;
    EXPECT_FALSE(AddressScan::make(driver, kBytes, &kernel, &why));
    EXPECT_EQ(kernel.function, nullptr);
    return why;
  };
  EXPECT_EQ(refused(&Fake::load), "the driver does not load the kernel that looks for addresses (error 801)");
  EXPECT_EQ(refused(&Fake::find), "the driver does not find the kernel that looks for addresses (error 801)");
  EXPECT_EQ(refused(&Fake::pin), "the driver does not map host memory for addresses that are found (error 801)");
  EXPECT_EQ(refused(&Fake::ask), "the driver does not map host memory for addresses that are found (error 801)");
}

// By the assembler of the CUDA toolkit, where it is installed: no GPU is needed.
TEST(TheKernel, IsTranslated) {
  const char* const home = std::getenv("CUDA_HOME");
  const std::string assembler = std::string(home != nullptr ? home : "/usr/local/cuda") + "/bin/ptxas";
  if (!std::filesystem::exists(assembler)) GTEST_SKIP() << assembler << ": not there";
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "memopt-scan-kernel";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "kernel.ptx") << kScanKernel;
  for (const char* const device : {"sm_75", "sm_80", "sm_90", "sm_100"}) {
    const std::string command = assembler + " -arch=" + device + " -o " + (folder / "kernel.cubin").string() + " " +
                                (folder / "kernel.ptx").string();
    EXPECT_EQ(std::system(command.c_str()), 0) << device;
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace memopt::agent
