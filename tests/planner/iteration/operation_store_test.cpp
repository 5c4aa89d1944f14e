// What is kept of records, and what is left after forgetting.
#include "planner/iteration/operation_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <unordered_map>
#include <vector>

#include "planner/iteration/record_builder.h"

namespace memopt::planner {
namespace {

TEST(OperationStore, TokensNameWhatCouldBeTheSame) {
  OperationStore store;
  RecordBuilder builder;
  const auto token = [&](const shm::RecordView& record) {
    store.add(0, record);
    return store.operations().back().token;
  };
  const std::uint64_t malloc = token(builder.malloc(1, 100, 5, 6));
  builder.stream = 99;
  EXPECT_EQ(token(builder.malloc(2, 100, 5, 6)), malloc);
  EXPECT_NE(token(builder.malloc(3, 101, 5, 6)), malloc);
  EXPECT_NE(token(builder.malloc(4, 100, 4, 6)), malloc);
  EXPECT_NE(token(builder.malloc(5, 100, 5, 7)), malloc);
  builder.flags = shm::kForeign;
  EXPECT_NE(token(builder.malloc(6, 100, 5, 6)), malloc);
  const std::uint64_t freed = token(builder.free(1));
  EXPECT_EQ(token(builder.free(2)), freed);
  EXPECT_NE(token(builder.free(3)), freed);
  EXPECT_NE(token(builder.free(77)), freed);
  EXPECT_NE(token(builder.launch(1, {})), token(builder.launch(2, {})));
  EXPECT_NE(token(builder.memset(4, 10)), token(builder.memset(4, 11)));
}

TEST(OperationStore, OtherRecordsPassBy) {
  OperationStore store;
  RecordBuilder builder;
  store.add(0, builder.state(shm::StateChange::kLive, 1, 0));
  EXPECT_TRUE(store.operations().empty());
  EXPECT_EQ(store.last_sequence(), 1u);
}

TEST(OperationStore, BlocksWhoseAddressIsStoredStayAlsoWhenTheyAreFreedByThen) {
  OperationStore store;
  RecordBuilder builder;
  store.add(0, builder.malloc(1, 512));
  store.add(0, builder.malloc(2, 512));
  store.add(0, builder.malloc(3, 512));
  store.add(0, builder.free(2));
  const auto block_of = [&](std::size_t malloc) { return store.blocks()[store.operations()[malloc].block]; };
  store.add(0, builder.escape(1));
  store.add(0, builder.escape(2));
  store.add(0, builder.escape(77));
  store.add(0, builder.escape(0));
  EXPECT_TRUE(block_of(0).stays);
  EXPECT_TRUE(block_of(1).stays);
  EXPECT_FALSE(block_of(2).stays);
  ASSERT_EQ(store.escapes().size(), 3u);
  EXPECT_EQ(store.blocks()[store.escapes()[1].block].number, 2u);
  EXPECT_EQ(store.escapes()[2].block, kNone);
  EXPECT_EQ(store.operations().size(), 4u) << "it is no operation";
}

// Whoever sends many escapes of what never was has them looked for only so often.
TEST(OperationStore, ManyEscapesOfUnknownBlocksTakeLinearTime) {
  constexpr std::uint64_t kBlocks = 20'000;
  OperationStore store;
  RecordBuilder builder;
  for (std::uint64_t block = 1; block <= kBlocks; ++block) store.add(0, builder.malloc(block, 512));
  store.add(0, builder.free(7));
  for (std::uint64_t i = 0; i < 2'000; ++i) store.add(0, builder.escape(kBlocks + 1 + i));
  store.add(0, builder.escape(7));
  store.add(0, builder.escape(8));
  EXPECT_EQ(store.escapes().back().number, 8u);
  EXPECT_NE(store.escapes().back().block, kNone) << "it lives";
  EXPECT_EQ(store.escapes()[store.escapes().size() - 2].block, kNone) << "it would have been one search too many";
  for (std::uint64_t i = 0; i < kBlocks; ++i) store.add(0, builder.memset(8, 1));
  store.add(0, builder.escape(7));
  EXPECT_NE(store.escapes().back().block, kNone);
  // Only the last ones are kept.
  for (std::uint64_t i = 0; i < 10'000; ++i) store.add(0, builder.escape(8));
  EXPECT_LE(store.escapes().size(), 4096u);
  EXPECT_EQ(store.escapes_forgotten() + store.escapes().size(), 12'003u);
}

TEST(OperationStore, MemoryIsBoundedAndLiveBlocksStayKnown) {
  constexpr std::size_t kMost = 1000;
  OperationStore store(kMost);
  RecordBuilder builder;
  store.add(3, builder.malloc(1, 4096));
  std::mt19937_64 random(1);
  std::vector<std::uint64_t> live;
  std::uint64_t next = 2;
  for (int i = 0; i < 20000; ++i) {
    if (live.size() < 10 || random() % 2 == 0) {
      live.push_back(next);
      store.add(static_cast<std::uint32_t>(random() % 3), builder.malloc(next++, 512));
    } else {
      std::swap(live[random() % live.size()], live.back());
      store.add(0, builder.free(live.back()));
      live.pop_back();
    }
    if (live.size() > 40) {
      const std::uint64_t accesses[] = {live[0], 1};
      store.add(1, builder.launch(1, accesses));
    }
    ASSERT_LE(store.operations().size(), kMost);
    ASSERT_LE(store.blocks().size(), 2 * kMost + live.size());
  }
  EXPECT_GT(store.forgotten(), 10u);
  EXPECT_EQ(store.live_blocks().size(), live.size() + 1);
  std::size_t operations = 0;
  for (const Lane& lane : store.lanes()) {
    for (std::size_t i = 0; i < lane.operations.size(); ++i) {
      ASSERT_EQ(store.operations()[lane.operations[i]].lane_index, i);
    }
    operations += lane.operations.size();
  }
  EXPECT_EQ(operations, store.operations().size());
  for (std::uint32_t i = 0; i < store.operations().size(); ++i) {
    const Operation& op = store.operations()[i];
    if (op.kind == OperationKind::kMalloc) {
      ASSERT_EQ(store.blocks()[op.block].birth, i);
    }
    if (op.kind == OperationKind::kFree) {
      ASSERT_EQ(store.blocks()[op.block].death, i);
    }
    for (const Access access : store.accesses(i)) ASSERT_LT(access.block, store.blocks().size());
  }
}

// What is stored is the end of what was added, whatever was forgotten in between: compared with a list of everything.
TEST(OperationStore, KeepsTheEndOfEverything) {
  struct Seen {
    std::uint64_t sequence;
    std::uint64_t token;
    std::uint64_t block;  // number, of a malloc or free
    std::uint32_t lane;
    std::vector<std::uint64_t> accesses;
  };
  for (std::uint64_t seed = 0; seed < 16; ++seed) {
    std::mt19937_64 random(seed);
    const std::size_t most = 16 + random() % 3000;
    OperationStore store(most);
    RecordBuilder builder;
    std::vector<Seen> all;
    std::vector<std::uint64_t> live;
    std::uint64_t next = 1;
    std::size_t gap_at = 0;
    for (int i = 0; i < 12000; ++i) {
      const auto lane = static_cast<std::uint32_t>(random() % (1 + i / 1000));
      Seen seen{0, 0, 0, lane, {}};
      const std::uint64_t choice = random() % 100;
      if (choice < 30 || live.empty()) {
        seen.block = next++;
        live.push_back(seen.block);
        store.add(lane, builder.malloc(seen.block, 512 * (1 + random() % 9)));
      } else if (choice < 55) {
        std::swap(live[random() % live.size()], live.back());
        seen.block = live.back();
        live.pop_back();
        store.add(lane, builder.free(seen.block));
      } else if (choice < 56 && seed % 4 == 0) {
        store.add_gap({});
        gap_at = all.size();
        continue;
      } else {
        // Now and then so many that their ring comes round before that of the operations.
        const std::size_t count = seed % 2 == 0 && random() % 50 == 0 ? 2000 + random() % 6000 : random() % 4;
        for (std::size_t k = 0; k < count; ++k) {
          // Blocks that live, that died, and that never were.
          seen.accesses.push_back(random() % 3 == 0 ? 1 + random() % (2 * next) : live[random() % live.size()]);
        }
        store.add(lane, builder.launch(static_cast<std::uint32_t>(random() % 5), seen.accesses));
      }
      seen.sequence = builder.sequence();
      ASSERT_GE(store.operations().size(), 1u);
      seen.token = store.operations().back().token;
      all.push_back(std::move(seen));
      if (i % 400 != 399 && i < 11900) continue;

      const std::size_t size = store.operations().size();
      ASSERT_LE(size, std::min(most, all.size() - gap_at));
      std::vector<std::vector<std::uint32_t>> of_lanes(store.lanes().size());
      for (std::uint32_t k = 0; k < size; ++k) {
        const Operation operation = store.operations()[k];
        const Seen& was = all[all.size() - size + k];
        ASSERT_EQ(operation.sequence, was.sequence);
        ASSERT_EQ(operation.token, was.token);
        ASSERT_EQ(store.lanes()[operation.lane].number, was.lane);
        of_lanes[operation.lane].push_back(k);
        const std::span<const Access> accesses = store.accesses(k);
        ASSERT_EQ(accesses.size(), was.accesses.size());
        for (std::size_t j = 0; j < accesses.size(); ++j) {
          ASSERT_EQ(store.blocks()[accesses[j].block].number, was.accesses[j]);
        }
        if (was.block == 0) continue;
        const Block block = store.blocks()[operation.block];
        ASSERT_EQ(block.number, was.block);
        ASSERT_EQ(operation.kind == OperationKind::kMalloc ? block.birth : block.death, k);
      }
      for (std::size_t lane_index = 0; lane_index < of_lanes.size(); ++lane_index) {
        const Lane& its = store.lanes()[lane_index];
        ASSERT_EQ(its.operations.size(), of_lanes[lane_index].size());
        std::vector<std::uint64_t> tokens(its.operations.size());
        its.operations.copy_tokens(0, tokens);
        std::uint64_t bytes = 0;
        for (std::size_t j = 0; j < tokens.size(); ++j) {
          const std::uint32_t at = of_lanes[lane_index][j];
          const Operation operation = store.operations()[at];
          ASSERT_EQ(its.operations[j], at);
          ASSERT_EQ(operation.lane_index, j);
          ASSERT_EQ(tokens[j], operation.token);
          ASSERT_EQ(its.operations.count_before(at), j);
          ASSERT_EQ(its.operations.count_before(at + 1), j + 1);
          if (operation.kind == OperationKind::kMalloc) bytes += store.blocks()[operation.block].bytes;
        }
        ASSERT_EQ(its.malloc_bytes, bytes);
      }
    }
    std::sort(live.begin(), live.end());
    std::vector<std::uint64_t> known;
    for (const std::uint32_t block : store.live_blocks()) {
      if (store.blocks()[block].known) known.push_back(store.blocks()[block].number);
    }
    EXPECT_EQ(known, live) << "seed " << seed;
  }
}

TEST(BlockNumbers, AreWhatAMapIs) {
  std::mt19937_64 random(7);
  BlockNumbers numbers;
  std::unordered_map<std::uint64_t, std::uint32_t> map;
  for (std::uint32_t i = 0; i < 200'000; ++i) {
    // Numbers in a row, at large even distances, and any.
    const std::uint64_t number = 1 + (random() % 5000 << (random() % 3 * 20));
    const auto there = map.find(number);
    BlockNumbers::Entry* const found = numbers.find(number);
    ASSERT_EQ(found != nullptr, there != map.end());
    if (found == nullptr) {
      numbers.insert(number, i, false);
      map.emplace(number, i);
    } else {
      ASSERT_EQ(found->block, there->second);
      if (random() % 2 == 0) {
        numbers.erase(found);
        map.erase(there);
      }
    }
    ASSERT_EQ(numbers.size(), map.size());
  }
  EXPECT_EQ(numbers.find(0), nullptr);
  numbers.for_each([&](const BlockNumbers::Entry& entry) {
    EXPECT_EQ(map.at(entry.number), entry.block);
    map.erase(entry.number);
  });
  EXPECT_TRUE(map.empty());
}

TEST(OperationStore, AfterAGapBlocksAreInDoubtUntilNamed) {
  OperationStore store;
  RecordBuilder builder;
  for (std::uint64_t block = 1; block <= 3; ++block) store.add(0, builder.malloc(block, 512));
  const std::uint64_t kept[] = {2};
  store.add_gap(kept);
  EXPECT_TRUE(store.operations().empty());
  const std::uint64_t accesses[] = {3};
  store.add(0, builder.launch(1, accesses));
  std::vector<bool> doubtful;
  for (const std::uint32_t block : store.live_blocks()) doubtful.push_back(store.blocks()[block].doubtful);
  EXPECT_EQ(doubtful, (std::vector<bool>{true, false, false}));
}

TEST(OperationStore, ImpossibleSizesAreNotPlaceable) {
  OperationStore store;
  RecordBuilder builder;
  std::uint64_t block = 1;
  for (const std::uint64_t bytes : {std::uint64_t{0}, kMaxPlacedBytes + 1, ~std::uint64_t{0}}) {
    store.add(0, builder.malloc(block++, bytes));
    EXPECT_FALSE(store.blocks()[store.operations().back().block].placeable);
  }
  store.add(0, builder.malloc(block, kMaxPlacedBytes));
  EXPECT_TRUE(store.blocks()[store.operations().back().block].placeable);
  // Allocated again without a free: the first is gone.
  store.add(0, builder.malloc(block, 512));
  EXPECT_EQ(store.live_blocks().size(), 4u);
  store.add(0, builder.free(block));
  store.add(0, builder.free(block));
  EXPECT_EQ(store.live_blocks().size(), 3u);
}

}  // namespace
}  // namespace memopt::planner
