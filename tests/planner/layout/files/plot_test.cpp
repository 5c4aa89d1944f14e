#include "planner/layout/files/plot.h"

#include <gtest/gtest.h>

namespace memopt::layout {
namespace {

std::size_t count(const std::string& text, std::string_view what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

TEST(Plot, DrawsEachIntervalAndEscapesNames) {
  Instance instance;
  const Interval twice[] = {{0, 2}, {6, 10}};
  instance.problem.add(5, twice);
  instance.problem.add(5, {0, 10});
  instance.ids = {"<a&b>\x1b", "second"};
  const std::string svg = draw_svg(instance, {{5, 0}, 10}, 10);
  EXPECT_EQ(count(svg, "<title>"), 2U);
  EXPECT_EQ(count(svg, "<rect x="), 3U);
  EXPECT_NE(svg.find("&lt;a&amp;b&gt;?: 5 at 5, 0 to 2, 6 to 10"), std::string::npos);
  // The lower half of the drawing's 820 pixels, over its whole width of 1560.
  EXPECT_NE(svg.find(R"(<rect x="20" y="450" width="1560" height="410"/>)"), std::string::npos) << svg;
}

TEST(Plot, StaysSmallWithManyBuffers) {
  Instance instance;
  Solution solution;
  for (std::uint64_t i = 0; i < 60000; ++i) {
    instance.problem.add(7, {i, i + 40});
    instance.ids.push_back(std::to_string(i));
    solution.offsets.push_back(i % 40 * 7);
  }
  solution.height = 280;
  const std::string svg = draw_svg(instance, solution, 280);
  EXPECT_EQ(count(svg, "z"), 60000U + count(svg, "sans-serif\" font-size"));
  EXPECT_LT(svg.size(), 4U << 20);
}

TEST(Plot, DrawsNothing) { EXPECT_NE(draw_svg({}, {}, 0).find("0 buffers"), std::string::npos); }

}  // namespace
}  // namespace memopt::layout
