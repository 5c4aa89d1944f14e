#include "planner/input/shown.h"

#include <gtest/gtest.h>

namespace memopt::input {
namespace {

TEST(Shown, HasNothingThatATerminalWouldExecute) {
  EXPECT_EQ(shown("a b~"), "a b~");
  EXPECT_EQ(shown("\x1b[31m\n\x7f\x9b\xff"), "?[31m????");
  EXPECT_EQ(shown(std::string_view("\0", 1)), "?");
}

TEST(Shown, CutsWhatIsLong) {
  EXPECT_EQ(shown(std::string(60, 'a')), std::string(60, 'a'));
  EXPECT_EQ(shown(std::string(61, 'a')), std::string(60, 'a') + "...");
  EXPECT_EQ(shown("abc", 2), "ab...");
}

}  // namespace
}  // namespace memopt::input
