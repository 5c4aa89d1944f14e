#include "agent/memory/memory_pools.h"

#include <gtest/gtest.h>

namespace memopt::agent {
namespace {

CUmemoryPool handle(std::uintptr_t number) { return reinterpret_cast<CUmemoryPool>(number); }

const CUmemoryPool kDefault = handle(0x10);
CUmemoryPool g_current = nullptr;
int g_asked = 0;
int g_supported = 1;

Driver fake_driver() {
  Driver driver;
  driver.device_attribute = [](int* value, CUdevice_attribute, CUdevice) {
    *value = g_supported;
    return CUDA_SUCCESS;
  };
  driver.default_pool = [](CUmemoryPool* pool, CUdevice) {
    *pool = kDefault;
    return CUDA_SUCCESS;
  };
  driver.current_pool = [](CUmemoryPool* pool, CUdevice) {
    ++g_asked;
    *pool = g_current;
    return CUDA_SUCCESS;
  };
  return driver;
}

class MemoryPoolsTest : public testing::Test {
 protected:
  void SetUp() override {
    g_current = kDefault;
    g_asked = 0;
    g_supported = 1;
  }
  static CUmemPoolProps of_device(CUdevice device) {
    CUmemPoolProps properties{};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    return properties;
  }
  std::uint64_t answer(CUmemoryPool pool, CUmemPool_attribute attribute, std::uint64_t held, std::uint64_t drivers) {
    pools_.add_use(pool, attribute, held, &drivers);
    return drivers;
  }

  const Driver driver_ = fake_driver();
  MemoryPools pools_{driver_};
};

TEST_F(MemoryPoolsTest, TheDefaultPoolIsServedOnceThereIsADevice) {
  EXPECT_EQ(pools_.current(), nullptr);
  EXPECT_FALSE(pools_.serves(kDefault));
  pools_.start(0);
  EXPECT_EQ(pools_.current(), kDefault);
  EXPECT_EQ(pools_.current(), kDefault);
  EXPECT_EQ(g_asked, 1) << "the driver is asked again only when it may have changed";
  EXPECT_FALSE(pools_.serves(nullptr));
}

TEST_F(MemoryPoolsTest, ADeviceWithoutPoolsHasNoneServed) {
  g_supported = 0;
  pools_.created(handle(1), of_device(0));
  pools_.start(0);
  EXPECT_EQ(pools_.current(), nullptr);
  EXPECT_FALSE(pools_.serves(handle(1)));
}

TEST_F(MemoryPoolsTest, OnlyPoolsWhoseMemoryCouldBeAnybodysAreServed) {
  pools_.created(handle(1), of_device(0));  // before the device is known
  pools_.start(0);
  EXPECT_TRUE(pools_.serves(handle(1)));
  CUmemPoolProps exported = of_device(0);
  exported.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemPoolProps limited = of_device(0);
  limited.maxSize = 1 << 20;
  CUmemPoolProps host = of_device(0);
  host.location.type = CU_MEM_LOCATION_TYPE_HOST;
  pools_.created(handle(2), exported);
  pools_.created(handle(3), limited);
  pools_.created(handle(4), host);
  pools_.created(handle(5), of_device(1));
  for (std::uintptr_t number = 2; number <= 5; ++number) EXPECT_FALSE(pools_.serves(handle(number))) << number;
}

TEST_F(MemoryPoolsTest, TheCurrentPoolChanges) {
  pools_.start(0);
  EXPECT_EQ(pools_.current(), kDefault);
  pools_.created(handle(1), of_device(0));
  g_current = handle(1);
  pools_.current_may_have_changed();
  EXPECT_EQ(pools_.current(), handle(1));
  g_current = handle(9);  // one that is not served
  pools_.current_may_have_changed();
  EXPECT_EQ(pools_.current(), nullptr);
  // The device falls back to its default pool when its current one is destroyed.
  g_current = handle(1);
  pools_.current_may_have_changed();
  EXPECT_EQ(pools_.current(), handle(1));
  g_current = kDefault;
  pools_.destroyed(handle(1));
  EXPECT_EQ(pools_.current(), kDefault);
  EXPECT_FALSE(pools_.serves(handle(1)));
}

TEST_F(MemoryPoolsTest, APoolThatAnotherDeviceMayUseIsLeft) {
  pools_.start(0);
  pools_.accessible(kDefault, 0);
  EXPECT_TRUE(pools_.serves(kDefault));
  pools_.accessible(kDefault, 1);
  EXPECT_FALSE(pools_.serves(kDefault));
  EXPECT_EQ(pools_.current(), nullptr);
}

TEST_F(MemoryPoolsTest, UseIsAddedToTheDriversAnswer) {
  pools_.start(0);
  pools_.created(handle(1), of_device(0));
  // As the driver counts: what a block has, in units of 512 bytes.
  pools_.allocated(kDefault, 1000);
  pools_.allocated(kDefault, 500);
  pools_.allocated(handle(1), 7);
  pools_.freed(kDefault, 1000);
  EXPECT_EQ(answer(kDefault, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, 64, 10), 522u);
  EXPECT_EQ(answer(kDefault, CU_MEMPOOL_ATTR_USED_MEM_HIGH, 64, 10), 1546u);
  EXPECT_EQ(answer(kDefault, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, 64, 10), 586u);
  EXPECT_EQ(answer(kDefault, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, 64, 10), 1546u);
  EXPECT_EQ(answer(kDefault, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, 5000, 10), 5522u);
  EXPECT_EQ(answer(kDefault, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 64, 10), 10u);
  // What is held for whoever comes next counts once: in the default pool.
  EXPECT_EQ(answer(handle(1), CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, 64, 0), 512u);
  EXPECT_EQ(answer(handle(9), CU_MEMPOOL_ATTR_USED_MEM_CURRENT, 64, 3), 3u);
  pools_.reset_high(kDefault, CU_MEMPOOL_ATTR_USED_MEM_HIGH);
  EXPECT_EQ(answer(kDefault, CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0, 0), 512u);
  pools_.reset_high(kDefault, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH);
  EXPECT_EQ(answer(kDefault, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, 0, 0), 512u);
}

TEST_F(MemoryPoolsTest, ABlockOutlivesItsPool) {
  pools_.start(0);
  pools_.created(handle(1), of_device(0));
  pools_.allocated(handle(1), 100);
  pools_.destroyed(handle(1));
  pools_.freed(handle(1), 100);
  pools_.created(handle(1), of_device(0));  // the handle again, another pool
  pools_.allocated(handle(1), 30);
  pools_.freed(handle(1), 100);  // of the first one
  EXPECT_EQ(answer(handle(1), CU_MEMPOOL_ATTR_USED_MEM_CURRENT, 0, 0), 0u);
}

}  // namespace
}  // namespace memopt::agent
