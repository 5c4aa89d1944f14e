// Blocks that stay as pages, judged by looking at each operation.
#include "planner/sending/staying_pages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "planner/sending/swap_plan.h"
#include "planner/swap/model/liveness.h"

namespace memopt::planner {
namespace {

using swap::Kind;

constexpr std::uint64_t kChunk = 2 << 20;
constexpr std::uint64_t kBase = std::uint64_t{1} << 40;

// A problem of one transient block (0) and persistent ones behind it.
struct Made {
  swap::Problem problem;
  std::vector<std::uint64_t> ranks;
  std::vector<StayingBlock> persistent;

  explicit Made(std::vector<StayingBlock> blocks) : persistent(std::move(blocks)) {
    problem.blocks.push_back({.id = 0, .bytes = kChunk});
    for (const StayingBlock& block : persistent) {
      problem.blocks.push_back({.id = problem.blocks.size(), .bytes = block.bytes, .persistent = true});
    }
    problem.period = 1000;
    problem.machine = {25, 25, 8000, 8000};
  }
  void add(swap::Operation operation, std::uint64_t rank) {
    problem.operations.push_back(operation);
    ranks.push_back(rank);
  }
  // As IterationProblem has a launch of these blocks: the last one has all the time, the others come once more.
  void launch(std::vector<std::uint32_t> blocks, double from, double to, std::uint64_t rank) {
    for (const std::uint32_t block : blocks) add({Kind::kWrite, block, from}, rank);
    blocks.pop_back();
    for (const std::uint32_t block : blocks) add({Kind::kWrite, block, to}, rank);
  }
  GatheredPages gather() { return gather_pages(persistent, kChunk, problem, ranks); }
};

TEST(StayingPages, RunsAreThoseInWhichTheSameBlocksLie) {
  // One of five and a half chunks, one of two in the rest of the last of these, and two small ones in a chunk of
  // their own.
  Made made(
      {{kBase, 11 << 20}, {kBase + (11 << 20) + 512, 4 << 20}, {kBase + (64 << 20), 4096}, {kBase + (65 << 20), 512}});
  made.add({Kind::kMalloc, 0, 0}, 0);
  made.launch({0, 1}, 0, 100, 1);
  made.launch({1, 2, 3}, 100, 300, 2);
  made.add({Kind::kFree, 0, 300}, 3);
  const GatheredPages gathered = made.gather();
  EXPECT_EQ(gathered.pages, (std::vector<StayingPages>{
                                {kBase, 5 * kChunk}, {kBase + 5 * kChunk, kChunk}, {kBase + 6 * kChunk, 2 * kChunk}}));
  EXPECT_EQ(gathered.beside, kChunk);
  ASSERT_EQ(made.problem.blocks.size(), 4u);
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_TRUE(made.problem.blocks[i].persistent && made.problem.blocks[i].whole_chunks);
    EXPECT_EQ(made.problem.blocks[i].bytes, gathered.pages[i - 1].bytes);
  }
  ASSERT_EQ(made.ranks.size(), made.problem.operations.size());
  // The second launch: all three, and all but the last when it is over.
  std::vector<std::pair<std::uint32_t, double>> second;
  for (std::size_t i = 0; i < made.ranks.size(); ++i) {
    if (made.ranks[i] == 2) second.emplace_back(made.problem.operations[i].block, made.problem.operations[i].time);
  }
  EXPECT_EQ(second, (std::vector<std::pair<std::uint32_t, double>>{{1, 100}, {2, 100}, {3, 100}, {1, 300}, {2, 300}}));
  EXPECT_NO_THROW(swap::find_liveness(made.problem));
}

// With all that lies in the same pages.
TEST(StayingPages, WhereOneIsPinnedItsPagesStay) {
  Made made({{kBase, 11 << 20}, {kBase + (11 << 20) + 512, 4 << 20}});
  made.problem.blocks[2].pinned = true;
  made.add({Kind::kMalloc, 0, 0}, 0);
  made.launch({0, 1, 2}, 0, 100, 1);
  made.add({Kind::kFree, 0, 300}, 2);
  const GatheredPages gathered = made.gather();
  EXPECT_EQ(gathered.pages, (std::vector<StayingPages>{{kBase, 5 * kChunk}}));
  EXPECT_EQ(gathered.beside, 3 * kChunk);
}

TEST(StayingPages, WhatNothingAccessesAndWhatLiesInTheSlabIsLeftOut) {
  Made made({{kBase, 4 << 20}, {0, 3 << 20}, {kBase + (16 << 20), 2 << 20}});
  made.add({Kind::kMalloc, 0, 0}, 0);
  made.launch({2, 3}, 0, 100, 1);
  made.add({Kind::kFree, 0, 100}, 2);
  const GatheredPages gathered = made.gather();
  EXPECT_EQ(gathered.pages, (std::vector<StayingPages>{{kBase + (16 << 20), kChunk}}));
  EXPECT_EQ(gathered.beside, 2 * kChunk + (3 << 20));
}

// Pages in which nothing of the persistent blocks is left have no accesses, and time passes as before.
TEST(StayingPages, LeftOutTheyTakeTheirAccessesAlong) {
  Made made({{kBase, 4 << 20}});
  made.add({Kind::kMalloc, 0, 0}, 0);
  made.launch({1}, 0, 100, 1);
  made.launch({1, 0}, 100, 200, 2);
  made.add({Kind::kFree, 0, 200}, 3);
  EXPECT_EQ(leave_out_persistent(made.persistent, kChunk, made.problem, made.ranks), std::uint64_t{4} << 20);
  EXPECT_EQ(made.problem.blocks.size(), 1u);
  std::vector<std::pair<Kind, double>> left;
  for (const swap::Operation& one : made.problem.operations) left.emplace_back(one.kind, one.time);
  EXPECT_EQ(left, (std::vector<std::pair<Kind, double>>{
                      {Kind::kMalloc, 0}, {Kind::kNothing, 0}, {Kind::kWrite, 100}, {Kind::kFree, 200}}));
  EXPECT_EQ(made.ranks, (std::vector<std::uint64_t>{0, 1, 2, 3}));
}

// Random blocks and launches: at each rank the pages that are accessed are those in which the launch's blocks lie.
TEST(StayingPages, EachLaunchAccessesThePagesOfItsBlocks) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 300; ++round) {
    std::vector<StayingBlock> blocks;
    std::uint64_t address = kBase;
    const std::size_t count = 1 + random() % 8;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t bytes = random() % 3 == 0 ? 1 + random() % kChunk : kChunk / 2 * (1 + random() % 8);
      blocks.push_back({address, bytes});
      address += (bytes + 512) / 512 * 512 + (random() % 4 == 0 ? random() % 4 * kChunk / 512 * 512 : 0);
    }
    Made made(blocks);
    made.add({Kind::kMalloc, 0, 0}, 0);
    std::map<std::uint64_t, std::set<std::uint32_t>> launched;
    for (std::uint64_t rank = 1; rank < 10; ++rank) {
      std::set<std::uint32_t> named;
      for (std::uint64_t k = 1 + random() % 3; k > 0; --k)
        named.insert(static_cast<std::uint32_t>(random() % (count + 1)));
      launched[rank] = named;
      made.launch({named.begin(), named.end()}, static_cast<double>(rank) * 50, static_cast<double>(rank) * 50 + 50,
                  rank);
    }
    made.add({Kind::kFree, 0, 600}, 10);
    const GatheredPages gathered = made.gather();
    ASSERT_EQ(made.problem.blocks.size(), 1 + gathered.pages.size());
    std::map<std::uint64_t, std::set<std::uint32_t>> accessed;
    double last = 0;
    for (std::size_t i = 0; i < made.ranks.size(); ++i) {
      const swap::Operation& one = made.problem.operations[i];
      EXPECT_GE(one.time, last);
      last = one.time;
      if (swap::is_access(one)) accessed[made.ranks[i]].insert(one.block);
    }
    const auto lies_in = [&](const StayingBlock& block, const StayingPages& pages) {
      return block.address < pages.address + pages.bytes && pages.address < block.address + block.bytes;
    };
    for (const auto& [rank, named] : launched) {
      for (std::uint32_t p = 0; p < gathered.pages.size(); ++p) {
        const bool expected = std::any_of(named.begin(), named.end(), [&](std::uint32_t block) {
          return block != 0 && lies_in(blocks[block - 1], gathered.pages[p]);
        });
        // The byte behind a block that ends with a page lies in the next: that is accessed with it, for nothing.
        EXPECT_TRUE(!expected || accessed[rank].contains(p + 1)) << "round " << round << ", rank " << rank;
      }
      EXPECT_EQ(accessed[rank].contains(0), named.contains(0));
    }
    // All bytes of large blocks that are used are in some pages.
    for (std::uint32_t b = 0; b < count; ++b) {
      const bool used =
          std::any_of(launched.begin(), launched.end(), [&](const auto& one) { return one.second.contains(b + 1); });
      if (blocks[b].bytes < kChunk || !used) continue;
      std::uint64_t covered = 0;
      for (const StayingPages& pages : gathered.pages) {
        if (!lies_in(blocks[b], pages)) continue;
        covered += std::min(pages.address + pages.bytes, blocks[b].address + blocks[b].bytes) -
                   std::max(pages.address, blocks[b].address);
      }
      EXPECT_EQ(covered, blocks[b].bytes) << "round " << round;
    }
    join_launches(made.ranks, made.problem);
    EXPECT_NO_THROW(swap::find_liveness(made.problem));
  }
}

}  // namespace
}  // namespace memopt::planner
