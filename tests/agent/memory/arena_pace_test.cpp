// Which plans with swaps are left for being slower than on demand.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "agent/link/link.h"
#include "agent/memory/arena_state.h"
#include "agent/recording/device_times.h"
#include "tests/agent/memory/plans_of_the_arena.h"

namespace memopt::agent {
namespace {

// A plan that is to be faster than on demand, where an iteration took 1 ms.
class PlansWithAPace : public PlansOfTheArena {
 protected:
  static constexpr std::uint64_t kGeneration = 1000;  // other tests' are smaller

  void SetUp() override {
    PlansOfTheArena::SetUp();
    start_device_times(1);
    iterate();
    EXPECT_EQ(arena_set_limit("64MiB").error, "");
    send(kGeneration, kBlock);
    arena()->next->otherwise_ns = 1'000'000;
    arena()->next->expected_ns = 500'000;
    iterate_with_work(2);
    ASSERT_NE(arena()->plan, nullptr) << status().note;
  }
  void TearDown() override {
    EXPECT_EQ(arena_set_limit("none").error, "");
    start_device_times(0);
    g_elapsed = 0;
  }
  static void iterate_with_work(int times) {
    for (int i = 0; i < times; ++i) {
      const CUdeviceptr block = allocate(kBlock);
      leave_mark_if_due({reinterpret_cast<CUstream>(0x100), false});
      free(block);
    }
  }
  // Until the plan is left, and how many that were.
  static int iterate_until_left() {
    int iterations = 0;
    for (; arena()->plan != nullptr && iterations < 200; ++iterations) iterate_with_work(1);
    return iterations;
  }
};

TEST_F(PlansWithAPace, OneThatIsNotSlowerIsFollowed) {
  g_elapsed = 8 * 1.05F;
  EXPECT_EQ(iterate_until_left(), 200);
  g_elapsed = 0;  // what is not known is no reason
  EXPECT_EQ(iterate_until_left(), 200);
}

// Then it begins anew; once, where that changes nothing.
TEST_F(PlansWithAPace, OneThatIsMuchSlowerThanExpectedIsLeftIfThereAreReturnsOffThePlan) {
  g_elapsed = 8 * 0.9F;
  EXPECT_EQ(iterate_until_left(), 200);
  const auto iterate_off = [] {
    int iterations = 0;
    for (; arena()->plan != nullptr && iterations < 200; ++iterations) {
      ++arena()->planned_swaps.unplanned_returns;
      iterate_with_work(1);
    }
    return iterations;
  };
  EXPECT_LT(iterate_off(), 50);
  iterate_with_work(100);
  ASSERT_NE(arena()->plan, nullptr) << status().note;
  EXPECT_EQ(iterate_off(), 200);
}

TEST_F(PlansWithAPace, OneThatIsSlowerIsLeftForGood) {
  g_elapsed = 8 * 2;
  EXPECT_LT(iterate_until_left(), 50);
  EXPECT_NE(status().note.find("tried again"), std::string::npos) << status().note;
  EXPECT_NE(link_control()->refused_generation.load(), kGeneration) << "that is not known yet";
  g_elapsed = 8 * 1;
  iterate_with_work(100);
  EXPECT_EQ(arena()->plan, nullptr);
  EXPECT_EQ(arena()->next, nullptr);
  EXPECT_EQ(link_control()->refused_generation.load(), kGeneration);
  EXPECT_NE(status().note.find("it was slower than swaps on demand are"), std::string::npos) << status().note;
}

TEST_F(PlansWithAPace, OneThatIsNoSlowerThanOnDemandIsNowIsTakenUpAgain) {
  g_elapsed = 8 * 2;
  EXPECT_LT(iterate_until_left(), 50);
  iterate_with_work(100);
  ASSERT_NE(arena()->plan, nullptr) << status().note;
  EXPECT_EQ(arena()->plan->generation, kGeneration);
  EXPECT_EQ(arena()->plan->otherwise_ns, 2'000'000u);
  EXPECT_EQ(iterate_until_left(), 200);
}

// The iteration in which the program leaves it has more in it than the plan.
TEST_F(PlansWithAPace, WhereTheProgramLeavesItThatIsNotTheTimeOfThePlan) {
  g_elapsed = 8 * 2;
  for (int i = 0; i < 60; ++i) {
    iterate_with_work(4);
    free(allocate(kOther));
  }
  EXPECT_NE(arena()->plan, nullptr);
}

TEST_F(PlansWithAPace, AnotherPlanThatComesEndsTheTrial) {
  g_elapsed = 8 * 2;
  EXPECT_LT(iterate_until_left(), 50);
  start_recording(false);
  send(kGeneration + 1, kBlock);
  iterate_with_work(100);
  ASSERT_NE(arena()->plan, nullptr) << status().note;
  EXPECT_EQ(arena()->plan->generation, kGeneration + 1);
}

}  // namespace
}  // namespace memopt::agent
