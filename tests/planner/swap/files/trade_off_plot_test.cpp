#include "planner/swap/files/trade_off_plot.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

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

}  // namespace
}  // namespace memopt::swap
