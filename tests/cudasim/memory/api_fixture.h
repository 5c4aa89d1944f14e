// A context of its own for each test on the device of round_numbers.json, and the virtual host clock.
#pragma once
#include <cuda.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "cudasim/cudasim.h"
#include "tests/cudasim/counters.h"

inline constexpr std::size_t kGranule = 2u << 20;

class ApiTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxCreate(&context, nullptr, 0, 0), CUDA_SUCCESS);
  }
  void TearDown() override {
    EXPECT_EQ(cuCtxDestroy(context), CUDA_SUCCESS);
    EXPECT_EQ(counters().bytes_held, 0u) << "device memory outlived its test";
    EXPECT_EQ(counters().races, 0u) << cudasim_last_race();
  }

  static CudasimCounters counters() { return device_counters(); }
  static std::uint64_t now() { return counters().host_now_ns; }
  static bool adversarial() { return std::getenv("CUDASIM_SEED") != nullptr; }

  static CUdeviceptr allocate(std::size_t size) {
    CUdeviceptr out = 0;
    EXPECT_EQ(cuMemAlloc(&out, size), CUDA_SUCCESS);
    return out;
  }
  static void* pinned(std::size_t size) {
    void* out = nullptr;
    EXPECT_EQ(cuMemHostAlloc(&out, size, 0), CUDA_SUCCESS);
    return out;
  }
  static std::vector<unsigned char> pattern(std::size_t size, unsigned seed) {
    std::vector<unsigned char> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<unsigned char>((i * 31 + (i >> 8) * 7 + seed) & 0xFF);
    return bytes;
  }
  static std::vector<unsigned char> read_back(CUdeviceptr from, std::size_t size) {
    std::vector<unsigned char> bytes(size);
    EXPECT_EQ(cuMemcpyDtoH(bytes.data(), from, size), CUDA_SUCCESS);
    return bytes;
  }
  static CUmemAllocationProp device_memory() {
    CUmemAllocationProp prop{};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    return prop;
  }
  static CUresult set_access(CUdeviceptr base, std::size_t size, CUmemAccess_flags flags) {
    CUmemAccessDesc access{};
    access.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    access.flags = flags;
    return cuMemSetAccess(base, size, &access, 1);
  }

  CUcontext context = nullptr;
};
