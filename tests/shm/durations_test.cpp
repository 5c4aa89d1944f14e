#include "shm/durations.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>

namespace memopt::shm {
namespace {

static_assert(parse_duration("500ms", 0) == 500'000'000 && !parse_duration("500", 0));

TEST(Durations, Units) {
  EXPECT_EQ(parse_duration("7ns", 0), 7u);
  EXPECT_EQ(parse_duration("7us", 0), 7'000u);
  EXPECT_EQ(parse_duration("500ms", 0), kOneSecond / 2);
  EXPECT_EQ(parse_duration("60s", 0), 60 * kOneSecond);
  EXPECT_EQ(parse_duration("5min", 0), 300 * kOneSecond);
  EXPECT_EQ(parse_duration("2h", 0), 7200 * kOneSecond);
  EXPECT_EQ(parse_duration("1.5h", 0), 5400 * kOneSecond);
  EXPECT_EQ(parse_duration("0.000001ms", 0), 1u);
  EXPECT_EQ(parse_duration("0s", 0), 0u);
  EXPECT_EQ(parse_duration("1.5ns", 0), 1u);  // down to a whole one
}

TEST(Durations, APlainNumberHasTheUnitOfItsOption) {
  EXPECT_EQ(parse_duration("60", kOneSecond), 60 * kOneSecond);
  EXPECT_EQ(parse_duration("0.05", kOneSecond), kOneSecond / 20);
  EXPECT_EQ(parse_duration("74", 1000), 74'000u);
  EXPECT_FALSE(parse_duration("60", 0));
}

TEST(Durations, NothingElse) {
  for (const char* const text : {"",          " ",   "s",     "ms",   "min",  "5m",         "5M",
                                 "5 s",       " 5s", "5s ",   "-5s",  "+5s",  "1e3s",       "0x5s",
                                 ".5s",       "5.s", "1..5s", "1,5s", "5sec", "5S",         "5minutes",
                                 "5ss",       "5hs", "nan",   "inf",  "infs", "1.0000001s", "18446744073709551616",
                                 "1281024h1s"}) {
    EXPECT_FALSE(parse_duration(text, kOneSecond)) << text;
  }
}

TEST(Durations, TooLongIsRefused) {
  EXPECT_EQ(parse_duration(std::to_string(kMostScaled) + "ns", 0), kMostScaled);
  EXPECT_FALSE(parse_duration(std::to_string(kMostScaled + 1) + "ns", 0));
  EXPECT_TRUE(parse_duration("1281023h", 0));
  EXPECT_FALSE(parse_duration("1281024h", 0));
  for (const char* const text : {"5124095576030431h", "18446744074s", "99999999999999999999999999ns"}) {
    EXPECT_FALSE(parse_duration(text, 0)) << text;
  }
}

// Against another way to the same number.
TEST(Durations, DecimalsAreExact) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 2000; ++i) {
    const DurationUnit& unit = kDurationUnits[random() % kDurationUnits.size()];
    const std::uint64_t millionths = random() % 100'000'000'000;
    const std::string decimals = std::to_string(millionths % 1'000'000);
    const std::string text = std::to_string(millionths / 1'000'000) + "." + std::string(6 - decimals.size(), '0') +
                             decimals + std::string(unit.name);
    const auto expected =
        static_cast<std::uint64_t>(static_cast<unsigned __int128>(unit.nanoseconds) * millionths / 1'000'000);
    EXPECT_EQ(parse_duration(text, 0), expected) << text;
  }
}

}  // namespace
}  // namespace memopt::shm
