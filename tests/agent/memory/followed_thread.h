// A plan of one lane, and a thread that follows one.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <vector>

#include "agent/memory/follower.h"

namespace memopt::agent {

inline constexpr std::uint64_t kCaller = 0x1000;

// A plan of one lane; each malloc has one place, but for those of size 0 mod 7, which are not planned.
inline FollowedPlan plan_of(const std::vector<std::uint64_t>& sizes, std::uint32_t match) {
  Plan plan;
  plan.generation = 1;
  for (const std::uint64_t size : sizes) {
    plan.mallocs.push_back({size, kCaller, plan.places.size(), 1, 0, 1});
    plan.places.push_back({plan.places.size() * 512, 512});
  }
  plan.lanes.push_back({0, match, std::span(plan.mallocs)});
  return FollowedPlan(plan);
}

struct Thread {
  explicit Thread(FollowedPlan& plan) {
    at.plan = plan.generation;
    at.lane = plan.find_lane(0);
  }
  Step malloc(std::uint64_t size, std::uint64_t caller = kCaller) {
    expected = nullptr;
    if (at.lane->is_told) find_round(at, queued);
    return expect(at, size, caller, &expected);
  }
  std::uint32_t queued = 0;  // operations
  LanePosition at;
  FollowedMalloc* expected = nullptr;
};

// What is made, and which malloc of the plan each is taken for; -1: none.
inline void expect_followed(FollowedPlan& plan, Thread& thread, const std::vector<std::uint64_t>& made,
                            const std::vector<int>& as) {
  ASSERT_EQ(made.size(), as.size());
  const std::vector<FollowedMalloc>& mallocs = plan.find_lane(0)->mallocs;
  for (std::size_t i = 0; i < made.size(); ++i) {
    thread.malloc(made[i]);
    const int got = thread.expected == nullptr ? -1 : static_cast<int>(thread.expected - mallocs.data());
    EXPECT_EQ(got, as[i]) << "malloc " << i << " of " << made[i] << " bytes";
  }
}

}  // namespace memopt::agent
