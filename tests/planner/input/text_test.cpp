#include "planner/input/text.h"

#include <gtest/gtest.h>

namespace memopt::input {
namespace {

constexpr TextBounds kSmall{.expected = "verses", .line_bytes = 10, .lines = 4, .bytes = 30};

std::vector<std::string> lines_of(const std::string& text, const TextBounds& bounds = {.expected = "verses"}) {
  File file = File::holding(text, "f");
  Lines lines(file, bounds);
  std::vector<std::string> all;
  for (std::string_view line; lines.next(line);) {
    all.emplace_back(line);
    EXPECT_EQ(lines.number(), all.size());
  }
  return all;
}

std::string whole_of(const std::string& text, const TextBounds& bounds = {.expected = "verses"}) {
  File file = File::holding(text, "f");
  return read_text(file, bounds);
}

template <typename Read>
std::string fault(const Read& read, const std::string& text) {
  try {
    read(text, kSmall);
  } catch (const TextError& error) {
    return error.what();
  }
  return "";
}

TEST(Text, LinesAreWithoutTheirEnds) {
  using Strings = std::vector<std::string>;
  EXPECT_EQ(lines_of(""), Strings());
  EXPECT_EQ(lines_of("\n"), Strings({""}));
  EXPECT_EQ(lines_of("a\n\nb"), Strings({"a", "", "b"}));
  EXPECT_EQ(lines_of("a\r\nb\n"), Strings({"a\r", "b"}));
}

// Lines cross the pieces in which text is read at every place.
TEST(Text, LinesOfAnyLengthComeWhole) {
  std::string text;
  std::vector<std::string> expected;
  for (std::size_t i = 0; i < 600; ++i) {
    expected.emplace_back(i * 37 % 1201, static_cast<char>('a' + i % 26));
    text += expected.back() + '\n';
  }
  expected.emplace_back(300'000, 'z');
  text += expected.back();
  EXPECT_EQ(lines_of(text), expected);
  EXPECT_EQ(whole_of(text), text);
}

TEST(Text, BoundsAreKept) {
  EXPECT_EQ(lines_of("1234567890\n2\n3\n4\n", kSmall).size(), 4u);
  EXPECT_EQ(whole_of("1234567890\n2\n3\n4\n", kSmall).size(), 17u);
  EXPECT_EQ(whole_of("1234567890\n2\n3\n4", kSmall).size(), 16u);
  const auto both = [](const std::string& text, const std::string& message) {
    EXPECT_EQ(fault(lines_of, text), message);
    EXPECT_EQ(fault(whole_of, text), message);
  };
  both("1\n12345678901\n", "f: line 2: expected verses in lines of at most 10 bytes, found a longer one");
  both("1\n12345678901", "f: line 2: expected verses in lines of at most 10 bytes, found a longer one");
  both("1\n2\n3\n4\n5\n", "f: line 5: expected verses of at most 4 lines, found more");
  both("1\n2\n3\n4\n5", "f: line 5: expected verses of at most 4 lines, found more");
  both(std::string("1\n2\n\0", 5), "f: line 3: expected verses, found a NUL byte, which is in no text");
  both(std::string("\0", 1), "f: line 1: expected verses, found a NUL byte, which is in no text");
  EXPECT_NE(fault(lines_of, "1234567890\n1234567890\n123456789").find("of at most 30 bytes, found more"),
            std::string::npos);
  EXPECT_NE(fault(whole_of, "1234567890\n1234567890\n123456789").find("of at most 30 bytes, found more"),
            std::string::npos);
}

TEST(Text, ANulByteFarInIsNamedWithItsLine) {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += "line\n";
  text += std::string("xx\0", 3);
  for (const auto& read :
       {+[](const std::string& all) { lines_of(all); }, +[](const std::string& all) { whole_of(all); }}) {
    try {
      read(text);
      ADD_FAILURE();
    } catch (const TextError& error) {
      EXPECT_STREQ(error.what(), "f: line 50001: expected verses, found a NUL byte, which is in no text");
    }
  }
}

}  // namespace
}  // namespace memopt::input
