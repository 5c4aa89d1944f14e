#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // old entry points are tested too
#include <cuda.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>

#include "check.h"

namespace {

class DeviceTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(cuInit(0)); }
  static int attribute(CUdevice_attribute which) {
    int value = -12345;
    EXPECT_OK(cuDeviceGetAttribute(&value, which, 0));
    return value;
  }
};

TEST_F(DeviceTest, OneDevice) {
  int count = 0;
  EXPECT_OK(cuDeviceGetCount(&count));
  EXPECT_EQ(count, 1);
  CUdevice device = -1;
  EXPECT_OK(cuDeviceGet(&device, 0));
  EXPECT_EQ(device, 0);
  EXPECT_CU(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&device, 1));
  EXPECT_CU(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&device, -1));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuDeviceGet(nullptr, 0));
}

TEST_F(DeviceTest, NameIsCutToTheBuffer) {
  char name[64];
  EXPECT_OK(cuDeviceGetName(name, sizeof name, 0));
  EXPECT_STREQ(name, "NVIDIA H200 (simulated)");
  EXPECT_OK(cuDeviceGetName(name, 7, 0));
  EXPECT_STREQ(name, "NVIDIA");
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuDeviceGetName(name, 0, 0));
}

TEST_F(DeviceTest, MemoryIsWhatWasAskedFor) {
  std::size_t bytes = 0;
  EXPECT_OK(cuDeviceTotalMem(&bytes, 0));
  EXPECT_EQ(bytes, std::size_t{1} << 30);  // CUDASIM_CAPACITY
}

TEST_F(DeviceTest, EveryAttributeAnswersAndNoOther) {
  for (int which = 1; which < CU_DEVICE_ATTRIBUTE_MAX; ++which) {
    int value = 0;
    EXPECT_OK(cuDeviceGetAttribute(&value, unknown_value<CUdevice_attribute>(which), 0)) << which;
  }
  int value = 0;
  for (const int which : {0, -1, int(CU_DEVICE_ATTRIBUTE_MAX), 100'000}) {
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(&value, unknown_value<CUdevice_attribute>(which), 0))
        << which;
  }
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(nullptr, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
  EXPECT_CU(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 1));
}

TEST_F(DeviceTest, AttributesTellTheTruth) {
  const std::map<CUdevice_attribute, int> expected{
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
      {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 227 << 10},
      {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 60 << 20},
      {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 2},
      {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
      {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
      {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
      {CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, CU_MEM_HANDLE_TYPE_NONE},
      {CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED, 0},
      {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
      {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
      {CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 0},
      {CU_DEVICE_ATTRIBUTE_INTEGRATED, 0},
  };
  for (const auto& [which, value] : expected) EXPECT_EQ(attribute(which), value) << int(which);
}

TEST_F(DeviceTest, OldQuestionsAgreeWithAttributes) {
  CUdevprop properties{};
  EXPECT_OK(cuDeviceGetProperties(&properties, 0));
  EXPECT_EQ(properties.maxThreadsPerBlock, attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
  EXPECT_EQ(properties.maxGridSize[0], attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X));
  EXPECT_EQ(properties.clockRate, attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE));
  int major = 0, minor = -1;
  EXPECT_OK(cuDeviceComputeCapability(&major, &minor, 0));
  EXPECT_EQ(major, 9);
  EXPECT_EQ(minor, 0);
}

TEST_F(DeviceTest, Identity) {
  CUuuid first{}, second{}, zero{};
  EXPECT_OK(cuDeviceGetUuid(&first, 0));
  EXPECT_OK(cuDeviceGetUuid_v2(&second, 0));
  EXPECT_EQ(std::memcmp(&first, &second, sizeof first), 0);
  EXPECT_NE(std::memcmp(&first, &zero, sizeof first), 0);

  char bus[13];
  EXPECT_OK(cuDeviceGetPCIBusId(bus, sizeof bus, 0));
  for (const std::string& id : {std::string(bus), std::string(bus + 5), std::string(bus, 10)}) {
    CUdevice device = -1;
    EXPECT_OK(cuDeviceGetByPCIBusId(&device, id.c_str())) << id;
    EXPECT_EQ(device, 0);
  }
  CUdevice device = -1;
  EXPECT_CU(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetByPCIBusId(&device, "0000:7f:00.0"));
}

TEST_F(DeviceTest, NoPeers) {
  int can = -1;
  EXPECT_OK(cuDeviceCanAccessPeer(&can, 0, 0));
  EXPECT_EQ(can, 0);
  EXPECT_CU(CUDA_ERROR_INVALID_DEVICE, cuDeviceCanAccessPeer(&can, 0, 1));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuDeviceGetP2PAttribute(&can, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 0));
  EXPECT_CU(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetP2PAttribute(&can, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1));
}

}  // namespace
