#include "planner/swap/model/liveness.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "planner/swap/simulation/verify.h"

namespace memopt::swap {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

// Two persistent blocks of 64 MiB and one that a launch of 100 ms names with both of them, though it could be copied
// out and in meanwhile. Each is named at the launch's beginning and at its end, the last one while it takes time.
Problem one_long_launch(bool together) {
  Problem problem;
  problem.blocks = {{1, 64 * kMiB, true}, {2, 64 * kMiB, true}, {3, 64 * kMiB, true}};
  problem.operations = {
      {Kind::kRead, 0, 0},
      {Kind::kWrite, 1, 0, 0, 0, together},
      {Kind::kRead, 2, 0, 0, 0, together},
      {Kind::kRead, 0, 100e6, 0, 0, together},
      {Kind::kWrite, 1, 100e6, 0, 0, together},
      {Kind::kNothing, kNoBlock, 100e6},
  };
  problem.period = 101e6;
  problem.machine = {13, 12, 0, 0};
  return problem;
}

std::vector<std::uint64_t> positions(const Liveness& liveness, std::uint32_t block) {
  std::vector<std::uint64_t> result;
  for (const Access& access : liveness.accesses_of(block)) result.push_back(access.position);
  return result;
}

TEST(LivenessTest, ALaunchAccessesAllItsBlocksWhileItTakesTime) {
  const Liveness liveness = find_liveness(one_long_launch(true));
  EXPECT_EQ(positions(liveness, 0), (std::vector<std::uint64_t>{0, 2, 3}));
  EXPECT_EQ(positions(liveness, 1), (std::vector<std::uint64_t>{1, 2, 4}));
  EXPECT_EQ(positions(liveness, 2), (std::vector<std::uint64_t>{2}));
  EXPECT_FALSE(liveness.accesses_of(0)[1].write);
  EXPECT_TRUE(liveness.accesses_of(1)[1].write);
  const Liveness alone = find_liveness(one_long_launch(false));
  EXPECT_EQ(positions(alone, 0), (std::vector<std::uint64_t>{0, 3}));
  EXPECT_EQ(positions(alone, 1), (std::vector<std::uint64_t>{1, 4}));
}

TEST(LivenessTest, ABlockNamedTwiceIsAccessedOnceAndWrittenIfOneWrites) {
  Problem problem = one_long_launch(true);
  problem.operations[1] = {Kind::kWrite, 0, 0, 0, 0, true};
  const Liveness liveness = find_liveness(problem);
  EXPECT_EQ(positions(liveness, 0), (std::vector<std::uint64_t>{0, 1, 2, 3}));
  EXPECT_TRUE(liveness.accesses_of(0)[2].write);
}

TEST(LivenessTest, ThoseOfAnEarlierIterationKeepTheirAge) {
  Problem problem = one_long_launch(true);
  problem.blocks[0].persistent = false;
  const std::uint64_t n = problem.operations.size() + 2;
  problem.operations[0].age = problem.operations[3].age = 1;
  problem.operations.insert(problem.operations.end() - 1, {Kind::kFree, 0, 100e6, 1});
  problem.operations.push_back({Kind::kMalloc, 0, 100e6});
  const Liveness liveness = find_liveness(problem);
  EXPECT_EQ(positions(liveness, 0), (std::vector<std::uint64_t>{n, n + 2, n + 3}));
}

TEST(LivenessTest, NoBlockLeavesDuringItsLaunch) {
  Decisions decisions;
  decisions.swaps = {{0, 0, 2, 3}};
  decisions.places = {{{0}, true}, {{64 * kMiB}}, {{128 * kMiB}}};
  const Report apart = verify(one_long_launch(false), decisions);
  EXPECT_FALSE(apart.fault.has_value()) << *apart.fault;
  const Report together = verify(one_long_launch(true), decisions);
  ASSERT_TRUE(together.fault.has_value());
  EXPECT_NE(together.fault->find("is accessed by operation 2 while it is out"), std::string::npos) << *together.fault;
}

}  // namespace
}  // namespace memopt::swap
