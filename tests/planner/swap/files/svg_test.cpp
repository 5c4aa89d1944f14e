#include "planner/swap/files/svg.h"

#include <gtest/gtest.h>

#include <vector>

namespace memopt::swap {
namespace {

using Values = std::vector<double>;

TEST(Svg, MarksAreRoundAndNotTooMany) {
  EXPECT_EQ(marks(0, 10), (Values{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(marks(0, 84.7), (Values{0, 10, 20, 30, 40, 50, 60, 70, 80}));
  EXPECT_EQ(marks(205, 596), (Values{250, 300, 350, 400, 450, 500, 550}));
  EXPECT_EQ(marks(-1, 1).front(), -1);
  for (const double length : {1e-9, 0.07, 0.3, 1.0, 1.9, 2.1, 4.9, 5.1, 1e12}) {
    for (const double from : {0.0, 17.3, -length / 3}) {
      const Values values = marks(from, from + length);
      EXPECT_GE(values.size(), 3u) << from << ' ' << length;
      EXPECT_LE(values.size(), 11u) << from << ' ' << length;
      EXPECT_GE(values.front(), from - 1e-6 * length);
      EXPECT_LE(values.back(), from + length * (1 + 1e-6));
    }
  }
  EXPECT_EQ(marks(5, 5), Values{});
}

TEST(Svg, ZeroHasNoSign) { EXPECT_EQ(number(marks(0, 7).front()), "0"); }

TEST(Svg, NumbersAndTextsAreFitForADocument) {
  EXPECT_EQ(number(0.1 + 0.2), "0.3");
  EXPECT_EQ(number(250), "250");
  EXPECT_EQ(coordinate(1.25e3), "1250");
  EXPECT_EQ(coordinate(0.06), "0.1");
  EXPECT_EQ(escaped("a<b>&\"c\"\n\xc3\xa9"), "a&lt;b&gt;&amp;&quot;c&quot;???");
}

TEST(Svg, AnAxisPutsValuesInPlace) {
  const Axis axis{10, 20, 100, 0};
  EXPECT_EQ(axis.at(10), 100);
  EXPECT_EQ(axis.at(20), 0);
  EXPECT_EQ(axis.at(15), 50);
}

}  // namespace
}  // namespace memopt::swap
