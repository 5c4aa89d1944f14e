#include "planner/recompute/observed/kernel_list.h"

#include <gtest/gtest.h>

#include <random>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace memopt::recompute {
namespace {

using Use = KernelRule::Use;

KernelList list_of(const std::string& text) {
  input::File file = input::File::holding(text, "kernels.txt");
  return KernelList::read(file);
}

std::string fault_of(const std::string& text) {
  try {
    list_of(text);
  } catch (const input::InputError& error) {
    return error.what();
  }
  return "none";
}

TEST(KernelList, TheLastLineThatMatchesHolds) {
  const KernelList list = list_of(
      "# of a framework\n"
      "\n"
      "*elementwise*: reads\r\n"
      "\t at::native::f{lambda()#1} : \t r  w\tc \n"
      "*elementwise_rng*: never\n"
      "gemm?: changes\n");
  ASSERT_EQ(list.rules().size(), 4u);
  EXPECT_EQ(list.rules()[0].pattern, "*elementwise*");
  EXPECT_EQ(list.rules()[0].line, 3u);
  const KernelRule& by_position = list.rules()[1];
  EXPECT_EQ(by_position.pattern, "at::native::f{lambda()#1}");
  EXPECT_EQ(by_position.use, Use::kByPosition);
  EXPECT_EQ(by_position.roles, (std::vector<Role>{Role::kReads, Role::kWrites, Role::kChanges}));
  EXPECT_FALSE(by_position.rest);
  const KernelList rest = list_of("a: w r*\nb: c* \n");
  EXPECT_EQ(rest.rules()[0].roles, (std::vector<Role>{Role::kWrites, Role::kReads}));
  EXPECT_TRUE(rest.rules()[0].rest && rest.rules()[1].rest);
  EXPECT_EQ(list.find("an_elementwise_kernel")->use, Use::kReads);
  EXPECT_EQ(list.find("an_elementwise_rng_kernel")->use, Use::kNever);
  EXPECT_EQ(list.find("gemm1")->use, Use::kChanges);
  EXPECT_EQ(list.find("gemm"), nullptr);
  EXPECT_EQ(list.find(""), nullptr);
  EXPECT_EQ(list_of("").find("gemm"), nullptr);
  EXPECT_EQ(list_of("* : reads").find("")->use, Use::kReads);
}

TEST(KernelList, WhatIsNoLineIsToldWithItsNumber) {
  EXPECT_EQ(fault_of("\ngemm\n"), "kernels.txt: line 2: expected PATTERN: USE, found \"gemm\"");
  EXPECT_EQ(fault_of(": reads\n"),
            "kernels.txt: line 1: expected a pattern of kernels' names in front of the last colon, found nothing");
  const std::string uses =
      "expected reads, changes, never, or r, w or c for each block that it names, * behind the last behind the last "
      "colon, found ";
  EXPECT_EQ(fault_of("gemm:\n"), "kernels.txt: line 1: " + uses + "nothing");
  EXPECT_EQ(fault_of("gemm: read\n"), "kernels.txt: line 1: " + uses + "\"read\"");
  EXPECT_EQ(fault_of("gemm: r w x\x1b\n"), "kernels.txt: line 1: " + uses + "\"x?\"");
  EXPECT_EQ(fault_of("gemm: r* w\n"), "kernels.txt: line 1: " + uses + "\"r*\"");
  EXPECT_EQ(fault_of("gemm: r **\n"), "kernels.txt: line 1: " + uses + "\"**\"");
  EXPECT_EQ(fault_of("gemm: r *\n"), "kernels.txt: line 1: " + uses + "\"*\"");
  EXPECT_EQ(fault_of("gemm: reads never\n"), "kernels.txt: line 1: " + uses + "\"reads\"");
  std::string long_list;
  for (int i = 0; i < 4096; ++i) long_list += "a: r\n";
  EXPECT_EQ(list_of(long_list).rules().size(), 4096u);
  EXPECT_EQ(fault_of(long_list + "a: r\n"),
            "kernels.txt: line 4097: expected at most 4096 lines with a pattern, found more");
}

// As the words of the format say it.
bool matches_slowly(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '*') {
    return matches_slowly(pattern.substr(1), text) || (!text.empty() && matches_slowly(pattern, text.substr(1)));
  }
  return !text.empty() && (pattern[0] == '?' || pattern[0] == text[0]) &&
         matches_slowly(pattern.substr(1), text.substr(1));
}

TEST(KernelList, PatternsMatchWholeNames) {
  EXPECT_TRUE(matches("*a*b", "xaxbxb"));
  EXPECT_FALSE(matches("a*", "ba"));
  EXPECT_TRUE(matches("[a]*", "[a](int*)"));
  std::mt19937_64 random(3);
  const auto some = [&](const std::string& letters, std::uint64_t most) {
    std::string text;
    for (std::uint64_t k = random() % (most + 1); k > 0; --k) text += letters[random() % letters.size()];
    return text;
  };
  std::size_t matching = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::string pattern = some("ab*?", 7), text = some("ab", 9);
    ASSERT_EQ(matches(pattern, text), matches_slowly(pattern, text)) << pattern << " " << text;
    matching += matches(pattern, text) ? 1 : 0;
  }
  EXPECT_GT(matching, 2000u);
  // No pattern takes exponential time.
  std::string stars;
  for (int i = 0; i < 500; ++i) stars += "*a";
  EXPECT_FALSE(matches(stars + "b", std::string(5000, 'a')));
}

TEST(KernelList, MutationsAreRefusedOrAreLists) {
  const std::string seed =
      "# of a framework\n*elementwise*: reads\nat::f{lambda()#1} : r  w\tc\n\n*: never\n?: changes\nx: w r*\n";
  std::mt19937_64 random(5);
  const std::string letters =
      "rwc:*?# \t\n\0\xff"
      "never";
  for (int i = 0; i < 20000; ++i) {
    std::string text = seed;
    for (std::uint64_t k = random() % 4; k > 0; --k) {
      const std::size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = letters[random() % letters.size()];
          break;
        case 1:
          text.erase(at, 1 + random() % 5);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 9));
          break;
      }
      if (text.empty()) text = "*";
    }
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
  }
}

}  // namespace
}  // namespace memopt::recompute
