// What is kept of records, and what is left after forgetting.
#include "planner/iteration/operation_store.h"

#include <gtest/gtest.h>

#include <random>
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
