// What the program makes while it is off its plan may lie in the slab and stay there: the plans that follow leave it
// its bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "planner/iteration/plan_bytes.h"
#include "tests/planner/iteration/stream.h"

namespace memopt::planner {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kState = std::uint64_t{0x7e00} << 32;
constexpr std::uint64_t kSlab = std::uint64_t{0x7f00} << 32;

class BlocksInTheSlab : public testing::Test {
 protected:
  // An iteration, or a part of one: two blocks, which live at once.
  void iterate(int times = 1) {
    for (int i = 0; i < times; ++i) {
      const std::uint64_t first = stream.malloc(4 * kMiB, 1), second = stream.malloc(4 * kMiB, 2);
      stream.launch(10, {first, second});
      stream.free(first);
      stream.free(second);
    }
  }
  // The same with a block more behind every `parts` of it.
  void iterate_outer(int parts, int times) {
    for (int i = 0; i < times; ++i) {
      iterate(parts);
      const std::uint64_t block = stream.malloc(6 * kMiB, 3);
      stream.launch(11, {block});
      stream.free(block);
    }
  }
  // A step of several of those, and one large block.
  void iterate_step(int times, int loops = 0) {
    for (int i = 0; i < times; ++i) {
      if (loops == 0) iterate_outer(16, 3);
      iterate(loops);
      const std::uint64_t block = stream.malloc(14 * kMiB, 5);
      stream.launch(13, {block});
      stream.free(block);
    }
  }
  void live() { report(shm::StateChange::kLive); }
  void report(shm::StateChange change) { stream.add(stream.builder.state(change, stream.plans.size(), kSlab)); }
  std::uint64_t malloc_at(std::uint64_t address, std::uint64_t bytes) {
    stream.add(stream.builder.malloc(next_, bytes, 4, 8, address));
    return next_++;
  }

  // No place has a byte of [begin, end) of the slab.
  static bool leaves(const IterationPlan& plan, std::uint64_t begin, std::uint64_t end) {
    const PlanParts parts = plan_parts(plan, {});
    return std::none_of(parts.places.begin(), parts.places.end(), [&](const shm::Place& place) {
      return place.offset < end && begin < place.offset + place.bytes;
    });
  }
  const IterationPlan& last() const { return stream.plans.back().plan; }

  Stream stream;

 private:
  std::uint64_t next_ = 1'000'000;
};

TEST_F(BlocksInTheSlab, KeepTheirBytesInTheNextPlan) {
  iterate(100);
  ASSERT_EQ(stream.plans.size(), 1u);
  EXPECT_EQ(last().footprint(), 8 * kMiB);
  live();
  iterate(3);
  report(shm::StateChange::kDeviated);
  const std::uint64_t state = malloc_at(kSlab + 3 * kMiB, 2 * kMiB);
  const std::uint64_t elsewhere = malloc_at(kSlab + 100 * kMiB, 5 * kMiB);
  stream.launch(12, {state, elsewhere});
  iterate_outer(16, 12);
  ASSERT_EQ(stream.plans.size(), 2u) << stream.planner.note();
  const IterationPlan& plan = last();
  EXPECT_EQ(plan.lifetimes.lanes[0].mallocs.size(), 33u);
  EXPECT_EQ(stream.planner.persistent(), (std::vector<std::uint64_t>{state, elsewhere}));
  EXPECT_TRUE(leaves(plan, 3 * kMiB, 5 * kMiB));
  EXPECT_EQ(plan.lifetimes.persistent_bytes, 5 * kMiB) << "of those beside the slab";
  EXPECT_EQ(plan.lifetimes.peak_load, 15 * kMiB);
  EXPECT_EQ(plan.outcome.solution.height, 13 * kMiB) << "below it is no room for a block";
}

TEST_F(BlocksInTheSlab, MoveTheIterationThatGoesOn) {
  iterate(100);
  live();
  iterate(3);
  report(shm::StateChange::kDeviated);
  malloc_at(kSlab + kMiB, kMiB);
  iterate(100);
  ASSERT_EQ(stream.plans.size(), 2u) << "its places are taken for ever";
  EXPECT_EQ(last().lifetimes.signature, stream.plans[0].plan.lifetimes.signature);
  EXPECT_TRUE(leaves(last(), kMiB, 2 * kMiB));
  report(shm::StateChange::kDeviated);
  iterate(100);
  EXPECT_EQ(stream.plans.size(), 2u) << "nothing is in the way";
}

TEST_F(BlocksInTheSlab, MoveNothingFromWhereNoPlaceIs) {
  iterate(100);
  live();
  report(shm::StateChange::kDeviated);
  malloc_at(kSlab + 8 * kMiB, kMiB);
  iterate(100);
  EXPECT_EQ(stream.plans.size(), 1u);
}

// After a pause of the recording it is not known what was freed meanwhile.
TEST_F(BlocksInTheSlab, OfTwoInOnePlaceTheLaterOneIsThere) {
  iterate(100);
  live();
  report(shm::StateChange::kDeviated);
  const std::uint64_t freed_unseen = malloc_at(kSlab + kMiB, 2 * kMiB);
  const std::uint64_t below = malloc_at(kSlab, kMiB);
  iterate(100);
  report(shm::StateChange::kRestarted);
  const std::uint64_t later = malloc_at(kSlab + 2 * kMiB, 2 * kMiB);
  stream.launch(12, {freed_unseen, below, later});
  iterate(100);
  ASSERT_EQ(stream.plans.size(), 3u);
  ASSERT_EQ(last().lifetimes.in_slab.size(), 2u);
  EXPECT_EQ(last().lifetimes.in_slab[0].offset, 0u);
  EXPECT_EQ(last().lifetimes.in_slab[1].offset, 2 * kMiB);
  EXPECT_TRUE(leaves(last(), 2 * kMiB, 4 * kMiB));
}

TEST_F(BlocksInTheSlab, AreForgottenWithTheirContext) {
  iterate(100);
  live();
  report(shm::StateChange::kDeviated);
  stream.add(stream.builder.state(shm::StateChange::kNewContext, 0, 0));
  malloc_at(kSlab, kMiB);
  iterate(200);
  ASSERT_EQ(stream.plans.size(), 2u);
  EXPECT_TRUE(last().lifetimes.in_slab.empty());
}

// Places of pools, and of iterations whose blocks outlive them.
TEST_F(BlocksInTheSlab, AreLeftAlsoByPools) {
  std::vector<std::uint64_t> kept(3, 0);
  const auto iterate_crossing = [&](int times) {
    for (int i = 0; i < times; ++i) {
      iterate();
      for (std::uint64_t& block : kept) {
        const std::uint64_t next = stream.malloc(kMiB, 5);
        stream.launch(12, {next});
        if (block != 0) stream.free(block);
        block = next;
      }
    }
  };
  iterate_crossing(100);
  ASSERT_EQ(stream.plans.size(), 1u) << stream.planner.note();
  ASSERT_TRUE(last().pools);
  live();
  report(shm::StateChange::kDeviated);
  malloc_at(kSlab + 2 * kMiB, kMiB);
  iterate_crossing(100);
  ASSERT_EQ(stream.plans.size(), 2u);
  ASSERT_TRUE(last().pools);
  EXPECT_TRUE(leaves(last(), 2 * kMiB, 3 * kMiB));
  // The next one keeps its places.
  report(shm::StateChange::kDeviated);
  malloc_at(kSlab + 5 * kMiB, 512);
  iterate_crossing(300);
  ASSERT_EQ(stream.plans.size(), 3u);
  EXPECT_TRUE(leaves(last(), 2 * kMiB, 3 * kMiB));
  EXPECT_TRUE(leaves(last(), 5 * kMiB, 5 * kMiB + 512));
}

// A chunk of which a block that stays leaves most is kept where that is best for a part of the program's step, and is
// in the way of a larger block of the step.
TEST_F(BlocksInTheSlab, AChunkIsKeptNoLongerWhereALargeBlockIsToLie) {
  constexpr std::uint64_t kChunk = 2 * kMiB;
  stream.planner.keep_chunks_of(kChunk);
  const std::uint64_t weights = stream.malloc(kMiB / 2, 20);
  stream.launch(12, {weights});
  iterate(100);
  ASSERT_EQ(stream.plans.size(), 1u);
  ASSERT_EQ(last().lifetimes.kept_chunks.size(), 1u);
  live();
  report(shm::StateChange::kDeviated);
  const std::uint64_t state = malloc_at(kState, kMiB / 2);
  stream.launch(12, {state});
  iterate_outer(16, 12);
  ASSERT_EQ(stream.plans.size(), 2u) << stream.planner.note();
  const std::vector<KeptChunk> kept = last().lifetimes.kept_chunks;
  ASSERT_EQ(kept.size(), 2u);
  live();
  report(shm::StateChange::kDeviated);
  const std::uint64_t before = stream.plans.size();
  iterate_step(60);
  ASSERT_EQ(stream.plans.size(), before + 1) << stream.planner.note();
  const IterationPlan step = last();
  EXPECT_EQ(step.lifetimes.kept_chunks, std::vector<KeptChunk>{kept[0]});
  EXPECT_EQ(step.footprint(), 15 * kMiB) << "the large block and the two that stay";
  // The program has a block in the chunk, and can't do without it; nor by a better layout, which it was sent meanwhile.
  stream.planner.sent(before + 2);
  stream.planner.refused(0);
  iterate_step(60);
  ASSERT_EQ(stream.plans.size(), before + 2) << stream.planner.note();
  EXPECT_EQ(last().lifetimes.kept_chunks, kept);
  EXPECT_TRUE(leaves(last(), kept[1].offset, kept[1].offset + kMiB / 2));
  EXPECT_GT(last().footprint(), 24 * kMiB);
}

// The same chunk as one that no plan has kept yet.
TEST_F(BlocksInTheSlab, AChunkIsNotKeptWhereALargeBlockIsToLie) {
  constexpr std::uint64_t kChunk = 2 * kMiB;
  stream.planner.keep_chunks_of(kChunk);
  iterate(100);
  ASSERT_EQ(stream.plans.size(), 1u);
  live();
  report(shm::StateChange::kDeviated);
  const std::uint64_t state = malloc_at(kState, kMiB / 2);
  stream.launch(12, {state});
  iterate_step(60, 3);
  const IterationPlan& step = last();
  EXPECT_EQ(step.lifetimes.peak_load, 14 * kMiB + kMiB / 2);
  EXPECT_TRUE(step.lifetimes.kept_chunks.empty());
  EXPECT_EQ(step.footprint(), 14 * kMiB + kMiB / 2);
}

}  // namespace
}  // namespace memopt::planner
