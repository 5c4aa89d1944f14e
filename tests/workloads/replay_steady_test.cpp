// The iteration that replay finds at a trace's end, and the loop that it makes of it.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "steady.h"

namespace replay {
namespace {

// Writes traces: blocks by name, pointers never used again.
class Writer {
 public:
  Writer& malloc(const std::string& block, int bytes) {
    pointers_[block] = ++last_;
    sizes_[block] = bytes;
    return line("Malloc", block);
  }
  Writer& free(const std::string& block) { return line("Free", block); }
  Writer& read(const std::string& block) { return line("Read", block); }
  Writer& write(const std::string& block) { return line("Mutable", block); }
  Trace trace() const { return parse_trace(text_, "test"); }

 private:
  Writer& line(const std::string& verb, const std::string& block) {
    text_ += verb + " " + std::to_string(pointers_.at(block)) + " " + std::to_string(sizes_.at(block)) + " 0\n";
    return *this;
  }
  std::map<std::string, int> pointers_;
  std::map<std::string, int> sizes_;
  int last_ = 0;
  std::string text_;
};

// Weights, an activation, and a gradient that lives until the next iteration has made its own.
void train(Writer& w, int iteration) {
  const std::string gradient = "g" + std::to_string(iteration);
  w.malloc("a", 1000).read("weights").write("a");
  w.malloc(gradient, 600).read("a").write(gradient).free("a");
  if (iteration > 0) w.free("g" + std::to_string(iteration - 1));
  w.read(gradient).write("weights");
}

TEST(ReplaySteady, FindsTheIterationAndWhatCrossesIt) {
  Writer w;
  w.malloc("weights", 500).write("weights");
  for (int i = 0; i < 4; ++i) train(w, i);
  const Trace trace = w.trace();
  const auto steady = find_steady(trace);
  ASSERT_TRUE(steady);
  EXPECT_EQ(steady->period, 10u);
  EXPECT_EQ(steady->end, trace.operations.size());
  EXPECT_EQ(steady->iterations, 3u) << "the first frees no gradient";
  EXPECT_EQ(steady->deepest, 1u);
  ASSERT_EQ(steady->loop.size(), 10u);
  // malloc a, read weights, write a, malloc g, read a, write g, free a, free g of before, read g, write weights
  const auto& loop = steady->loop;
  EXPECT_FALSE(loop[1].born_in_loop);
  EXPECT_EQ(loop[1].block, 0u);
  EXPECT_EQ(loop[6].birth, 0u);
  EXPECT_EQ(loop[6].age, 0u);
  EXPECT_TRUE(loop[7].born_in_loop);
  EXPECT_EQ(loop[7].birth, 3u);
  EXPECT_EQ(loop[7].age, 1u);
  EXPECT_EQ(loop[8].birth, 3u);
  EXPECT_EQ(loop[8].age, 0u);
}

TEST(ReplaySteady, BlocksMayOutliveSeveralIterations) {
  Writer w;
  for (int i = 0; i < 8; ++i) {
    const std::string name = "b" + std::to_string(i);
    w.malloc(name, 100).write(name);
    if (i >= 1) w.read("b" + std::to_string(i - 1));
    if (i >= 3) w.free("b" + std::to_string(i - 3));
  }
  const auto steady = find_steady(w.trace());
  ASSERT_TRUE(steady);
  EXPECT_EQ(steady->period, 4u);
  EXPECT_EQ(steady->deepest, 3u);
  EXPECT_EQ(steady->loop[2].age, 1u);
  EXPECT_EQ(steady->loop[3].age, 3u);
}

TEST(ReplaySteady, LayersThatRepeatInShapeAreNoIteration) {
  Writer w;
  for (int i = 0; i < 6; ++i) w.malloc("w" + std::to_string(i), 100).write("w" + std::to_string(i));
  for (int iteration = 0; iteration < 3; ++iteration) {
    for (int layer = 0; layer < 6; ++layer) {
      w.malloc("x", 50).read("w" + std::to_string(layer)).write("x").read("x").free("x");
    }
  }
  const auto steady = find_steady(w.trace());
  ASSERT_TRUE(steady);
  EXPECT_EQ(steady->period, 30u);
  EXPECT_EQ(steady->iterations, 3u);
}

TEST(ReplaySteady, ALoopBelowThePeakIsNoIteration) {
  Writer w;
  w.malloc("weights", 100).write("weights");
  for (int iteration = 0; iteration < 3; ++iteration) {
    w.malloc("big", 1000).write("big").read("big").free("big");
    for (int i = 0; i < 4; ++i) w.malloc("small", 10).write("small").free("small");
  }
  const auto steady = find_steady(w.trace());
  ASSERT_TRUE(steady);
  EXPECT_EQ(steady->period, 16u);
}

TEST(ReplaySteady, FreesAtExitAreCutOff) {
  Writer w;
  for (int i = 0; i < 30; ++i) w.malloc("w" + std::to_string(i), 10);
  for (int i = 0; i < 12; ++i) w.malloc("x", 500).write("x").read("w0").free("x");
  const std::size_t end = w.trace().operations.size();
  for (int i = 0; i < 30; ++i) w.free("w" + std::to_string(i));
  const auto steady = find_steady(w.trace());
  ASSERT_TRUE(steady);
  EXPECT_EQ(steady->period, 4u);
  EXPECT_LE(steady->end, end);
  EXPECT_GT(steady->end, end - 4);
}

TEST(ReplaySteady, WhatGrowsOrNeverRepeatsHasNoIteration) {
  Writer leak;
  for (int i = 0; i < 6; ++i) leak.malloc("x" + std::to_string(i), 100).write("x" + std::to_string(i));
  EXPECT_FALSE(find_steady(leak.trace()));

  Writer different;
  for (int i = 1; i < 8; ++i) different.malloc("x", 100 * i).write("x").free("x");
  EXPECT_FALSE(find_steady(different.trace()));

  Writer shrink;
  for (int i = 0; i < 8; ++i) shrink.malloc("x" + std::to_string(i), 100);
  for (int i = 0; i < 8; ++i) shrink.free("x" + std::to_string(i));
  EXPECT_FALSE(find_steady(shrink.trace()));

  Writer one;
  one.malloc("x", 1);
  EXPECT_FALSE(find_steady(one.trace()));
}

}  // namespace
}  // namespace replay
