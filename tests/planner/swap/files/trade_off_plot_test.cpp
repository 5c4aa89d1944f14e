#include "planner/swap/files/trade_off_plot.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace memopt::swap {
namespace {

constexpr std::uint64_t kMib = 1 << 20;

std::size_t count(const std::string& text, std::string_view what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

TEST(TradeOffPlot, PointsAreJoinedInOrderOfFootprint) {
  const std::string svg =
      draw_trade_offs("a < b", {{"ours", {{300 * kMib, 0}, {100 * kMib, 2e6}, {200 * kMib, 1e6}}, false},
                                {"none", {}, false},
                                {"single", {{150 * kMib, 5e5}}, false},
                                {"bound", {{100 * kMib, 1e6}, {300 * kMib, 0}}, true}});
  EXPECT_NE(svg.find("a &lt; b"), std::string::npos);
  EXPECT_EQ(count(svg, "<circle"), 6u);
  ASSERT_EQ(count(svg, "<polyline"), 2u) << "one point makes no line";
  // Footprints from 92 to 308 MiB lie between 100 and 820 pixels, times from 0 to 2.1 ms between 570 and 60.
  EXPECT_NE(svg.find(R"(points="126.7,84.3 460,327.1 793.3,570")"), std::string::npos) << svg;
  EXPECT_NE(svg.find(R"(class="line thick dashed" points="126.7,327.1 793.3,570")"), std::string::npos) << svg;
  EXPECT_NE(svg.find("ours: 200.00 MiB, 1.000 ms added"), std::string::npos);
  EXPECT_NE(svg.find(">none (no plan)<"), std::string::npos);
  EXPECT_EQ(count(svg, "(no plan)"), 1u);
}

TEST(TradeOffPlot, DrawsNothingAndPlansWithoutAddedTime) {
  EXPECT_EQ(count(draw_trade_offs("", {}), "<circle"), 0u);
  const std::string svg = draw_trade_offs("", {{"a", {{kMib, 0}, {kMib, 0}}, false}});
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
  EXPECT_NE(svg.find(R"(cx="460" cy="570")"), std::string::npos) << svg;
}

constexpr double kNone = std::numeric_limits<double>::infinity();

TEST(TradeOffPlot, InPartsItEndsAtTwiceWhatTheBestAdds) {
  // Of an iteration of a millisecond, whose load peaks at 200 MiB. Ours adds 10 % at most, so the drawing ends at 20 %.
  const std::string svg =
      draw_trade_off_parts("",
                           {{"ours", {{100 * kMib, 1e5}, {150 * kMib, 5e4}, {200 * kMib, 0}}, false},
                            {"dear", {{100 * kMib, 3e6}, {150 * kMib, 1.5e5}, {200 * kMib, 1e5}}, false},
                            {"bound", {{100 * kMib, 5e4}, {200 * kMib, 0}}, true}},
                           200 * kMib, 1e6);
  // Limits from 48 to 102 % lie between 100 and 820 pixels, times from 0 to 20 % between 570 and 60.
  EXPECT_NE(svg.find(R"(points="126.7,315 460,442.5 793.3,570")"), std::string::npos) << svg;
  EXPECT_NE(svg.find("limit, % of the peak load"), std::string::npos);
  EXPECT_NE(svg.find("added time, % of an iteration"), std::string::npos);
  EXPECT_NE(svg.find("ours: within 50.0 %, 10.00 % added"), std::string::npos);
  EXPECT_NE(svg.find("dear: within 50.0 %, 300.00 % added"), std::string::npos);
  EXPECT_EQ(count(svg, "<circle"), 7u);
  EXPECT_EQ(count(svg, "<path"), 1u) << "above the edge";
  EXPECT_NE(svg.find(R"(<path class="c1" d="M121.7 68L126.7 60L131.7 68Z">)"), std::string::npos) << svg;
}

TEST(TradeOffPlot, ALineLeavesAtTheEdgeAndComesBack) {
  // The edge is at 20 %: from 0 over 40 to 0 % it is met at half of each way.
  const std::string svg =
      draw_trade_off_parts("",
                           {{"ours", {{100 * kMib, 1e5}, {150 * kMib, 1e5}, {200 * kMib, 1e5}}, false},
                            {"dear", {{100 * kMib, 0}, {150 * kMib, 4e5}, {200 * kMib, 0}}, false}},
                           200 * kMib, 1e6);
  EXPECT_NE(svg.find(R"(class="l1 thick" points="126.7,570 293.3,60")"), std::string::npos) << svg;
  EXPECT_NE(svg.find(R"(class="l1 thick" points="626.7,60 793.3,570")"), std::string::npos) << svg;
}

TEST(TradeOffPlot, WhereThereIsNoPlanALineHasAGap) {
  const auto drawn = [](double second) {
    return draw_trade_off_parts(
        "", {{"ours", {{50 * kMib, 1e5}, {100 * kMib, 1e5}, {150 * kMib, second}, {200 * kMib, 0}}, false}}, 200 * kMib,
        1e6);
  };
  const std::string whole = drawn(5e4), gap = drawn(kNone);
  EXPECT_EQ(count(whole, "<polyline"), 1u);
  EXPECT_EQ(count(whole, "<circle"), 4u);
  EXPECT_EQ(count(gap, "<polyline"), 1u) << "the last point stands alone";
  EXPECT_EQ(count(gap, "<circle"), 3u);
  EXPECT_EQ(count(gap, "inf"), 0u);
  const std::string none =
      draw_trade_off_parts("", {{"ours", {{kMib, kNone}, {2 * kMib, kNone}}, false}}, 2 * kMib, 1e6);
  EXPECT_EQ(count(none, "<circle") + count(none, "<polyline") + count(none, "inf") + count(none, "nan"), 0u);
  EXPECT_EQ(count(none, ">ours (no plan)<"), 1u);
}

TEST(TradeOffPlot, ColoursComeAgainDotted) {
  std::vector<TradeOffLine> lines;
  for (int k = 0; k < 10; ++k) lines.push_back({std::to_string(k), {{kMib, 1}, {2 * kMib, 0}}, false});
  const std::string svg = draw_trade_offs("", lines);
  EXPECT_EQ(count(svg, R"(<polyline class="l0 thick")"), 1u);
  EXPECT_EQ(count(svg, R"(<polyline class="l0 thick dotted")"), 1u);
  EXPECT_EQ(count(svg, R"(<polyline class="l1 thick dotted")"), 1u);
  EXPECT_EQ(count(svg, "thick dotted\""), 4u) << "two lines, and in the legend";
}

}  // namespace
}  // namespace memopt::swap
