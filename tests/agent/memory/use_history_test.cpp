#include "agent/memory/use_history.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace memopt::agent {
namespace {

UseHistory history_of(const std::vector<std::uint64_t>& distances, bool was_away = false) {
  UseHistory history;
  for (const std::uint64_t distance : distances) history.note(distance, was_away);
  return history;
}

TEST(UseHistory, ALoopIsKnownAfterTwoRounds) {
  EXPECT_EQ(UseHistory().next(), 0u);
  EXPECT_EQ(history_of({16}).next(), 0u);
  EXPECT_EQ(history_of({16, 16}).next(), 16u);
  // Operations that begin again are counted twice.
  EXPECT_EQ(history_of({32, 31}).next(), 31u);
  EXPECT_EQ(history_of({16, 40}).next(), 0u);
  EXPECT_EQ(history_of({16, 16, 40}).next(), 0u);
}

TEST(UseHistory, TheLongestEarlierPlaceSaysWhatComes) {
  // Used in a row, then not for long.
  const std::vector<std::uint64_t> row = {1, 1, 1, 90};
  std::vector<std::uint64_t> seen;
  for (int round = 0; round < 2; ++round) seen.insert(seen.end(), row.begin(), row.end());
  for (int round = 0; round < 20; ++round) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      EXPECT_EQ(history_of(seen).next(), row[i]) << round << ", " << i;
      seen.push_back(row[i]);
    }
  }
}

// As long as it keeps to a period of which the ring has one and a half.
TEST(UseHistory, AnyPeriodThatFitsIsFollowed) {
  std::mt19937 random(5);
  for (int time = 0; time < 200; ++time) {
    std::vector<std::uint64_t> period(1 + random() % 8);
    for (std::size_t i = 0; i < period.size(); ++i) period[i] = (std::uint64_t{20} << (2 * i)) + i;
    UseHistory history;
    for (std::size_t k = 0; k < 64; ++k) {
      if (k >= 2 * period.size()) {
        EXPECT_EQ(history.next(), period[k % period.size()]) << time << ", " << k;
      }
      history.note(period[k % period.size()], random() % 2 == 0);
    }
  }
}

TEST(UseHistory, WhatCameBackFarTooEarlyIsNotReliedUpon) {
  UseHistory history = history_of({100, 100, 100});
  EXPECT_EQ(history.next(), 100u);
  // It had not left for that: what comes then is not known, but what was is.
  history.note(20, false);
  EXPECT_EQ(history.next(), 0u);
  history.note(100, false);
  EXPECT_NE(history.next(), 0u);
  history = history_of({100, 100, 100});
  EXPECT_EQ(history.next(), 100u);
  history.note(20, true);
  history.note(100, false);
  EXPECT_EQ(history.next(), 0u);
  // Where nothing was expected, nothing was wrong.
  UseHistory unknown = history_of({100});
  EXPECT_EQ(unknown.next(), 0u);
  unknown.note(100, true);
  EXPECT_EQ(unknown.next(), 100u);
}

TEST(UseHistory, TheOrderOfLeaving) {
  UseHistory loop = history_of({16, 16});
  EXPECT_EQ(loop.until_next(1), 15u);
  EXPECT_EQ(loop.until_next(16), 0u);
  EXPECT_EQ(loop.until_next(17), 0u);
  // Overdue: as what nothing is known of.
  EXPECT_EQ(loop.until_next(40), 40u);
  EXPECT_EQ(UseHistory().until_next(40), 40u);
  loop.clear();
  EXPECT_EQ(loop.until_next(1), 1u);
  EXPECT_EQ(history_of({std::uint64_t{1} << 40, std::uint64_t{1} << 40}).until_next(0), 0xffff'fff0u);
}

}  // namespace
}  // namespace memopt::agent
