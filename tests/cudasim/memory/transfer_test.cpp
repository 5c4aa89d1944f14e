#include "memory/transfer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "config.h"
#include "counters.h"
#include "memory/memory_impl.h"

namespace cudasim {
namespace {

class TransferTest : public ::testing::Test {
 protected:
  static Config config() {
    Config made;
    made.device.capacity = 8 * kGranule;
    return made;
  }
  static std::uintptr_t address(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

  Counters counters;
  Memory memory{config(), counters};
};

TEST_F(TransferTest, PiecesByHand) {
  constexpr std::uint64_t kKiB = 1024;
  EXPECT_EQ(pieces_of(1), 1u);
  EXPECT_EQ(pieces_of(128 * kKiB - 1), 1u);
  EXPECT_EQ(pieces_of(128 * kKiB), 2u);
  EXPECT_EQ(pieces_of(192 * kKiB), 3u);
  EXPECT_EQ(pieces_of(512 * kKiB), 8u);
  EXPECT_EQ(pieces_of(std::uint64_t{1} << 40), 8u);
}

TEST_F(TransferTest, TimesByHand) {
  EXPECT_EQ(transfer_time(0, 8).count(), 0);
  EXPECT_EQ(transfer_time(16, 8).count(), 2);
  EXPECT_EQ(transfer_time(17, 8).count(), 3);
  EXPECT_EQ(transfer_time(1, 1555).count(), 1);
  EXPECT_EQ(transfer_time(100, 0).count(), 0);
}

TEST_F(TransferTest, ExtentsThatDoNotFit) {
  EXPECT_EQ(extent_of({0, 100, 0}, {10, 3, 1}), 210u);
  EXPECT_EQ(extent_of({0, 100, 1000}, {10, 3, 2}), 1210u);
  EXPECT_EQ(extent_of({0, 100, 1000}, {10, 0, 2}), 0u);
  EXPECT_EQ(extent_of({0, UINT64_MAX / 2, 0}, {10, 4, 1}), std::nullopt);
  EXPECT_EQ(extent_of({0, 0, 0}, {UINT64_MAX, 2, 1}), std::nullopt);
  EXPECT_EQ(extent_of({0, 0, UINT64_MAX}, {1, 1, 3}), std::nullopt);
}

TEST_F(TransferTest, AnyNumberOfPiecesCopiesTheSame) {
  const Shape shape{7, 5, 3};
  std::vector<unsigned char> from(10 * 8 * 3);
  std::iota(from.begin(), from.end(), static_cast<unsigned char>(1));
  const Rows source{address(from.data()), 10, 80};
  std::vector<unsigned char> expected(9 * 6 * 3, 0);
  for (std::size_t z = 0; z < 3; ++z) {
    for (std::size_t y = 0; y < 5; ++y) std::memcpy(&expected[z * 54 + y * 9], &from[z * 80 + y * 10], 7);
  }
  for (std::uint32_t count = 1; count <= 8; ++count) {
    std::vector<unsigned char> to(9 * 6 * 3, 0);
    const Rows target{address(to.data()), 9, 54};
    for (std::uint32_t index = 0; index < count; ++index) {
      ASSERT_EQ(copy_piece(memory, target, source, shape, {index, count}, nullptr), Outcome::kDone);
    }
    EXPECT_EQ(to, expected) << count << " pieces";
  }
}

TEST_F(TransferTest, PatternsStayWholeOverPiecesAndRows) {
  const Shape shape{12, 3, 1};
  for (const unsigned size : {1u, 2u, 4u}) {
    const std::uint32_t pattern = 0x01020304;
    for (std::uint32_t count = 1; count <= 8; ++count) {
      std::vector<unsigned char> to(16 * 3, 0xEE);
      AccessLog log;
      for (std::uint32_t index = 0; index < count; ++index) {
        ASSERT_EQ(set_piece(memory, {address(to.data()), 16, 0}, shape, pattern, size, {index, count}, log),
                  Outcome::kDone);
      }
      for (std::size_t y = 0; y < 3; ++y) {
        for (std::size_t x = 0; x < 16; ++x) {
          const unsigned expected = x >= 12 ? 0xEE : (pattern >> (8 * (x % size))) & 0xFF;
          ASSERT_EQ(to[y * 16 + x], expected) << "size " << size << " pieces " << count << " at " << x << ", " << y;
        }
      }
    }
  }
}

TEST_F(TransferTest, LongPatternsAreWholeToo) {
  std::vector<std::uint32_t> to(300000, 0);
  AccessLog log;
  ASSERT_EQ(set_piece(memory, {address(to.data()), 0, 0}, {to.size() * 4, 1, 1}, 0xA1B2C3D4, 4, {0, 1}, log),
            Outcome::kDone);
  EXPECT_EQ(to, std::vector<std::uint32_t>(300000, 0xA1B2C3D4));
}

TEST_F(TransferTest, LogsDeviceBytesOnly) {
  CUdeviceptr block = 0;
  ASSERT_EQ(memory.allocate(ContextId{1}, 100000, &block), CUDA_SUCCESS);
  std::vector<char> host(100000, 1);
  AccessLog log;
  ASSERT_EQ(copy_piece(memory, {block, 0, 0}, {address(host.data()), 0, 0}, {100000, 1, 1}, {1, 2}, &log),
            Outcome::kDone);
  EXPECT_TRUE(log.reads().empty());
  ASSERT_EQ(log.writes().size(), 1u);
  EXPECT_EQ(log.writes()[0].begin, block + 50000);
  EXPECT_EQ(log.writes()[0].end, block + 100000);
}

TEST_F(TransferTest, TellsDeviceFaultsFromHostFaults) {
  CUdeviceptr block = 0;
  ASSERT_EQ(memory.allocate(ContextId{1}, kGranule, &block), CUDA_SUCCESS);
  char host = 0;
  const auto copy = [&](std::uintptr_t to, std::uintptr_t from) {
    return copy_piece(memory, {to, 0, 0}, {from, 0, 0}, {1, 1, 1}, {0, 1}, nullptr);
  };
  EXPECT_EQ(copy(address(&host), block), Outcome::kDone);
  EXPECT_EQ(copy(address(&host), block + kGranule), Outcome::kDeviceFault);
  EXPECT_EQ(copy(block, 8), Outcome::kHostFault);
}

}  // namespace
}  // namespace cudasim
