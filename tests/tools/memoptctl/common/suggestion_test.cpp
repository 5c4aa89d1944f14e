#include "tools/memoptctl/common/suggestion.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace memopt::tools {
namespace {

TEST(Suggestion, EditDistance) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("abc", ""), 3u);
  EXPECT_EQ(edit_distance("status", "status"), 0u);
  EXPECT_EQ(edit_distance("stats", "status"), 1u);
  EXPECT_EQ(edit_distance("satus", "status"), 1u);
  EXPECT_EQ(edit_distance("sttaus", "status"), 1u) << "neighbours that are swapped are one mistake";
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("ca", "abc"), 3u) << "a pair is not edited again";
}

TEST(Suggestion, OnlyWhatIsNear) {
  const std::vector<std::string> names{"run", "record", "reduce", "status"};
  EXPECT_EQ(nearest("stauts", names), "status");
  EXPECT_EQ(nearest("recod", names), "record");
  EXPECT_EQ(nearest("rn", names), "run");
  EXPECT_EQ(nearest("bogus", names), "");
  EXPECT_EQ(nearest("", names), "");
  EXPECT_EQ(nearest("x", {}), "");
}

}  // namespace
}  // namespace memopt::tools
