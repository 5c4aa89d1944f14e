#include "agent/operations/launch_parameters.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/agent/fake_kernels.h"

namespace memopt::agent {
namespace {

TEST(LaunchParameters, WordsAreThoseAlignedInTheKernelsView) {
  // A pointer, four bytes, a structure at 12 with two words of which the second half of the first is cut.
  const FunctionLayout& layout = launch_layout(test::make_function("words", {{0, 8}, {8, 4}, {12, 20}, {32, 7}}));
  ASSERT_TRUE(layout.known);
  EXPECT_EQ(layout.parameter_count, 4u);
  EXPECT_EQ(layout.parameter_bytes, 39u);
  ASSERT_EQ(layout.word_count, 3u);
  EXPECT_EQ(layout.words[0].parameter, 0u);
  EXPECT_EQ(layout.words[0].offset, 0u);
  EXPECT_EQ(layout.words[1].parameter, 2u);
  EXPECT_EQ(layout.words[1].offset, 4u) << "12 + 4 is a multiple of 8";
  EXPECT_EQ(layout.words[2].offset, 12u);
  EXPECT_STREQ(layout.name, "words");
}

TEST(LaunchParameters, TheDriverIsAskedOnce) {
  const CUfunction function = test::make_function("once", {{0, 8}});
  const FunctionLayout* const first = &launch_layout(function);
  const int asked = test::driver_questions();
  EXPECT_EQ(&launch_layout(function), first);
  EXPECT_EQ(test::driver_questions(), asked);
}

TEST(LaunchParameters, KernelsOfLibrariesAreLaunchedAsFunctions) {
  const FunctionLayout& layout = launch_layout(test::make_kernel("kernel", {{0, 8}, {8, 8}}));
  EXPECT_TRUE(layout.known);
  EXPECT_EQ(layout.word_count, 2u);
}

TEST(LaunchParameters, NoParametersIsAKnownLayout) {
  EXPECT_TRUE(launch_layout(test::make_function("none", {})).known);
  EXPECT_TRUE(launch_layout(test::make_kernel("none", {})).known);
}

TEST(LaunchParameters, WhatTheDriverDoesNotKnowIsUnknown) {
  EXPECT_FALSE(launch_layout(nullptr).known);
  EXPECT_FALSE(launch_layout(reinterpret_cast<CUfunction>(0x99)).known);
  test::hide_parameters(true);
  const CUfunction function = test::make_function("hidden", {{0, 8}});
  EXPECT_FALSE(launch_layout(function).known);
  EXPECT_STREQ(launch_layout(function).name, "hidden");
  test::hide_parameters(false);
}

TEST(LaunchParameters, NonsenseIsUnknown) {
  EXPECT_FALSE(launch_layout(test::make_function("far", {{1u << 20, 8}})).known);
  EXPECT_FALSE(launch_layout(test::make_function("wide", {{0, 1u << 20}})).known);
  EXPECT_FALSE(launch_layout(test::make_function("many", std::vector<test::FakeParameter>(5000, {0, 8}))).known);
}

TEST(LaunchParameters, EqualNamesHaveEqualNumbers) {
  const FunctionLayout& one = launch_layout(test::make_function("same", {{0, 8}}));
  const FunctionLayout& two = launch_layout(test::make_function("same", {{0, 4}}));
  const FunctionLayout& other = launch_layout(test::make_function("other", {{0, 8}}));
  EXPECT_EQ(one.id, two.id);
  EXPECT_NE(one.id, other.id);
  EXPECT_NE(one.id, 0u);
}

TEST(LaunchParameters, AHandleMayMeanAnotherFunctionAfterAnUnload) {
  const CUfunction function = test::make_function("before", {{0, 8}});
  const CUfunction stays = test::make_function("stays", {{0, 8}});
  const FunctionLayout* const kept = &launch_layout(stays);
  EXPECT_EQ(launch_layout(function).word_count, 1u);
  test::change_function(function, "after", {{0, 8}, {8, 8}});
  EXPECT_EQ(launch_layout(function).word_count, 1u) << "nobody said that anything was unloaded";
  functions_were_unloaded();
  EXPECT_EQ(launch_layout(function).word_count, 2u);
  EXPECT_STREQ(launch_layout(function).name, "after");
  EXPECT_EQ(&launch_layout(stays), kept) << "unchanged, so no new memory";
}

TEST(LaunchParameters, ThreadsLearnTenThousandFunctionsTogether) {
  constexpr std::size_t kFunctions = 10000;
  std::vector<CUfunction> functions;
  for (std::size_t i = 0; i < kFunctions; ++i) {
    functions.push_back(
        test::make_function("f" + std::to_string(i % 100), std::vector<test::FakeParameter>(i % 7, {0, 8})));
  }
  std::atomic<std::size_t> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t k = 0; k < kFunctions; ++k) {
        const std::size_t i = t % 2 == 0 ? k : kFunctions - 1 - k;
        if (t == 3 && k % 1000 == 0) functions_were_unloaded();
        const FunctionLayout& layout = launch_layout(functions[i]);
        if (!layout.known || layout.parameter_count != i % 7 || layout.name != "f" + std::to_string(i % 100)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace memopt::agent
