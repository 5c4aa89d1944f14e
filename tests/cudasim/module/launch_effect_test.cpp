// What an instrument in front of the driver says of launches (cudasim/launch_effect.h), as it says it.
#include "cudasim/launch_effect.h"

#include <cuda.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "cudasim/cudasim.h"

namespace {

#define OK(call) ASSERT_EQ(call, CUDA_SUCCESS)

// "nothing" is in the plug-in, "unknown" in none.
constexpr char kModule[] = R"(
.version 8.0
.target sm_50
.address_size 64
.visible .entry unknown(.param .u64 unknown_0) { ret; }
.visible .entry _Z7nothingv() { ret; }
)";

struct Seen {
  unsigned char* bytes = nullptr;
  std::size_t size = 0;
  int prepared = 0, read = 0, written = 0, released = 0;
  unsigned sum = 0;
};

class LaunchEffect : public testing::Test {
 protected:
  static constexpr std::size_t kSize = 1u << 20;

  void SetUp() override {
    OK(cuInit(0));
    CUcontext context;
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    CUmodule module = nullptr;
    OK(cuModuleLoadData(&module, kModule));
    OK(cuModuleGetFunction(&unknown_, module, "unknown"));
    OK(cuModuleGetFunction(&known_, module, "_Z7nothingv"));
    OK(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&block_, kSize));
    OK(cuMemsetD8(block_, 1, kSize));
    OK(cuCtxSynchronize());  // that stream does not wait for it
    seen_.bytes = reinterpret_cast<unsigned char*>(block_);
    seen_.size = kSize;
    touched_ = {block_, kSize, 1, 1};
  }
  void TearDown() override {
    cudasim_next_launch_does(nullptr, nullptr);
    cuDevicePrimaryCtxReset(0);
  }

  CudasimEffect effect() {
    CudasimEffect effect{};
    effect.struct_size = sizeof effect;
    effect.touched = &touched_;
    effect.touched_count = 1;
    effect.cost.bytes = 1555.0 * 1000;  // a microsecond at an A100's rate
    effect.prepare = [](void* mine) { ++static_cast<Seen*>(mine)->prepared; };
    effect.read = [](void* mine) {
      auto* const seen = static_cast<Seen*>(mine);
      ++seen->read;
      for (std::size_t i = 0; i < seen->size; ++i) seen->sum += seen->bytes[i];
    };
    effect.write = [](void* mine) {
      auto* const seen = static_cast<Seen*>(mine);
      ++seen->written;
      std::memset(seen->bytes, 7, seen->size);
    };
    effect.release = [](void* mine) { ++static_cast<Seen*>(mine)->released; };
    effect.argument = &seen_;
    return effect;
  }
  CUresult launch(CUfunction function) {
    void* parameters[] = {&block_};
    return cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream_, parameters, nullptr);
  }
  unsigned char first_byte() {
    unsigned char byte = 0;
    EXPECT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyDtoH(&byte, block_, 1), CUDA_SUCCESS);
    return byte;
  }
  static CudasimCounters counters() {
    CudasimCounters now{};
    now.struct_size = sizeof now;
    EXPECT_EQ(cudasim_counters(&now), 0);
    return now;
  }

  CUfunction unknown_ = nullptr, known_ = nullptr;
  CUstream stream_ = nullptr;
  CUdeviceptr block_ = 0;
  CudasimTouched touched_{};
  Seen seen_;
};

TEST_F(LaunchEffect, RunsInThePlaceOfAnUnknownKernelOnce) {
  const CudasimEffect does = effect();
  ASSERT_EQ(cudasim_next_launch_does(unknown_, &does), 0);
  const std::uint64_t unknown = counters().unknown_kernels;
  OK(launch(unknown_));
  EXPECT_EQ(counters().unknown_kernels, unknown) << "it is known now what it does";
  EXPECT_EQ(first_byte(), 7);
  EXPECT_EQ(seen_.sum, kSize);
  EXPECT_EQ(seen_.prepared, 0);
  EXPECT_EQ(seen_.read, 1);
  EXPECT_EQ(seen_.written, 1);
  OK(launch(unknown_));
  OK(cuStreamSynchronize(stream_));
  EXPECT_EQ(seen_.read, 1) << "the next launch has none";
  EXPECT_EQ(counters().unknown_kernels, unknown + 1);
  OK(cuCtxSynchronize());
  EXPECT_EQ(seen_.released, 1);
}

TEST_F(LaunchEffect, TakesTheRooflineOfItsCostUnlessATimeWasGiven) {
  const CudasimEffect does = effect();
  ASSERT_EQ(cudasim_next_launch_does(unknown_, &does), 0);
  OK(launch(unknown_));
  EXPECT_EQ(cudasim_last_launch_took(), 1000u + 3000u);
  ASSERT_EQ(cudasim_next_launch_does(unknown_, &does), 0);
  cudasim_next_launch_takes(12345);
  OK(launch(unknown_));
  EXPECT_EQ(cudasim_last_launch_took(), 12345u);
  OK(cuCtxSynchronize());
}

TEST_F(LaunchEffect, OnlyPreparesWhereAPluginHasTheKernel) {
  const CudasimEffect does = effect();
  ASSERT_EQ(cudasim_next_launch_does(known_, &does), 0);
  OK(cuLaunchKernel(known_, 1, 1, 1, 1, 1, 1, 0, stream_, nullptr, nullptr));
  EXPECT_EQ(first_byte(), 1);
  EXPECT_EQ(seen_.prepared, 1);
  EXPECT_EQ(seen_.read, 0);
  EXPECT_EQ(seen_.written, 0);
  EXPECT_NE(cudasim_last_launch_took(), 1000u + 3000u);
}

TEST_F(LaunchEffect, WaitsForItsFunction) {
  const CudasimEffect does = effect();
  ASSERT_EQ(cudasim_next_launch_does(unknown_, &does), 0);
  OK(cuLaunchKernel(known_, 1, 1, 1, 1, 1, 1, 0, stream_, nullptr, nullptr));
  OK(cuStreamSynchronize(stream_));
  EXPECT_EQ(seen_.prepared + seen_.read, 0);
  OK(launch(unknown_));
  OK(cuStreamSynchronize(stream_));
  EXPECT_EQ(seen_.read, 1);
}

TEST_F(LaunchEffect, IsReleasedWhateverBecomesOfIt) {
  const CudasimEffect does = effect();
  ASSERT_EQ(cudasim_next_launch_does(unknown_, &does), 0);
  ASSERT_EQ(cudasim_next_launch_does(unknown_, nullptr), 0);
  EXPECT_EQ(seen_.released, 1) << "taken back";
  ASSERT_EQ(cudasim_next_launch_does(unknown_, &does), 0);
  EXPECT_EQ(cuLaunchKernel(unknown_, 1, 1, 1, 32, 1, 1, 0, stream_, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  cudasim_next_launch_does(nullptr, nullptr);
  EXPECT_EQ(seen_.released, 2) << "the launch was refused";
  CudasimEffect newer = effect();
  newer.struct_size += 8;
  EXPECT_EQ(cudasim_next_launch_does(unknown_, &newer), -1);
  EXPECT_EQ(seen_.released, 2) << "not taken";
}

TEST_F(LaunchEffect, MayTouchTheProgramsMemoryAlone) {
  CudasimEffect does = effect();
  touched_.size = std::size_t{1} << 40;
  ASSERT_EQ(cudasim_next_launch_does(unknown_, &does), 0);
  OK(launch(unknown_));
  EXPECT_EQ(cuStreamSynchronize(stream_), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(seen_.read, 0);
}

// In a process of its own, whose exit code the race changes.
TEST_F(LaunchEffect, DISABLED_MissingEdge) {
  CUstream other = nullptr;
  OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  OK(cuCtxSynchronize());
  const CudasimEffect does = effect();
  const std::uint64_t races = counters().races;
  ASSERT_EQ(cudasim_next_launch_does(unknown_, &does), 0);
  OK(launch(unknown_));
  OK(cuStreamSynchronize(stream_));
  ASSERT_EQ(cudasim_next_launch_does(unknown_, &does), 0);
  OK(launch(unknown_));
  EXPECT_EQ(counters().races, races);
  OK(cuMemsetD8Async(block_, 3, kSize, other));
  OK(cuCtxSynchronize());
  ASSERT_GT(counters().races, races);
  ASSERT_NE(std::strstr(cudasim_last_race(), "kernel unknown<<<1,32>>>"), nullptr) << cudasim_last_race();
}

TEST(LaunchEffectProcess, AMissingEdgeIsARaceAsBetweenKernels) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string command =
      "env -u GTEST_OUTPUT '" + self + "' --gtest_also_run_disabled_tests --gtest_filter=*MissingEdge >/dev/null 2>&1";
  const int status = std::system(command.c_str());
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), CUDASIM_RACE_EXIT_CODE);
}

}  // namespace
