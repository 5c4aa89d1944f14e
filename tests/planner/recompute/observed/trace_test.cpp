#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "planner/recompute/observed/know.h"
#include "planner/recompute/online/dtr.h"
#include "tests/planner/layout/sanitized.h"
#include "tests/planner/recompute/observed/contents.h"
#include "tests/planner/recompute/programs.h"

namespace memopt::recompute {
namespace {

using swap::Kind;
using testing::Contents;
using testing::Truth;

// Lines, a nanosecond each.
class Lines {
 public:
  std::uint32_t persistent(std::uint64_t bytes) {
    problem_.blocks.push_back({.id = problem_.blocks.size(), .bytes = bytes, .persistent = true});
    return static_cast<std::uint32_t>(problem_.blocks.size() - 1);
  }
  std::uint32_t malloc(std::uint64_t bytes) {
    problem_.blocks.push_back({.id = problem_.blocks.size(), .bytes = bytes});
    const auto block = static_cast<std::uint32_t>(problem_.blocks.size() - 1);
    line(Kind::kMalloc, block);
    return block;
  }
  void reads(std::uint32_t block) { line(Kind::kRead, block); }
  void writes(std::uint32_t block) { line(Kind::kWrite, block); }
  void layer() { line(Kind::kNothing, swap::kNoBlock); }
  void free(std::uint32_t block) { line(Kind::kFree, block); }
  void pause(double ns) { now_ += ns; }
  bool ends_with_access() const { return !problem_.operations.empty() && swap::is_access(problem_.operations.back()); }

  const swap::Problem& problem() {
    problem_.period = now_;
    return problem_;
  }

 private:
  void line(Kind kind, std::uint32_t block) {
    problem_.operations.push_back({.kind = kind, .block = block, .time = now_});
    now_ += 1;
  }

  swap::Problem problem_ = testing::no_operations();
  double now_ = 0;
};

TEST(KnowTrace, LinesWithNothingBetweenAreOneLaunch) {
  Lines lines;
  const auto w = lines.persistent(10), workspace = lines.persistent(20), sum = lines.persistent(30);
  const auto x = lines.malloc(100);
  // As calls of C++ have it: from the last argument to the first.
  lines.writes(x);
  lines.writes(workspace);
  lines.reads(w);
  lines.writes(x);  // another call
  lines.reads(x);
  lines.layer();
  lines.layer();
  lines.writes(sum);
  lines.reads(x);
  const auto y = lines.malloc(50);
  lines.writes(y);
  lines.reads(sum);
  lines.free(x);
  lines.writes(y);
  lines.free(y);
  const Known known = know_trace(lines.problem());
  const testing::Iteration iteration(known.problem);
  const std::vector<Launch>& launches = iteration.graph.launches;
  ASSERT_EQ(launches.size(), 6u);  // with the two layers, and what is for the free
  EXPECT_EQ(known.launches, 3u);
  EXPECT_EQ(known.pointers, 1u);
  EXPECT_EQ(known.workspaces, 1u);
  EXPECT_EQ(launches[0].reads, (std::vector<Use>{{w, 0}}));
  EXPECT_EQ(launches[0].writes, (std::vector<Use>{{workspace, 1}, {x, 1}}));
  EXPECT_EQ(launches[3].reads, (std::vector<Use>{{sum, 0}, {x, 1}}));
  EXPECT_EQ(launches[3].writes, (std::vector<Use>{{sum, 1}}));
  EXPECT_EQ(launches[4].reads, (std::vector<Use>{{sum, 1}}));
  EXPECT_TRUE(launches[5].reads.empty() && launches[5].writes.empty());
  // Unless it is said to: what is written is not read.
  const testing::Iteration assumed(know_trace(lines.problem(), true).problem);
  EXPECT_EQ(assumed.graph.launches[3].reads, (std::vector<Use>{{x, 1}}));
}

TEST(KnowTrace, ALaunchTakesTheTimeUntilTheNextThatWrites) {
  Lines lines;
  lines.pause(5);
  const auto w = lines.persistent(10);
  const auto x = lines.malloc(100);
  lines.writes(x);
  lines.reads(w);
  lines.layer();
  lines.reads(x);  // waits for it
  lines.pause(100);
  const auto y = lines.malloc(100);
  lines.writes(y);
  lines.reads(x);
  lines.free(x);
  lines.free(y);
  swap::Problem problem = lines.problem();
  for (swap::Operation& operation : problem.operations) operation.time -= 5;
  problem.period -= 5;
  const testing::Iteration iteration(know_trace(problem).problem);
  const std::vector<Launch>& launches = iteration.graph.launches;
  ASSERT_EQ(launches.size(), 4u);
  EXPECT_EQ(launches[0].ns, 105);
  EXPECT_EQ(launches[1].ns + launches[2].ns, 0);
  EXPECT_EQ(launches[3].ns, 4);
  EXPECT_EQ(iteration.problem.operations[0].time, 0);
  EXPECT_EQ(iteration.problem.period, 110);
}

TEST(KnowTrace, WhatIsWrittenByWhatReadsNothingIsNotMadeAgain) {
  Lines lines;
  const auto x = lines.malloc(100);
  lines.writes(x);
  const auto y = lines.malloc(10);
  lines.writes(y);
  lines.reads(x);
  lines.free(x);
  lines.layer();
  lines.free(y);
  const Known known = know_trace(lines.problem());
  const testing::Iteration iteration(known.problem);
  EXPECT_EQ(iteration.graph.launches[0].valid_until, 0u);
  EXPECT_NE(iteration.graph.launches[1].valid_until, 0u);
  const Doubts doubts = find_doubts(known, iteration.liveness, iteration.graph);
  ASSERT_FALSE(doubts.causes.empty());
  EXPECT_EQ(doubts.causes[0].doubt, Doubt::kFromNothing);
}

// A program of calls, and what of it a trace shows.
struct Traced {
  Lines lines;
  std::vector<std::vector<Truth>> truths;  // by launch
  bool may_assume = true;                  // a call that reads what it writes has a line for each
};

Traced random_trace(std::mt19937_64& random, int calls) {
  Traced result;
  Lines& lines = result.lines;
  const auto chance = [&](std::uint64_t one_in) { return random() % one_in == 0; };
  struct Alive {
    std::uint32_t block;
    bool written, persistent;
  };
  std::vector<Alive> alive;
  for (int k = 0; k < 2; ++k) alive.push_back({lines.persistent(20), true, true});
  const std::uint32_t workspace = lines.persistent(15);
  const auto layer = [&] {
    lines.layer();
    result.truths.emplace_back();
  };
  const auto begin = [&] {
    if (!lines.ends_with_access()) result.truths.emplace_back();
  };
  for (int c = 0; c < calls; ++c) {
    if (chance(4)) layer();
    std::vector<std::uint32_t> fresh;
    if (!chance(4)) fresh.push_back(lines.malloc(10 * (1 + random() % 9)));
    Truth truth;
    std::vector<std::uint32_t> mutated = fresh;
    truth.writes = fresh;
    for (const Alive& one : alive) {
      if (chance(3)) {
        truth.reads.push_back(one.block);
      } else if (chance(8)) {
        truth.writes.push_back(one.block);
        mutated.push_back(one.block);
        if (chance(2)) continue;
        result.may_assume = false;
        truth.reads.push_back(one.block);
      }
    }
    std::vector<std::uint32_t> read;
    for (const std::uint32_t b : truth.reads) {
      if (std::find(mutated.begin(), mutated.end(), b) == mutated.end()) read.push_back(b);
    }
    // What comes from the host stands alone: beside lines that read, it would look as if it were made of that.
    truth.varies = read.empty();
    if (truth.varies) layer();
    begin();
    if (chance(3)) {
      mutated.push_back(workspace);
      truth.writes.push_back(workspace);
    }
    for (const std::uint32_t b : mutated) lines.writes(b);
    for (const std::uint32_t b : read) lines.reads(b);
    if (mutated.empty() && read.empty()) lines.reads(alive.front().block);
    result.truths.back().push_back(truth);
    if (truth.varies) layer();
    for (const std::uint32_t b : fresh) alive.push_back({b, true, false});
    lines.pause(static_cast<double>(random() % 20));
    while (alive.size() > 7 || (alive.size() > 2 && chance(4))) {
      const std::size_t k = 2 + random() % (alive.size() - 2);
      if (chance(2)) {
        begin();
        lines.writes(alive[k].block);
      }
      lines.free(alive[k].block);
      alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(k));
    }
  }
  for (; alive.size() > 2; alive.pop_back()) lines.free(alive.back().block);
  // Else they would be taken for workspaces.
  layer();
  begin();
  lines.reads(0);
  lines.reads(1);
  return result;
}

TEST(KnowTrace, LaunchesFindWhatTheyFound) {
  std::mt19937_64 random(17);
  std::uint64_t replays = 0, assumed = 0;
  const int programs = layout::kSanitized ? 500 : 2500;
  for (int k = 0; k < programs; ++k) {
    Traced traced = random_trace(random, 6 + k % 12);
    const bool assume = traced.may_assume && k % 2 == 0;
    assumed += assume ? 1 : 0;
    const testing::Iteration iteration(know_trace(traced.lines.problem(), assume).problem);
    ASSERT_EQ(iteration.graph.launches.size(), traced.truths.size());
    Contents contents(iteration.problem, iteration.graph, traced.truths);
    const auto expected = contents.found({});
    for (const std::uint64_t percent : {50, 65, 80, 95}) {
      const auto policy = make_dtr(iteration.problem, iteration.graph, Heuristic::kDtr);
      const auto steps = run_online(iteration.problem, iteration.liveness, iteration.graph,
                                    iteration.liveness.peak * percent / 100, *policy, 1e6);
      if (!steps) continue;
      const auto cost = iteration.cost(steps);
      ASSERT_EQ(cost->fault, std::nullopt);
      replays += cost->replays;
      ASSERT_EQ(contents.found(*steps), expected) << k << ", " << percent;
    }
  }
  EXPECT_GT(replays, static_cast<std::uint64_t>(programs) / 20);
  EXPECT_GT(assumed, static_cast<std::uint64_t>(programs) / 20);
}

}  // namespace
}  // namespace memopt::recompute
