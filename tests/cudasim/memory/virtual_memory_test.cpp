#include "memory/virtual_memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "config.h"
#include "counters.h"
#include "memory/fault_guard.h"
#include "memory/memory_impl.h"

namespace cudasim {
namespace {

class VirtualMemoryTest : public ::testing::Test {
 protected:
  static Config config() {
    Config made;
    made.device.capacity = 8 * kGranule;
    return made;
  }
  CUdeviceptr reserve(std::uint64_t size) {
    CUdeviceptr base = 0;
    EXPECT_EQ(vmm.reserve(size, 0, 0, &base), CUDA_SUCCESS);
    return base;
  }
  VirtualMemory::HandleId create(std::uint64_t size) {
    VirtualMemory::HandleId handle = 0;
    EXPECT_EQ(vmm.create(size, {}, &handle), CUDA_SUCCESS);
    return handle;
  }
  static bool read_faults(CUdeviceptr address) {
    return FaultGuard::run([&] { *reinterpret_cast<volatile char*>(address); }).has_value();
  }
  static bool write_faults(CUdeviceptr address) {
    return FaultGuard::run([&] { *reinterpret_cast<volatile char*>(address) = 1; }).has_value();
  }
  static volatile int& word(CUdeviceptr address) { return *reinterpret_cast<volatile int*>(address); }

  Counters counters;
  Memory memory{config(), counters};
  VirtualMemory& vmm = memory.impl().vmm;
  std::vector<ByteRange> freed;
};

TEST_F(VirtualMemoryTest, OneHandleAtTwoAddressesIsOneMemory) {
  const CUdeviceptr base = reserve(8 * kGranule);
  const auto handle = create(2 * kGranule);
  ASSERT_EQ(vmm.map(base, 2 * kGranule, 0, handle), CUDA_SUCCESS);
  ASSERT_EQ(vmm.map(base + 4 * kGranule, 2 * kGranule, 0, handle), CUDA_SUCCESS);
  ASSERT_EQ(vmm.set_access(base, 2 * kGranule, Access::kReadWrite), CUDA_SUCCESS);
  ASSERT_EQ(vmm.set_access(base + 4 * kGranule, 2 * kGranule, Access::kRead), CUDA_SUCCESS);
  word(base + kGranule + 8) = 42;
  EXPECT_EQ(word(base + 5 * kGranule + 8), 42);
  EXPECT_TRUE(write_faults(base + 5 * kGranule + 8));
  // The checker sees the same bytes.
  std::vector<ByteRange> one, other;
  memory.for_each_byte_range(base + 5, 100, [&](ByteRange range) { one.push_back(range); });
  memory.for_each_byte_range(base + 4 * kGranule + 5, 100, [&](ByteRange range) { other.push_back(range); });
  EXPECT_EQ(one, other);
  EXPECT_EQ(counters.totals.bytes_held, 2 * kGranule);
}

TEST_F(VirtualMemoryTest, ContentsStayWhenAHandleMoves) {
  const CUdeviceptr base = reserve(4 * kGranule);
  const auto handle = create(kGranule);
  ASSERT_EQ(vmm.map(base, kGranule, 0, handle), CUDA_SUCCESS);
  ASSERT_EQ(vmm.set_access(base, kGranule, Access::kReadWrite), CUDA_SUCCESS);
  word(base) = 7;
  ASSERT_EQ(vmm.unmap(base, kGranule, freed), CUDA_SUCCESS);
  EXPECT_TRUE(read_faults(base));
  ASSERT_EQ(vmm.map(base + 2 * kGranule, kGranule, 0, handle), CUDA_SUCCESS);
  ASSERT_EQ(vmm.set_access(base + 2 * kGranule, kGranule, Access::kReadWrite), CUDA_SUCCESS);
  EXPECT_EQ(word(base + 2 * kGranule), 7);
  EXPECT_TRUE(freed.empty());
}

TEST_F(VirtualMemoryTest, AccessRightsAreReal) {
  const CUdeviceptr base = reserve(2 * kGranule);
  EXPECT_TRUE(read_faults(base));  // reserved
  const auto handle = create(2 * kGranule);
  ASSERT_EQ(vmm.map(base, 2 * kGranule, 0, handle), CUDA_SUCCESS);
  EXPECT_TRUE(read_faults(base));  // mapped, no access yet
  const auto expect = [&](Access access, bool reads, bool writes) {
    ASSERT_EQ(vmm.set_access(base, 2 * kGranule, access), CUDA_SUCCESS);
    EXPECT_EQ(!read_faults(base + kGranule), reads);
    EXPECT_EQ(!write_faults(base + kGranule), writes);
  };
  expect(Access::kRead, true, false);
  expect(Access::kReadWrite, true, true);
  expect(Access::kNone, false, false);
  expect(Access::kReadWrite, true, true);
}

TEST_F(VirtualMemoryTest, ANewMappingHasNoAccessOfTheOldOne) {
  const CUdeviceptr base = reserve(kGranule);
  const auto handle = create(kGranule);
  ASSERT_EQ(vmm.map(base, kGranule, 0, handle), CUDA_SUCCESS);
  ASSERT_EQ(vmm.set_access(base, kGranule, Access::kReadWrite), CUDA_SUCCESS);
  ASSERT_EQ(vmm.unmap(base, kGranule, freed), CUDA_SUCCESS);
  ASSERT_EQ(vmm.map(base, kGranule, 0, handle), CUDA_SUCCESS);
  EXPECT_TRUE(read_faults(base));
}

TEST_F(VirtualMemoryTest, PhysicalMemoryLivesUntilTheLastMappingAndReference) {
  const CUdeviceptr base = reserve(4 * kGranule);
  const auto handle = create(kGranule);
  ASSERT_EQ(vmm.map(base, kGranule, 0, handle), CUDA_SUCCESS);
  ASSERT_EQ(vmm.map(base + kGranule, kGranule, 0, handle), CUDA_SUCCESS);
  ASSERT_EQ(vmm.release(handle, freed), CUDA_SUCCESS);
  EXPECT_EQ(vmm.release(handle, freed), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(vmm.find_handle(handle), nullptr);
  EXPECT_EQ(vmm.map(base + 2 * kGranule, kGranule, 0, handle), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(memory.held(), kGranule);
  VirtualMemory::HandleId again = 0;
  ASSERT_EQ(vmm.retain(base + 5, &again), CUDA_SUCCESS);
  EXPECT_EQ(again, handle);
  ASSERT_EQ(vmm.unmap(base, 2 * kGranule, freed), CUDA_SUCCESS);
  EXPECT_EQ(memory.held(), kGranule);
  EXPECT_TRUE(freed.empty());
  EXPECT_EQ(counters.totals.bytes_live, kGranule);
  ASSERT_EQ(vmm.release(handle, freed), CUDA_SUCCESS);
  ASSERT_EQ(freed.size(), 1u);
  EXPECT_EQ(freed[0].end - freed[0].begin, kGranule);
  EXPECT_EQ(memory.held(), 0u);
  EXPECT_EQ(counters.totals.bytes_live, 0u);
  EXPECT_EQ(counters.totals.bytes_live_peak, kGranule);
}

TEST_F(VirtualMemoryTest, CapacityIsSharedWithBlocksAndExact) {
  CUdeviceptr block = 0;
  ASSERT_EQ(memory.allocate(ContextId{1}, 3 * kGranule, &block), CUDA_SUCCESS);
  VirtualMemory::HandleId handle = 0;
  EXPECT_EQ(vmm.create(6 * kGranule, {}, &handle), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(vmm.create(5 * kGranule, {}, &handle), CUDA_SUCCESS);
  EXPECT_EQ(vmm.create(kGranule, {}, &handle), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(VirtualMemoryTest, BadReservations) {
  CUdeviceptr base = 0;
  EXPECT_EQ(vmm.reserve(0, 0, 0, &base), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(vmm.reserve(kGranule + 1, 0, 0, &base), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(vmm.reserve(kGranule, 3 << 20, 0, &base), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(vmm.reserve(kGranule, 0, 17, &base), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(vmm.reserve(std::uint64_t{1} << 60, 0, 0, &base), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(vmm.reserve(kGranule, std::uint64_t{1} << 62, 0, &base), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_EQ(vmm.reserve(kGranule, std::uint64_t{1} << 30, 0, &base), CUDA_SUCCESS);
  EXPECT_EQ(base % (std::uint64_t{1} << 30), 0u);
  EXPECT_EQ(vmm.free_reservation(base, 2 * kGranule), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(vmm.free_reservation(base + kGranule, kGranule), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(vmm.free_reservation(base, kGranule), CUDA_SUCCESS);
  EXPECT_EQ(vmm.free_reservation(base, kGranule), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(VirtualMemoryTest, AHintIsTakenWhereItIsFree) {
  const CUdeviceptr first = reserve(kGranule);
  CUdeviceptr next = 0;
  ASSERT_EQ(vmm.reserve(2 * kGranule, 0, first + 16 * kGranule, &next), CUDA_SUCCESS);
  EXPECT_EQ(next, first + 16 * kGranule);
  CUdeviceptr other = 0;
  ASSERT_EQ(vmm.reserve(kGranule, 0, first, &other), CUDA_SUCCESS);  // taken: somewhere else
  EXPECT_NE(other, first);
  ASSERT_EQ(vmm.reserve(kGranule, 0, 0x1000, &other), CUDA_SUCCESS);  // no address of the device
  EXPECT_TRUE(memory.is_tracked(reinterpret_cast<void*>(other)));
}

TEST_F(VirtualMemoryTest, BadMappings) {
  const CUdeviceptr base = reserve(4 * kGranule);
  const auto handle = create(2 * kGranule);
  EXPECT_EQ(vmm.map(base, kGranule, 0, handle), CUDA_ERROR_INVALID_VALUE);                      // not whole
  EXPECT_EQ(vmm.map(base, kGranule, kGranule, handle), CUDA_ERROR_INVALID_VALUE);               // offset
  EXPECT_EQ(vmm.map(base + 4096, 2 * kGranule, 0, handle), CUDA_ERROR_INVALID_VALUE);           // alignment
  EXPECT_EQ(vmm.map(base + 3 * kGranule, 2 * kGranule, 0, handle), CUDA_ERROR_INVALID_VALUE);   // over the end
  EXPECT_EQ(vmm.map(base + 40 * kGranule, 2 * kGranule, 0, handle), CUDA_ERROR_INVALID_VALUE);  // not reserved
  EXPECT_EQ(vmm.map(base, 2 * kGranule, 0, handle + 1), CUDA_ERROR_INVALID_VALUE);              // no such handle
  ASSERT_EQ(vmm.map(base + kGranule, 2 * kGranule, 0, handle), CUDA_SUCCESS);
  for (int granule = 0; granule < 3; ++granule) {
    EXPECT_EQ(vmm.map(base + granule * kGranule, 2 * kGranule, 0, handle), CUDA_ERROR_INVALID_VALUE)
        << granule;  // overlap
  }
  EXPECT_EQ(vmm.unmap(base + kGranule, kGranule, freed), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(vmm.unmap(base + 2 * kGranule, kGranule, freed), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(vmm.unmap(base, 3 * kGranule, freed), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(vmm.unmap(base + kGranule, 3 * kGranule, freed), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(vmm.unmap(base + kGranule, 0, freed), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(vmm.set_access(base, 4 * kGranule, Access::kRead), CUDA_ERROR_INVALID_VALUE);  // not all of it is mapped
  EXPECT_EQ(vmm.free_reservation(base, 4 * kGranule), CUDA_ERROR_INVALID_VALUE);           // still mapped
  EXPECT_EQ(vmm.unmap(base + kGranule, 2 * kGranule, freed), CUDA_SUCCESS);
  EXPECT_EQ(vmm.free_reservation(base, 4 * kGranule), CUDA_SUCCESS);
}

TEST_F(VirtualMemoryTest, ADeviceRangeMayGoOverMappings) {
  const CUdeviceptr base = reserve(3 * kGranule);
  const auto a = create(kGranule), b = create(kGranule);
  ASSERT_EQ(vmm.map(base, kGranule, 0, a), CUDA_SUCCESS);
  ASSERT_EQ(vmm.map(base + kGranule, kGranule, 0, b), CUDA_SUCCESS);
  EXPECT_TRUE(memory.is_device_range(base + 10, 2 * kGranule - 10));
  EXPECT_FALSE(memory.is_device_range(base + 10, 2 * kGranule - 9));
  EXPECT_FALSE(memory.is_device_range(base + 10, UINT64_MAX));
}

}  // namespace
}  // namespace cudasim
