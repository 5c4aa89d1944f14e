#include "planner/layout/problem/validation.h"

#include <gtest/gtest.h>

#include "tests/planner/layout/brute_force.h"

namespace memopt::layout {
namespace {

using brute_force::random_problem;

// Each buffer at the lowest place that is free.
Solution first_fit(const Problem& problem) {
  Solution solution;
  solution.offsets.resize(problem.buffers.size());
  std::vector<std::size_t> placed;
  const auto place = [&](std::size_t i, std::uint64_t offset) {
    solution.offsets[i] = offset;
    solution.height = std::max(solution.height, offset + problem.buffers[i].bytes);
    placed.push_back(i);
  };
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    if (problem.buffers[i].fixed != kAnywhere) place(i, problem.buffers[i].fixed);
  }
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    if (problem.buffers[i].fixed != kAnywhere) continue;
    std::uint64_t offset = 0;
    while (std::ranges::any_of(
        placed, [&](std::size_t j) { return brute_force::conflict(problem, i, offset, j, solution.offsets[j]); })) {
      offset += problem.buffers[i].alignment;
    }
    place(i, offset);
  }
  return solution;
}

std::uint64_t height_of(const Problem& problem, const std::vector<std::uint64_t>& offsets) {
  std::uint64_t height = 0;
  for (std::size_t i = 0; i < offsets.size(); ++i) height = std::max(height, offsets[i] + problem.buffers[i].bytes);
  return height;
}

TEST(Validation, TakesWhatHolds) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 3000; ++round) {
    const Problem problem = random_problem(random, {.buffers = 40, .bytes = 9, .times = 20});
    ASSERT_EQ(find_fault(problem), std::nullopt) << brute_force::text(problem);
    const Solution solution = first_fit(problem);
    ASSERT_EQ(validate(problem, solution), std::nullopt) << brute_force::text(problem);
  }
}

// Whatever is done to a solution, the validator says what comparing all pairs says.
TEST(Validation, FindsEveryMutationThatHarms) {
  std::mt19937_64 random(2);
  int harmful = 0;
  int harmless = 0;
  for (int round = 0; round < 20000; ++round) {
    const Problem problem = random_problem(random, {.buffers = 30, .bytes = 9, .times = 20});
    Solution solution = first_fit(problem);
    const std::size_t victim = random() % problem.buffers.size();
    switch (random() % 4) {
      case 0:
        solution.offsets[victim] += 1 + random() % 3;
        break;
      case 1:
        solution.offsets[victim] -= std::min(solution.offsets[victim], 1 + random() % 3);
        break;
      case 2:
        std::swap(solution.offsets[victim], solution.offsets[random() % problem.buffers.size()]);
        break;
      default:
        solution.offsets[victim] = random() % (solution.height + 1);
    }
    // Mostly with the height that goes with it, or nearly every mutation would be found by that alone.
    if (random() % 8 != 0) solution.height = height_of(problem, solution.offsets);
    const bool right = brute_force::holds(problem, solution);
    (right ? harmless : harmful) += 1;
    ASSERT_EQ(!validate(problem, solution), right)
        << brute_force::text(problem) << "buffer " << victim << " moved to " << solution.offsets[victim];
  }
  EXPECT_GT(harmful, 1000);
  EXPECT_GT(harmless, 1000);
}

TEST(Validation, HoldsManyBuffersInEveryPosition) {
  // Enough for three layers of the set of live buffers.
  constexpr std::uint64_t kBuffers = 70000;
  Problem problem;
  Solution solution;
  for (std::uint64_t i = 0; i < kBuffers; ++i) {
    problem.add(1, {0, 10});
    solution.offsets.push_back((i * 48271) % kBuffers);
  }
  solution.height = kBuffers;
  EXPECT_EQ(validate(problem, solution), std::nullopt);
  solution.offsets[12345] = solution.offsets[54321];
  EXPECT_NE(validate(problem, solution).value_or("").find("buffer 12345"), std::string::npos);
}

TEST(Validation, NamesWhatIsWrongWithASolution) {
  Problem problem;
  problem.add(4, {0, 5}, 4);
  problem.add(3, {2, 6});
  problem.add(2, {1, 3}, 1, 10);
  const auto fault = [&](std::vector<std::uint64_t> offsets, std::uint64_t height) {
    return validate(problem, {std::move(offsets), height}).value_or("");
  };
  EXPECT_EQ(fault({0, 4, 10}, 12), "");
  EXPECT_EQ(fault({0, 4}, 12), "2 offsets for 3 buffers");
  EXPECT_EQ(fault({0, 2, 10}, 12), "buffer 0 and buffer 1 share the bytes [2, 4) at time 2");
  EXPECT_EQ(fault({2, 6, 10}, 12), "buffer 0 at 2 is not aligned to 4");
  EXPECT_EQ(fault({0, 4, 11}, 13), "buffer 2 is fixed at 10 but was placed at 11");
  EXPECT_EQ(fault({0, 4, 10}, 13), "the height is given as 13 but is 12");
  EXPECT_EQ(fault({0, ~std::uint64_t{0} - 1, 10}, 12), "buffer 1 lies beyond 2^63");
  problem.capacity = 11;
  EXPECT_EQ(fault({0, 4, 10}, 12), "the height 12 is above the capacity 11");
}

TEST(Validation, LetsBuffersShareBytesBetweenTheirIntervals) {
  Problem problem;
  const Interval outer[] = {{0, 2}, {5, 7}};
  problem.add(4, outer);
  problem.add(4, {2, 5});
  EXPECT_EQ(validate(problem, {{0, 0}, 4}), std::nullopt);
  problem.intervals[2].end = 6;
  EXPECT_NE(validate(problem, {{0, 0}, 4}), std::nullopt);
}

TEST(Validation, NamesWhatIsWrongWithAProblem) {
  Problem right;
  right.add(4, {0, 5});
  right.add(3, {5, 6}, 2, 7);
  EXPECT_EQ(find_fault(right), std::nullopt);
  EXPECT_EQ(find_fault({}), std::nullopt);
  const auto fault = [&](auto change) {
    Problem problem = right;
    change(problem);
    return find_fault(problem).value_or("");
  };
  EXPECT_EQ(fault([](Problem& p) { p.buffers[1].bytes = 0; }), "buffer 1 has a size of 0");
  EXPECT_EQ(fault([](Problem& p) { p.buffers[1].alignment = 0; }), "buffer 1 has an alignment of 0");
  EXPECT_EQ(fault([](Problem& p) { p.buffers[1].count = 0; }), "buffer 1 has no interval");
  EXPECT_EQ(fault([](Problem& p) { p.buffers[1].count = 2; }), "buffer 1 names intervals that are not there");
  EXPECT_EQ(fault([](Problem& p) { p.intervals[0].end = 0; }),
            "buffer 0: the interval [0, 0) does not end after its begin");
  EXPECT_EQ(fault([](Problem& p) { p.buffers[0].count = 2; }),
            "buffer 0: the interval [5, 6) does not begin after the end of [0, 5)");
  EXPECT_EQ(fault([](Problem& p) { p.buffers[0].bytes = std::uint64_t{1} << 63; }),
            "buffer 0: size or alignment of 2^63 or more");
  EXPECT_EQ(fault([](Problem& p) { p.buffers[0].bytes = (std::uint64_t{1} << 63) - 2; }),
            "the sizes up to buffer 1, aligned, add up to 2^63 or more");
  EXPECT_EQ(fault([](Problem& p) { p.buffers[1].fixed = (std::uint64_t{1} << 63) - 4; }),
            "the sizes, aligned, and the highest fixed buffer add up to 2^63 or more");
  EXPECT_EQ(fault([](Problem& p) { p.buffers[1].fixed = (std::uint64_t{1} << 63) - 3; }),
            "buffer 1 is fixed beyond 2^63");
  EXPECT_EQ(fault([](Problem& p) { p.start_order = {0, 0}; }), "the start order is not a permutation of the buffers");
  EXPECT_EQ(fault([](Problem& p) { p.start_order = {0}; }), "the start order is not a permutation of the buffers");
  EXPECT_EQ(fault([](Problem& p) {
              p.intervals[0].end = 6;
              p.buffers[0].fixed = 9;
            }),
            "fixed: buffer 1 and buffer 0 share the bytes [9, 10) at time 5");
}

TEST(Validation, BoundsByLoadAndByFixedBuffers) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 3000; ++round) {
    Problem problem = random_problem(random, {.buffers = 40, .bytes = 9, .times = 20});
    std::uint64_t bound = brute_force::peak_load(problem);
    for (const Buffer& buffer : problem.buffers) {
      if (buffer.fixed != kAnywhere) bound = std::max(bound, buffer.fixed + buffer.bytes);
    }
    ASSERT_EQ(load_bound(problem), bound) << brute_force::text(problem);
  }
  EXPECT_EQ(load_bound({}), 0U);
}

}  // namespace
}  // namespace memopt::layout
