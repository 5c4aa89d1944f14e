#include "agent/status/physical_memory.h"

#include <gtest/gtest.h>

namespace memopt::agent {
namespace {

using shm::Bytes;

class PhysicalMemoryTest : public testing::Test {
 protected:
  std::uint64_t live() const { return gauge_.read().live.value(); }

  MemoryGauge gauge_;
  PhysicalMemory memory_{gauge_};
};

TEST_F(PhysicalMemoryTest, ReleasedButMappedMemoryIsLive) {
  memory_.created(7, Bytes(4096));
  memory_.mapped(0x10000, Bytes(4096), 7);
  memory_.release(7);
  EXPECT_EQ(live(), 4096u);
  memory_.unmap(0x10000, Bytes(4096));
  EXPECT_EQ(live(), 0u);
}

TEST_F(PhysicalMemoryTest, AHandleValueMayComeBackWhileItsOldMemoryIsMapped) {
  memory_.created(7, Bytes(100));
  memory_.mapped(0x10000, Bytes(100), 7);
  memory_.release(7);
  memory_.created(7, Bytes(200));
  EXPECT_EQ(live(), 300u);
  memory_.unmap(0x10000, Bytes(100));
  EXPECT_EQ(live(), 200u);
  memory_.release(7);
  EXPECT_EQ(live(), 0u);
}

TEST_F(PhysicalMemoryTest, OneUnmapTakesSeveralMappingsAndCanBeUndone) {
  memory_.created(1, Bytes(100));
  memory_.created(2, Bytes(100));
  memory_.mapped(1000, Bytes(100), 1);
  memory_.mapped(1100, Bytes(100), 2);
  memory_.mapped(1200, Bytes(100), 2);
  memory_.release(1);
  memory_.release(2);
  const auto undo = memory_.unmap(1000, Bytes(200));
  EXPECT_EQ(undo.size(), 2u);
  EXPECT_EQ(live(), 100u);
  memory_.undo_unmap(undo);
  EXPECT_EQ(live(), 200u);
  memory_.unmap(1000, Bytes(300));
  EXPECT_EQ(live(), 0u);
}

TEST_F(PhysicalMemoryTest, RetainingGivesAnotherReference) {
  memory_.created(1, Bytes(100));
  memory_.mapped(1000, Bytes(100), 1);
  memory_.retained(9, 1050);
  memory_.release(1);
  memory_.unmap(1000, Bytes(100));
  EXPECT_EQ(live(), 100u);
  memory_.release(9);
  EXPECT_EQ(live(), 0u);
}

TEST_F(PhysicalMemoryTest, ARefusedReleaseIsTakenBack) {
  memory_.created(1, Bytes(100));
  const auto release = memory_.release(1);
  EXPECT_EQ(live(), 0u);
  memory_.undo_release(release);
  EXPECT_EQ(live(), 100u);
  memory_.release(1);
  EXPECT_EQ(live(), 0u);
}

TEST_F(PhysicalMemoryTest, UnknownHandlesAndAddressesAreNoError) {
  EXPECT_FALSE(memory_.release(5).known);
  memory_.undo_release(memory_.release(5));
  memory_.mapped(1000, Bytes(100), 5);
  memory_.retained(6, 1000);
  EXPECT_TRUE(memory_.unmap(0, Bytes(~0ull)).empty());
  EXPECT_EQ(live(), 0u);
}

}  // namespace
}  // namespace memopt::agent
