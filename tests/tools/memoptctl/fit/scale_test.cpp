#include "tools/memoptctl/fit/scale.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "tools/memoptctl/fit/dry_run.h"

namespace memopt::tools {
namespace {

TEST(Scale, ValuesAndRanges) {
  const Scale values = parse_scale("batch_size=8,16, 32,fp16");
  EXPECT_EQ(values.name, "batch_size");
  EXPECT_EQ(values.values, (std::vector<std::string>{"8", "16", " 32", "fp16"}));
  const Scale range = parse_scale("n=8..512:8");
  EXPECT_TRUE(range.is_range());
  EXPECT_EQ(range.count(), 64u);
  EXPECT_EQ(range.value(63), 512u);
  EXPECT_EQ(parse_scale("n=1..2").count(), 2u);
  EXPECT_EQ(parse_scale("n=1..10:4").value(parse_scale("n=1..10:4").count() - 1), 9u);
  for (const char* const bad : {"", "8,16", "=8", "a b=8", "n=", "n=8,", "n=,8", "n=8..", "n=..8", "n=8..8", "n=9..8",
                                "n=1..5:0", "n=1..5:", "n=a..b", "n=-1..5", "n=1:2..5", "n=1..18446744073709551615"}) {
    EXPECT_THROW(parse_scale(bad), std::invalid_argument) << bad;
  }
  std::string many = "n=1";
  for (int i = 0; i < 100; ++i) many += ",1";
  EXPECT_THROW(parse_scale(many), std::invalid_argument);
}

TEST(Scale, TakesThePlaceOfItsName) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(scaled_command({"a", "--n={n}x{n}", "{m}", "{n}"}, "n", "{n}7"),
            (Words{"a", "--n={n}7x{n}7", "{m}", "{n}7"}));
  EXPECT_EQ(scaled_command({"{n}"}, "n", ""), (Words{""}));
  EXPECT_THROW(scaled_command({"a", "n", "{ n }"}, "n", "7"), std::invalid_argument);
}

// Against a look at all of them, in few tries.
TEST(Scale, FindsTheLargestThatFits) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 500; ++i) {
    const std::uint64_t count = 1 + random() % 300, fitting = random() % (count + 1);
    std::set<std::uint64_t> tried;
    const auto found = largest_that_fits(count, [&](std::uint64_t index) {
      EXPECT_LT(index, count);
      EXPECT_TRUE(tried.insert(index).second) << "tried twice";
      return index < fitting;
    });
    EXPECT_EQ(found.has_value(), fitting > 0);
    if (found) {
      EXPECT_EQ(*found, fitting - 1);
    }
    EXPECT_LE(tried.size(), 11u);
  }
}

TEST(DryRun, SaysWhatIsMissing) {
  EXPECT_NE(
      missing_in(
          "./a: error while loading shared libraries: libcudnn.so.9: cannot open shared object file: No such file")
          .find("it needs libcudnn.so.9, which neither this machine nor the simulated device has"),
      std::string::npos);
  EXPECT_NE(missing_in("Traceback\nModuleNotFoundError: No module named 'torch'\n").find("Python's module torch"),
            std::string::npos);
  EXPECT_NE(missing_in("a: symbol lookup error: a: undefined symbol: cublasLtFoo").find("it calls cublasLtFoo"),
            std::string::npos);
  EXPECT_EQ(missing_in("out of memory"), "");
}

}  // namespace
}  // namespace memopt::tools
