#include "memory/physical_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace cudasim {
namespace {

// Bytes of RAM behind the device.
std::uint64_t resident(const PhysicalMemory& memory) {
  struct stat status {};
  EXPECT_EQ(fstat(memory.file(), &status), 0);
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

std::vector<std::byte> contents(const PhysicalMemory& memory, const Extent& extent) {
  std::vector<std::byte> bytes(extent.size);
  EXPECT_EQ(pread(memory.file(), bytes.data(), bytes.size(), static_cast<off_t>(extent.offset)),
            static_cast<ssize_t>(bytes.size()));
  return bytes;
}

TEST(PhysicalMemory, CapacityIsExactAndFragmentsAreNoLoss) {
  PhysicalMemory memory(8 * kGranule, false);
  std::vector<std::vector<Extent>> taken;
  for (int i = 0; i < 8; ++i) {
    taken.push_back(memory.take(kGranule));
    ASSERT_EQ(taken.back().size(), 1u);
  }
  EXPECT_TRUE(memory.take(kGranule).empty());
  EXPECT_EQ(memory.held(), 8 * kGranule);
  for (int i = 0; i < 8; i += 2) memory.give(taken[static_cast<std::size_t>(i)]);
  EXPECT_TRUE(memory.take(5 * kGranule).empty());
  const auto scattered = memory.take(4 * kGranule);
  EXPECT_EQ(scattered.size(), 4u);
  EXPECT_EQ(memory.held(), memory.capacity());
}

TEST(PhysicalMemory, TakenBytesArePoisonWhateverWasThere) {
  PhysicalMemory memory(2 * kGranule, true);
  for (int round = 0; round < 2; ++round) {
    const auto extents = memory.take(kGranule);
    ASSERT_EQ(extents.size(), 1u);
    const auto bytes = contents(memory, extents[0]);
    EXPECT_TRUE(std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == kPoison; })) << round;
    const std::vector<std::byte> other(kGranule, std::byte{1});
    ASSERT_EQ(pwrite(memory.file(), other.data(), other.size(), static_cast<off_t>(extents[0].offset)),
              static_cast<ssize_t>(kGranule));
    memory.give(extents);
  }
}

TEST(PhysicalMemory, RamFollowsWhatIsHeldNotTheCapacity) {
  PhysicalMemory memory(std::uint64_t{1} << 40, true);
  EXPECT_EQ(resident(memory), 0u);
  const auto small = memory.take(3 * kGranule);
  EXPECT_EQ(resident(memory), 3 * kGranule);
  const auto large = memory.take(kIdleKept + kGranule);
  EXPECT_EQ(resident(memory), kIdleKept + 4 * kGranule);
  memory.give(large);  // more than is kept idle
  EXPECT_EQ(memory.resident_idle(), 0u);
  EXPECT_EQ(resident(memory), 3 * kGranule);
  memory.give(small);  // kept: the next take costs no new pages
  EXPECT_EQ(memory.resident_idle(), 3 * kGranule);
  EXPECT_EQ(resident(memory), 3 * kGranule);
  EXPECT_EQ(memory.take(2 * kGranule).size(), 1u);
  EXPECT_EQ(memory.resident_idle(), kGranule);
  EXPECT_EQ(resident(memory), 3 * kGranule);
}

// Asked of it here, by a file of our own.
bool kernel_makes_huge_pages() {
  const int file = memfd_create("huge", MFD_CLOEXEC);
  EXPECT_EQ(ftruncate(file, kGranule), 0);
  void* room = mmap(nullptr, 2 * kGranule, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(room, MAP_FAILED);
  const auto begin = (reinterpret_cast<std::uintptr_t>(room) + kGranule - 1) / kGranule * kGranule;
  auto* const page = static_cast<char*>(
      mmap(reinterpret_cast<void*>(begin), kGranule, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0));
  page[0] = 1;
  const bool made = madvise(page, kGranule, 25 /* MADV_COLLAPSE */) == 0;
  munmap(room, 2 * kGranule);
  close(file);
  return made;
}

TEST(PhysicalMemory, WithoutPoisonTheFirstBytesAreHugePages) {
  if (!kernel_makes_huge_pages()) GTEST_SKIP() << "the kernel makes no huge pages of a memfd (Linux 6.1 does)";
  PhysicalMemory memory(std::uint64_t{1} << 40, false);
  const auto first = memory.take(3 * kGranule);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(memory.in_ram(first[0]), InRam::kYes);
  EXPECT_EQ(resident(memory), 3 * kGranule);
  const auto bytes = contents(memory, first[0]);
  EXPECT_TRUE(std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{0}; }));
  memory.give(first);
  const auto again = memory.take(3 * kGranule);
  EXPECT_EQ(memory.in_ram(again[0]), InRam::kYes) << "it was there before";
  const std::uint64_t before = resident(memory);
  const auto beyond = memory.take(kHugeHeld);
  EXPECT_EQ(memory.in_ram(beyond[0]), InRam::kNo);
  EXPECT_EQ(resident(memory), before);
}

TEST(PhysicalMemory, BeyondTheFirstBytesNothingIsFilled) {
  PhysicalMemory memory(std::uint64_t{1} << 40, true);
  const auto huge = memory.take(kPoisonedHeld + kGranule);
  ASSERT_EQ(huge.size(), 1u);
  EXPECT_EQ(resident(memory), 0u);
  const std::vector<std::byte> old(kGranule, std::byte{1});
  ASSERT_EQ(pwrite(memory.file(), old.data(), old.size(), 0), static_cast<ssize_t>(kGranule));
  memory.give(huge);
  const auto again = memory.take(kPoisonedHeld + kGranule);
  const auto bytes = contents(memory, {again[0].offset, kGranule});
  EXPECT_TRUE(std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{0}; }));
}

}  // namespace
}  // namespace cudasim
