#include "planner/layout/local_search/insertion.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "planner/layout/problem/validation.h"
#include "tests/planner/layout/brute_force.h"

namespace memopt::layout {
namespace {

constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

struct Setting {
  explicit Setting(const Problem& made, std::span<const std::uint64_t> places)
      : problem(made), sections(problem), kept(kept_places(problem, sections, places)) {}

  const Problem problem;
  const Sections sections;
  const KeptPlaces kept;
  const Deadline deadline{Limits{}};
  Allowance allowance{deadline};
};

// Many buffers one after the other, each at its former offset or anywhere, on problems with all extensions.
TEST(Insertion, GivesAValidSolution) {
  std::mt19937_64 random(1);
  int pushed = 0;
  for (int round = 0; round < 4000; ++round) {
    const Problem problem =
        brute_force::random_problem(random, {.buffers = 2 + random() % 30, .bytes = 9, .times = 5 + random() % 20});
    std::vector<std::uint64_t> places(problem.buffers.size());
    for (std::uint64_t& place : places) place = random() % 3 == 0 ? kAnywhere : random() % 60;
    Setting setting(problem, places);
    Insertion insertion(setting.problem, setting.sections, setting.kept);
    const std::uint64_t goal = random() % 80;
    for (std::uint32_t i = 0; i < problem.buffers.size(); ++i) {
      if (setting.kept.offsets[i] != kAnywhere) continue;
      ASSERT_TRUE(insertion.insert(i, places[i], goal, goal + random() % 9, setting.allowance));
    }
    const Solution solution{insertion.offsets(), insertion.height()};
    ASSERT_EQ(validate(problem, solution), std::nullopt) << brute_force::text(problem);
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (setting.kept.offsets[i] == kAnywhere) continue;
      ASSERT_GE(solution.offsets[i], setting.kept.offsets[i]);  // none moves down
      pushed += solution.offsets[i] != setting.kept.offsets[i];
    }
  }
  EXPECT_GT(pushed, 1000);
}

TEST(Insertion, TakesTheSmallestHoleThatIsLargeEnough) {
  Problem problem;
  problem.add(4, {0, 9}, 1, 5);
  problem.add(4, {0, 9}, 1, 12);
  problem.add(3, {2, 4});
  Setting setting(problem, {});
  Insertion insertion(setting.problem, setting.sections, setting.kept);
  ASSERT_TRUE(insertion.insert(2, kAnywhere, kNever, kNever, setting.allowance));
  EXPECT_EQ(insertion.offsets(), (std::vector<std::uint64_t>{5, 12, 9}));
}

// The second and third move by three bytes, the last only by two: below it was a hole of one.
TEST(Insertion, PushesUntilHolesAbsorbIt) {
  Problem problem;
  problem.add(8, {0, 9});
  problem.add(5, {0, 9});
  problem.add(4, {0, 4});
  problem.add(6, {2, 9});
  const std::uint64_t places[] = {kAnywhere, 5, 10, 15};
  Setting setting(problem, places);
  Insertion insertion(setting.problem, setting.sections, setting.kept);
  ASSERT_TRUE(insertion.insert(0, 0, 22, 23, setting.allowance));
  EXPECT_EQ(insertion.offsets(), (std::vector<std::uint64_t>{0, 8, 13, 17}));
  EXPECT_EQ(insertion.height(), 23U);
}

TEST(Insertion, PushesNothingFixed) {
  Problem problem;
  problem.add(8, {0, 9});
  problem.add(5, {0, 9}, 1, 5);
  const std::uint64_t places[] = {kAnywhere, 5};
  Setting setting(problem, places);
  Insertion insertion(setting.problem, setting.sections, setting.kept);
  ASSERT_TRUE(insertion.insert(0, 0, 10, 10, setting.allowance));
  EXPECT_EQ(insertion.offsets(), (std::vector<std::uint64_t>{10, 5}));
}

TEST(Insertion, EndsWithTheAllowance) {
  Problem problem;
  for (std::uint64_t i = 0; i < 50; ++i) problem.add(2, {0, 1 + i});
  Setting setting(problem, {});
  Insertion insertion(setting.problem, setting.sections, setting.kept);
  Allowance none(setting.deadline, 0);
  EXPECT_FALSE(insertion.insert(0, kAnywhere, 10, 10, none));
}

}  // namespace
}  // namespace memopt::layout
