#include "planner/swap/files/plan_plot.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "planner/swap/files/plan_file.h"
#include "planner/swap/simulation/verify.h"

namespace memopt::swap {
namespace {

std::size_t count(const std::string& text, std::string_view what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

// Block 5 leaves its 2 MiB to block 9; weights lie above. `rate`: of both engines, bytes a nanosecond.
std::string shared(double rate, const std::string& limit = "null") {
  return R"({"format": "memopt-plan-1", "name": "<two>", "period": 100000, "limit": )" + limit +
         R"(, "machine": {"out_bytes_per_ns": )" + std::to_string(rate) + R"(, "in_bytes_per_ns": )" +
         std::to_string(rate) +
         R"(}, "blocks": [{"id": 5, "size": 2097152, "offset": 0, "window": "own", "name": "a&b"},
                          {"id": 9, "size": 2097152, "offset": 0},
                          {"id": 1, "size": 2097152, "offset": 2097152, "persistent": true}],
             "ops": [["m", 5, 0], ["w", 5, 1000], ["x", -1, 2000], ["m", 9, 40000], ["w", 9, 41000], ["f", 9, 50000],
                     ["x", -1, 51000], ["r", 5, 90000], ["f", 5, 91000]],
             "swaps": [{"block": 5, "out_after": 1, "in_after": 5, "need": 7}]})";
}

std::string drawn(const std::string& text) {
  const PlanFile file = parse_plan(text);
  const Report report = verify(file.problem, file.decisions);
  EXPECT_FALSE(report.fault.has_value()) << *report.fault;
  return draw_plan(file.problem, file.decisions);
}

TEST(PlanPlot, EachStayAndEachCopyHasItsTime) {
  const std::string svg = drawn(shared(200));
  for (const char* const said : {"block 5 (a&amp;b), 2097152 bytes, there 0.0000 to 0.0020 ms",
                                 "copied out 0.0020 to 0.0125 ms", "copied in 0.0510 to 0.0615 ms",
                                 "there 0.0615 to 0.1000 ms", "block 9, 2097152 bytes, there 0.0400 to 0.0510 ms",
                                 "block 1, 2097152 bytes, there always 0.0000 to 0.1000 ms"}) {
    EXPECT_NE(svg.find(said), std::string::npos) << said << '\n' << svg;
  }
  // The copy out: 1470 pixels are 100 us, 716 / 1.02 pixels are 4 MiB; and once more in the lane of its engine.
  EXPECT_NE(svg.find(R"(<rect class="c0 edge" x="139.4" y="449" width="154.1" height="351"><title>)"),
            std::string::npos)
      << svg;
  EXPECT_NE(svg.find(R"(<rect class="c0 edge" x="139.4" y="868" width="154.1" height="24"><title>)"), std::string::npos)
      << svg;
  EXPECT_NE(svg.find(R"(<rect class="c2 edge" x="859.7" y="906" width="154.1" height="24"><title>)"), std::string::npos)
      << svg;
  EXPECT_NE(
      svg.find(
          "&lt;two&gt;: 4.00 MiB of a peak load of 6.00 MiB, 0.000 ms added to an iteration of 0.100 ms, 1 swaps<"),
      std::string::npos);
  EXPECT_EQ(count(svg, "<title>"), 8u) << "six stays and copies, and the copies again";
  EXPECT_EQ(svg.find("waits 0"), std::string::npos);
}

TEST(PlanPlot, WaitsMakeTheIterationLonger) {
  // A copy takes 52.43 us: the allocation waits for that out, the access for that in.
  const std::string svg = drawn(shared(40));
  EXPECT_NE(svg.find("0.028 ms added"), std::string::npos) << svg;
  EXPECT_NE(svg.find("operation 3 waits 0.0144 ms"), std::string::npos) << svg;
  EXPECT_NE(svg.find("operation 7 waits 0.0134 ms"), std::string::npos) << svg;
  EXPECT_NE(svg.find("copied out 0.0020 to 0.0544 ms"), std::string::npos) << svg;
  EXPECT_NE(svg.find("block 9, 2097152 bytes, there 0.0544 to 0.0654 ms"), std::string::npos) << svg;
  EXPECT_NE(svg.find("copied in 0.0654 to 0.1179 ms"), std::string::npos) << svg;
}

TEST(PlanPlot, ALimitIsShownWhereItIsNear) {
  EXPECT_EQ(count(drawn(shared(200, "4194304")), ">limit "), 0u) << "it is the footprint";
  EXPECT_EQ(count(drawn(shared(200, "5000000")), ">limit 4.77 MiB<"), 1u);
  EXPECT_EQ(count(drawn(shared(200, "50000000")), ">limit "), 0u);
}

TEST(PlanPlot, PlacesInTurn) {
  // Lives until the next iteration: two places.
  const std::string svg = drawn(R"({"format": "memopt-plan-1", "period": 40000,
      "machine": {"out_bytes_per_ns": 1, "in_bytes_per_ns": 1},
      "blocks": [{"id": 3, "size": 1048576, "offset": [0, 1048576]}],
      "ops": [["x", -1, 0], ["m", 3, 10000], ["w", 3, 11000], ["f", 3, 20000, 1]]})");
  EXPECT_NE(svg.find("one of 2 iterations that take turns"), std::string::npos) << svg;
  EXPECT_EQ(count(svg, "block 3, "), 2u);
  EXPECT_NE(svg.find("there -0.0300 to 0.0400 ms"), std::string::npos) << "until its free has ended: " << svg;
  EXPECT_NE(svg.find("there 0.0100 to 0.0800 ms"), std::string::npos) << svg;
}

TEST(PlanPlot, AnIterationOfNoLength) {
  const std::string svg = drawn(R"({"format": "memopt-plan-1", "period": 0,
      "machine": {"out_bytes_per_ns": 1, "in_bytes_per_ns": 1}, "blocks": [], "ops": [["x", -1, 0]]})");
  EXPECT_EQ(svg.find("nan"), std::string::npos) << svg;
}

}  // namespace
}  // namespace memopt::swap
