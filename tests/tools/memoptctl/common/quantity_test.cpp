#include "tools/memoptctl/common/quantity.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>

#include "shm/durations.h"
#include "shm/sizes.h"

namespace memopt::tools {
namespace {

TEST(ExactText, LargestWholeUnit) {
  EXPECT_EQ(exact_size(0), "0B");
  EXPECT_EQ(exact_size(1536), "1536B");
  EXPECT_EQ(exact_size(std::uint64_t{8} << 30), "8GiB");
  EXPECT_EQ(exact_size(std::uint64_t{1} << 62), "4194304TiB");
  EXPECT_EQ(exact_duration(0), "0s");
  EXPECT_EQ(exact_duration(50'000'000), "50ms");
  EXPECT_EQ(exact_duration(90 * shm::kOneSecond), "90s");
  EXPECT_EQ(exact_duration(86400 * shm::kOneSecond), "24h");
  EXPECT_EQ(exact_duration(1), "1ns");
}

TEST(ExactText, WhatIsPrintedIsReadAgain) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    // Of all magnitudes, and with many factors of the units.
    const std::uint64_t bytes = (random() >> (2 + random() % 62)) << (random() % 2 == 0 ? 0 : 10 * (random() % 4));
    if (bytes <= shm::kMostScaled) {
      EXPECT_EQ(shm::parse_bytes(exact_size(bytes)), bytes);
    }
    const std::uint64_t factor = shm::kDurationUnits[random() % shm::kDurationUnits.size()].nanoseconds;
    const std::uint64_t time = (random() % (shm::kMostScaled / factor) >> random() % 62) * factor;
    EXPECT_EQ(shm::parse_duration(exact_duration(time), 0), time);
  }
}

}  // namespace
}  // namespace memopt::tools
