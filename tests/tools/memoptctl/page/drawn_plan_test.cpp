#include "tools/memoptctl/page/drawn_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "planner/swap/files/plan_file.h"
#include "planner/swap/model/liveness.h"
#include "planner/swap/simulation/verify.h"

namespace memopt::tools {
namespace {

// Block 5 leaves its 2 MiB to block 9; weights lie above. `rate`: of both engines, bytes a nanosecond.
std::string shared(double rate) {
  return R"({"format": "memopt-plan-1", "name": "two", "period": 100000,
             "machine": {"out_bytes_per_ns": )" +
         std::to_string(rate) + R"(, "in_bytes_per_ns": )" + std::to_string(rate) +
         R"(}, "blocks": [{"id": 5, "size": 2097152, "offset": 0, "window": "own"},
                          {"id": 9, "size": 2097152, "offset": 0},
                          {"id": 1, "size": 2097152, "offset": 2097152, "persistent": true}],
             "ops": [["m", 5, 0], ["w", 5, 1000], ["x", -1, 2000], ["m", 9, 40000], ["w", 9, 41000], ["f", 9, 50000],
                     ["x", -1, 51000], ["r", 5, 90000], ["f", 5, 91000]],
             "swaps": [{"block": 5, "out_after": 1, "in_after": 5, "need": 7}]})";
}

DrawnPlan drawn(const std::string& text) {
  const swap::PlanFile file = swap::parse_plan(text);
  const swap::Report report = swap::verify(file.problem, file.decisions);
  EXPECT_FALSE(report.fault.has_value()) << *report.fault;
  return draw(file.problem, swap::find_liveness(file.problem), file.decisions);
}

// Block, phase, offset, from and to in tenths of a microsecond.
using Line = std::vector<long>;
std::vector<Line> lines(const DrawnPlan& plan) {
  std::vector<Line> result;
  for (const DrawnBlock& one : plan.blocks) {
    result.push_back({static_cast<long>(one.block), static_cast<long>(one.phase), static_cast<long>(one.offset),
                      std::lround(one.from / 100), std::lround(one.to / 100)});
  }
  std::sort(result.begin(), result.end());
  return result;
}

TEST(DrawnPlan, EachStayAndEachCopyHasItsTime) {
  const DrawnPlan plan = drawn(shared(200));
  constexpr long kMade = static_cast<long>(Phase::kThere), kIn = static_cast<long>(Phase::kCopiedIn),
                 kOut = static_cast<long>(Phase::kCopiedOut);
  // A copy takes 10.5 us; the last operation lasts until the end.
  EXPECT_EQ(lines(plan), (std::vector<Line>{{0, kMade, 0, 0, 20},
                                            {0, kMade, 0, 615, 1000},
                                            {0, kIn, 0, 510, 615},
                                            {0, kOut, 0, 20, 125},
                                            {1, kMade, 0, 400, 510},
                                            {2, kMade, 2097152, 0, 1000}}));
  ASSERT_EQ(plan.copies.size(), 2u);
  EXPECT_FALSE(plan.copies[0].in);
  EXPECT_TRUE(plan.copies[1].in);
  EXPECT_NEAR(plan.copies[1].from, 51000, 1);
  EXPECT_TRUE(plan.waits.empty());
  EXPECT_DOUBLE_EQ(plan.length, 100000);
}

TEST(DrawnPlan, WaitsMakeTheIterationLonger) {
  // A copy takes 52.43 us: the allocation waits for that out, the access for that in.
  const DrawnPlan plan = drawn(shared(40));
  ASSERT_EQ(plan.waits.size(), 2u);
  EXPECT_NEAR(plan.waits[0].to - plan.waits[0].from, 14429, 1);
  EXPECT_NEAR(plan.waits[1].to - plan.waits[1].from, 13429, 1);
  EXPECT_NEAR(plan.length, 100000 + 14429 + 13429, 2);
  EXPECT_NEAR(plan.waits[0].unplanned, 40000, 1e-6);
  EXPECT_NEAR(plan.waits[1].unplanned, 90000, 1e-6);
  const std::vector<Line> all = lines(plan);
  EXPECT_NE(std::find(all.begin(), all.end(), Line{1, 0, 0, 544, 654}), all.end());
}

TEST(DrawnPlan, PlacesInTurn) {
  // Lives until the next iteration: two places, of which each is used until its free has ended.
  const DrawnPlan plan = drawn(R"({"format": "memopt-plan-1", "period": 40000,
      "machine": {"out_bytes_per_ns": 1, "in_bytes_per_ns": 1},
      "blocks": [{"id": 3, "size": 1048576, "offset": [0, 1048576]}],
      "ops": [["x", -1, 0], ["m", 3, 10000], ["w", 3, 11000], ["f", 3, 20000, 1]]})");
  EXPECT_EQ(plan.rounds, 2u);
  const std::vector<Line> all = lines(plan);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_NE(all[0][2], all[1][2]);
  for (const Line& line : all) {
    EXPECT_TRUE((line[3] == 0 && line[4] == 400) || (line[3] == 100 && line[4] == 400)) << line[3] << ' ' << line[4];
  }
}

TEST(DrawnPlan, AnIterationOfNoLength) {
  const DrawnPlan plan = drawn(R"({"format": "memopt-plan-1", "period": 0,
      "machine": {"out_bytes_per_ns": 1, "in_bytes_per_ns": 1}, "blocks": [], "ops": [["x", -1, 0]]})");
  EXPECT_EQ(plan.length, 0);
  EXPECT_TRUE(plan.blocks.empty());
}

}  // namespace
}  // namespace memopt::tools
