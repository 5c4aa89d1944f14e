// Access logs against a map of bytes.
#include "access_log.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

namespace cudasim {

bool operator==(const AddressRange& a, const AddressRange& b) { return a.begin == b.begin && a.end == b.end; }

void PrintTo(const AddressRange& range, std::ostream* out) { *out << "[" << range.begin << ", " << range.end << ")"; }

namespace {

std::vector<AddressRange> ranges_of(const std::set<std::uintptr_t>& bytes) {
  std::vector<AddressRange> out;
  for (const std::uintptr_t byte : bytes) {
    if (!out.empty() && out.back().end == byte) {
      ++out.back().end;
    } else {
      out.push_back({byte, byte + 1});
    }
  }
  return out;
}

void insert(std::set<std::uintptr_t>& bytes, std::uintptr_t address, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) bytes.insert(bytes.end(), address + i);
}

TEST(AccessLog, EmptyAtFirst) {
  AccessLog log;
  EXPECT_TRUE(log.empty());
  EXPECT_TRUE(log.reads().empty());
  EXPECT_TRUE(log.writes().empty());
  log.read(0x1000, 0);
  EXPECT_TRUE(log.reads().empty());
}

TEST(AccessLog, MergesNeighboursAndOverlaps) {
  AccessLog log;
  for (std::uintptr_t at = 0x1ff0; at < 0x2010; at += 4) log.write(at, 4);  // across pages
  log.write(0x3000, 1 << 20);
  log.write(0x3000 + (1 << 20), 8);
  log.write(0x2ffc, 4);
  EXPECT_EQ(log.writes(), (std::vector<AddressRange>{{0x1ff0, 0x2010}, {0x2ffc, 0x3008 + (1 << 20)}}));
  EXPECT_TRUE(log.reads().empty());
  EXPECT_FALSE(log.empty());
}

TEST(AccessLog, WordsOfSixtyFourBytes) {
  AccessLog log;
  log.read(0x1000, 64);
  log.read(0x1080, 63);
  log.read(0x1101, 63);
  log.read(0x113f, 2);
  EXPECT_EQ(log.reads(), (std::vector<AddressRange>{{0x1000, 0x1040}, {0x1080, 0x10bf}, {0x1101, 0x1141}}));
}

TEST(AccessLog, AgreesWithAMapOfBytes) {
  std::mt19937_64 random(1);
  AccessLog log;  // one for all rounds: clear() must leave nothing behind
  for (int round = 0; round < 200; ++round) {
    std::set<std::uintptr_t> read, written;
    const std::uintptr_t base = 0x7000'0000'0000 + (random() % 64) * 4096;
    // Sizes around every border: of words of bits, of pages, of what is kept as a range.
    constexpr std::size_t kSizes[] = {0,   1,    2,    4,    8,    16,   31,   63,   64,  65,
                                      128, 1000, 1023, 1024, 1025, 4095, 4096, 4097, 9000};
    const int accesses = int(random() % 200);
    for (int i = 0; i < accesses; ++i) {
      const bool small = random() % 8 != 0;
      const std::size_t size = small ? 1 + random() % 16 : kSizes[random() % std::size(kSizes)];
      const std::uintptr_t address = base + random() % (round % 2 == 0 ? 3000 : 40 * 4096);
      if (random() % 2 == 0) {
        log.read(address, size);
        insert(read, address, size);
      } else {
        log.write(address, size);
        insert(written, address, size);
      }
    }
    ASSERT_EQ(log.reads(), ranges_of(read)) << "round " << round;
    ASSERT_EQ(log.writes(), ranges_of(written)) << "round " << round;
    log.clear();
    ASSERT_TRUE(log.empty());
    ASSERT_TRUE(log.reads().empty());
  }
}

TEST(AccessLog, ManyScatteredLargeRangesStayFew) {
  AccessLog log;
  for (int round = 0; round < 3; ++round) {
    for (std::uintptr_t i = 0; i < 40'000; ++i) log.write(0x10'0000 + (i * 7919 % 40'000) * 2048, 2048);
  }
  EXPECT_EQ(log.writes(), (std::vector<AddressRange>{{0x10'0000, 0x10'0000 + 40'000 * 2048}}));
}

TEST(AccessLog, CurrentOneIsTheInnermost) {
  EXPECT_EQ(current_access_log(), nullptr);
  AccessLog outer, inner;
  {
    const CurrentAccessLog a(outer);
    {
      const CurrentAccessLog b(inner);
      EXPECT_EQ(current_access_log(), &inner);
    }
    EXPECT_EQ(current_access_log(), &outer);
  }
  EXPECT_EQ(current_access_log(), nullptr);
}

}  // namespace
}  // namespace cudasim
