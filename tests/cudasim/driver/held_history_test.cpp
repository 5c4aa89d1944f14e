#include "held_history.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace cudasim {
namespace {

TEST(HeldHistory, BeginsWithOnePieceOfNothing) {
  HeldHistory history;
  ASSERT_EQ(history.peaks(0).size(), 1u);
  EXPECT_EQ(history.peaks(0)[0], 0u);
}

TEST(HeldHistory, WhatIsHeldGoesOnInLaterPieces) {
  HeldHistory history;
  history.note(0, 100);
  history.note(1, 40);
  const auto peaks = history.peaks(3 * HeldHistory::kFirstWidth);
  ASSERT_EQ(peaks.size(), 4u);
  EXPECT_EQ(peaks[0], 100u);
  EXPECT_EQ(peaks[3], 40u);
}

// Against a value per call.
TEST(HeldHistory, AgreesWithTheValuesOfEachCall) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    HeldHistory history;
    std::vector<std::uint64_t> largest(200000, 0);  // per call
    std::uint64_t call = 0;
    std::uint64_t held = 0;
    while (call < 100000) {
      const std::uint64_t next = call + random() % 200;
      for (std::uint64_t i = call + 1; i <= next; ++i) largest[i] = held;
      call = next;
      held = random() % 1000;
      largest[call] = std::max(largest[call], held);
      history.note(call, held);
    }
    const auto peaks = history.peaks(call);
    const std::uint64_t width = history.calls_per_piece();
    ASSERT_EQ(peaks.size(), call / width + 1);
    ASSERT_LE(peaks.size(), HeldHistory::kPieces);
    for (std::size_t piece = 0; piece < peaks.size(); ++piece) {
      const auto begin = largest.begin() + static_cast<std::ptrdiff_t>(piece * width);
      ASSERT_EQ(peaks[piece], *std::max_element(begin, begin + static_cast<std::ptrdiff_t>(width)))
          << "seed " << seed << " piece " << piece;
    }
  }
}

}  // namespace
}  // namespace cudasim
