// Which plans go live, and what is given back then: the arena over a driver that knows what is mapped where.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "agent/link/link.h"
#include "agent/memory/arena.h"
#include "agent/memory/arena_state.h"
#include "agent/recording/recorder.h"
#include "tests/agent/fake_memory.h"
#include "tests/agent/memory/plans_of_the_arena.h"
#include "tests/agent/plan_builder.h"

// The arena and its link are never destroyed: what they hold at the end is no leak.
extern "C" [[gnu::visibility("default")]] int __lsan_is_turned_off() { return 1; }

namespace memopt::agent {
namespace {

TEST_F(PlansOfTheArena, OneThatNeedsMoreThanIsHeldWithoutItDoesNotGoLive) {
  const CUdeviceptr weights = allocate(10 * kChunk);
  iterate();
  const std::uint64_t before = held();
  EXPECT_EQ(before, 12 * kChunk);
  send(1, 8 * kChunk, {weights});
  iterate();
  iterate();
  EXPECT_EQ(arena()->plan, nullptr);
  EXPECT_EQ(held(), before);
  EXPECT_EQ(status().note,
            "it needs 36.0 MiB (4.0 MiB laid out in 16.0 MiB, beside what stays), and 24.0 MiB are held without it");
  send(2, 3 * kChunk, {weights});
  for (int i = 0; i < 2; ++i) iterate();
  ASSERT_NE(arena()->plan, nullptr) << "a chunk more is where the slab ends";
  EXPECT_EQ(arena()->plan->generation, 2u);
  EXPECT_NE(status().note.substr(0, 8), "it needs");
}

TEST_F(PlansOfTheArena, OneThatSwapsIsRefusedWhereThereIsNoLimitOrOtherChunks) {
  iterate();
  std::string why;
  const std::unique_ptr<const Plan> plan = parse_plan(test::PlanBuilder::swapping().bytes(), &why);
  ASSERT_NE(plan, nullptr) << why;
  const auto adopt = [&] {
    ArenaLock lock;
    arena_adopt(*arena(), *plan);
    EXPECT_EQ(arena()->next, nullptr);
  };
  adopt();
  EXPECT_EQ(status().note, "it swaps 6 times an iteration: expected no swaps, as there is no limit");
  EXPECT_EQ(link_control()->refused_generation.load(), plan->generation);
  EXPECT_EQ(arena_set_limit("64MiB").error, "");
  adopt();
  EXPECT_EQ(status().note, "its chunks have 1024 bytes: expected 2097152");
  EXPECT_EQ(arena_set_limit("none").error, "");
}

TEST_F(PlansOfTheArena, ThePlannerIsToldByHowMuchOneIsTooLarge) {
  const CUdeviceptr weights = allocate(10 * kChunk);
  iterate();
  const std::uint64_t before = held();
  const std::uint64_t slab = 8 * kChunk + kChunk / 4;  // 9 chunks
  send(5, slab, {weights});
  ASSERT_NE(link_control(), nullptr);
  EXPECT_EQ(link_control()->refused_generation.load(), 5u);
  const std::uint64_t excess = link_control()->refused_excess.load();
  EXPECT_EQ(slab - excess, before + 2 * kChunk - 10 * kChunk);
  send(6, slab - excess + 1, {weights});
  EXPECT_EQ(link_control()->refused_generation.load(), 6u);
  EXPECT_EQ(link_control()->refused_excess.load(), 1u);
  send(7, slab - excess, {weights});
  EXPECT_EQ(link_control()->refused_generation.load(), 6u);
  EXPECT_EQ(arena()->phase, Arena::Phase::kArmed);
}

TEST_F(PlansOfTheArena, WhileTheProgramKeepsToOneThatWasDeclinedNothingIsRecorded) {
  iterate();
  send(1, 20 * kChunk);
  for (std::uint64_t i = 0; i < kCalm; ++i) {
    EXPECT_TRUE(recording()) << i;
    iterate();
  }
  iterate();
  EXPECT_FALSE(recording());
  EXPECT_EQ(arena()->plan, nullptr);
  // A second one that is declined does not lose the place in the first.
  send(2, 18 * kChunk);
  iterate();
  EXPECT_FALSE(recording());
  // The program goes on with something else.
  free(allocate(kOther));
  EXPECT_TRUE(recording());
  for (int i = 0; i < 100; ++i) free(allocate(kOther));
  EXPECT_TRUE(recording());
}

TEST_F(PlansOfTheArena, ABetterOneIsTakenAfterwards) {
  free(allocate(8 * kChunk));
  send(1, 20 * kChunk);
  for (std::uint64_t i = 0; i < 2 * kCalm; ++i) iterate();
  ASSERT_FALSE(recording());
  send(2, 4 * kChunk);
  EXPECT_TRUE(recording()) << "until it is live nothing else tells when the program changes";
  for (int i = 0; i < 2; ++i) iterate();
  ASSERT_NE(arena()->plan, nullptr);
  EXPECT_EQ(arena()->plan->generation, 2u);
  EXPECT_EQ(status().note, "");
  for (std::uint64_t i = 0; i < 2 * kCalm; ++i) iterate();
  EXPECT_FALSE(recording());
}

TEST_F(PlansOfTheArena, OneThatIsLeftSoonIsRecordedForLonger) {
  iterate();
  send(1, 20 * kChunk);
  const auto recorded = [] {
    int count = 0;
    while (recording()) {
      iterate();
      ++count;
    }
    return count;
  };
  const int first = recorded();
  free(allocate(kOther));
  EXPECT_TRUE(recording());
  EXPECT_GT(recorded(), 3 * first);
}

TEST_F(PlansOfTheArena, OfALoopThatIsPlannedInAnIterationThatIsDeclinedNothingMoreIsRecorded) {
  constexpr int kLoops = 6;
  iterate_outer(kLoops, 2);
  send(1, 2 * kChunk);
  iterate_outer(kLoops, 3);
  ASSERT_NE(arena()->plan, nullptr);
  EXPECT_TRUE(recording()) << "the loop's plan is left each time";
  send_outer(2, kLoops, 40 * kChunk);
  iterate_outer(kLoops, kCalm + 3);
  EXPECT_EQ(arena()->plan->generation, 1u);
  EXPECT_FALSE(recording());
  const std::uint64_t deviations = arena()->deviations;
  iterate_outer(kLoops, 10);
  EXPECT_EQ(arena()->deviations, deviations + 10);
  EXPECT_FALSE(recording());
  // The loop goes on without end: that has its plan.
  for (int i = 0; i < 10 * kLoops || recording(); ++i) {
    iterate();
    ASSERT_LT(i, 1000);
  }
  EXPECT_FALSE(recording());
  EXPECT_EQ(arena()->declined.plan, nullptr);
}

TEST_F(PlansOfTheArena, OneThatIsTooLargeDoesNotTakeThePlaceOfOneThatIsArmed) {
  iterate();
  send(1, 2 * kChunk);
  send(2, 20 * kChunk);
  for (int i = 0; i < 2; ++i) iterate();
  ASSERT_NE(arena()->plan, nullptr);
  EXPECT_EQ(arena()->plan->generation, 1u);
}

TEST_F(PlansOfTheArena, WhatStaysCountsByTheChunksThatItKeeps) {
  std::vector<CUdeviceptr> stays;
  std::vector<CUdeviceptr> others;
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 4; ++j) (j == 0 ? stays : others).push_back(allocate(kChunk / 4 - 512));
  }
  for (const CUdeviceptr block : others) free(block);
  iterate();
  EXPECT_EQ(held(), 10 * kChunk);
  send(1, 5 * kChunk, stays);
  for (int i = 0; i < 2; ++i) iterate();
  EXPECT_EQ(arena()->plan, nullptr) << "eight chunks with a small block in each, and five";
}

TEST_F(PlansOfTheArena, OneThatNeedsMoreThanTheLastGoesLiveOnlyWhereThatDoesNotFitAnyMore) {
  const CUdeviceptr large = allocate(20 * kChunk);
  free(large);
  send(1, 4 * kChunk);
  for (int i = 0; i < 8; ++i) iterate();
  ASSERT_NE(arena()->plan, nullptr);
  send(2, 8 * kChunk);
  iterate();
  EXPECT_EQ(arena()->plan->generation, 1u);
  EXPECT_EQ(
      status().note,
      "it needs 16.0 MiB (4.0 MiB laid out in 16.0 MiB, beside what stays), and 8.0 MiB are enough for the last one");
  // The program makes something else.
  const CUdeviceptr other = allocate(12 * kChunk);
  send(3, 8 * kChunk);
  free(other);
  for (int i = 0; i < 4; ++i) iterate();
  EXPECT_EQ(arena()->plan->generation, 3u);
}

// A loop within a step was planned first, and nothing else of the step has come yet.
TEST_F(PlansOfTheArena, OneThatNeedsMoreThanTheLastGoesLiveWhereThatHasNotShownThatItIsEnough) {
  free(allocate(20 * kChunk));
  send(1, 2 * kChunk);
  for (int i = 0; i < 2; ++i) iterate();
  ASSERT_NE(arena()->plan, nullptr);
  send(2, 7 * kChunk);
  for (int i = 0; i < 2; ++i) iterate();
  EXPECT_EQ(arena()->plan->generation, 2u);
}

TEST_F(PlansOfTheArena, WhatThePlanDoesNotNeedIsGivenBackHoweverMuchItIs) {
  free(allocate(200 * kChunk));
  send(1, 4 * kChunk);
  for (int i = 0; i < 30; ++i) iterate();
  ASSERT_NE(arena()->plan, nullptr);
  EXPECT_EQ(held(), 4 * kChunk);
  EXPECT_FALSE(arena()->housekeeping);
}

TEST_F(PlansOfTheArena, WhatTheSlabTookHoldsNothingUp) {
  free(allocate(220 * kChunk));
  send(1, 150 * kChunk);
  for (int i = 0; i < 60; ++i) iterate();
  ASSERT_NE(arena()->plan, nullptr);
  EXPECT_EQ(held(), 150 * kChunk);
  EXPECT_EQ(fake.mapped.size(), 300u) << "where it was, too: to unmap it would take time and give nothing";
  EXPECT_FALSE(arena()->housekeeping);
}

TEST_F(PlansOfTheArena, NoMoreIsHeldWhileAPlanIsSwitchedIn) {
  // Each block is freed in the next iteration, before its successor is made.
  const CUdeviceptr first = allocate(kBlock);
  free(first);
  CUdeviceptr block = allocate(kBlock);
  const auto cross = [&] {
    free(block);
    block = allocate(kBlock);
  };
  const std::uint64_t before = held();
  send(1, kBlock);
  for (int i = 0; i < 12; ++i) cross();
  ASSERT_NE(arena()->plan, nullptr);
  EXPECT_EQ(chunks_peak(), before);
  EXPECT_EQ(held(), 2 * kChunk);
  EXPECT_EQ(arena()->slab.lent_chunks(), 0u);
}

// As PyTorch does before it captures a step that it replays from then on.
TEST_F(PlansOfTheArena, WhereTheProgramWantsIdleMemoryBackItGoesThoughAPlanWaitsForIt) {
  for (int i = 0; i < 2; ++i) free(allocate(8 * kChunk));
  iterate();
  send(1, 6 * kChunk);
  ASSERT_EQ(arena()->phase, Arena::Phase::kArmed);
  EXPECT_EQ(held(), 8 * kChunk);
  {
    ArenaLock lock;
    arena_trim(*arena());
  }
  EXPECT_EQ(held(), 0u);
  for (int i = 0; i < 3; ++i) iterate();
  ASSERT_NE(arena()->plan, nullptr) << "it goes live all the same";
  EXPECT_EQ(held(), 6 * kChunk);
  {
    ArenaLock lock;
    arena_trim(*arena());
  }
  EXPECT_EQ(held(), 6 * kChunk) << "what a live plan has is not idle";
}

// Of a batch of another size, for whose chunks new ones would be made.
TEST_F(PlansOfTheArena, OneGoesLiveWhereMostlyBlocksLiveThatItKnows) {
  iterate();
  const CUdeviceptr unknown = allocate(kChunk);
  send(1, kBlock);
  for (int i = 0; i < 10; ++i) iterate();
  EXPECT_EQ(arena()->plan, nullptr);
  free(unknown);
  for (int i = 0; i < 2; ++i) iterate();
  EXPECT_NE(arena()->plan, nullptr);
}

TEST_F(PlansOfTheArena, OneDoesNotWaitForEverForWhatItDoesNotKnow) {
  iterate();
  ASSERT_NE(allocate(kChunk), 0u);
  send(1, kBlock);
  for (int i = 0; i < 30; ++i) iterate();
  EXPECT_EQ(arena()->plan, nullptr);
  for (int i = 0; i < 10; ++i) iterate();
  EXPECT_NE(arena()->plan, nullptr);
}

// Batches of a size of their own each time, of which two were alike by chance.
TEST_F(PlansOfTheArena, OneThatIsNotKeptToAndCostsMemoryIsLeft) {
  iterate();
  send(1, kBlock);
  for (int i = 0; i < 3; ++i) iterate();
  ASSERT_NE(arena()->plan, nullptr);
  const std::uint64_t serial = arena()->serial;
  for (int i = 0; i < 200 && arena()->plan != nullptr; ++i) {
    iterate();
    free(allocate(kOther));
    EXPECT_TRUE(arena()->plan != nullptr || i > 14) << "after " << i << " iterations";
  }
  ASSERT_EQ(arena()->plan, nullptr);
  EXPECT_NE(arena()->serial, serial);
  EXPECT_EQ(link_control()->refused_generation.load(), 1u);
  EXPECT_EQ(link_control()->refused_excess.load(), 0u);
  EXPECT_EQ(status().note.substr(0, 19), "it was not kept to:") << status().note;
  EXPECT_TRUE(recording());
  for (int i = 0; i < 20; ++i) {
    iterate();
    free(allocate(kOther));
  }
  EXPECT_EQ(arena()->slab.window().bytes, 0u) << "what the slab had serves the program";
  EXPECT_LE(held(), kOther + kBlock);
  // What comes later may do better.
  send_outer(2, 1, kOther + kChunk);
  for (int i = 0; i < 4; ++i) iterate_outer(1);
  ASSERT_NE(arena()->plan, nullptr);
  EXPECT_EQ(arena()->plan->generation, 2u);
}

// That they lie elsewhere is no reason to leave it.
TEST_F(PlansOfTheArena, OneThatHasNoPlaceForSomeBlocksIsKeptTo) {
  const auto both = [] {
    iterate();
    free(allocate(kOther));
  };
  both();
  send_without_place(1, kBlock);
  for (int i = 0; i < 3; ++i) both();
  ASSERT_NE(arena()->plan, nullptr);
  EXPECT_EQ(arena()->deviations, 0u);
  const std::uint64_t displaced = arena()->displaced;
  for (int i = 0; i < 200; ++i) both();
  EXPECT_NE(arena()->plan, nullptr) << status().note;
  EXPECT_EQ(arena()->deviations, 0u);
  EXPECT_EQ(arena()->displaced - displaced, 200u);
  EXPECT_GE(arena()->kept_iterations, 200u);
}

constexpr std::uint64_t kSlab = 8 * kChunk;

// What the framework's own allocator would hold; 0: not known.
class BesideANativeAllocator : public PlansOfTheArena, public testing::WithParamInterface<std::uint64_t> {
 public:
  static constexpr std::uint64_t kBoth = kSlab + kOther;
};

TEST_P(BesideANativeAllocator, WhatHasNoPlaceLiesInTheSlabWhereItWouldBeMoreThanNatively) {
  link_control()->framework_reserved.store(GetParam());
  for (int i = 0; i < 4; ++i) free(allocate(kSlab));
  const auto both = [] {
    iterate();
    const CUdeviceptr other = allocate(kOther);
    const bool in_slab = arena()->slab.covers(other);
    free(other);
    return in_slab;
  };
  both();
  send_without_place(1, kSlab);
  for (int i = 0; i < 20; ++i) both();
  link_control()->framework_reserved.store(0);
  ASSERT_NE(arena()->plan, nullptr) << status().note;
  EXPECT_EQ(arena()->deviations, 0u);
  const bool too_much = GetParam() != 0 && GetParam() < kBoth;
  EXPECT_EQ(held(), too_much ? kSlab : kBoth);
  EXPECT_EQ(both(), false) << "there is room beside it, or it is not known any more";
}

INSTANTIATE_TEST_SUITE_P(Holding, BesideANativeAllocator,
                         testing::Values(0, BesideANativeAllocator::kBoth, kSlab + kChunk, kSlab));

// As an optimizer's states, which come behind the loop that is planned: they would be in the way of more.
TEST_F(PlansOfTheArena, WhatIsMadeWhenTheFirstPlanIsLeftLiesAtTheSlabsEnd) {
  for (int i = 0; i < 4; ++i) free(allocate(8 * kChunk));
  iterate();
  send(1, 8 * kChunk);
  for (int i = 0; i < 3; ++i) iterate();
  ASSERT_NE(arena()->plan, nullptr);
  const std::uint64_t base = arena()->slab.window().base;
  const CUdeviceptr states = allocate(kChunk / 2);
  EXPECT_EQ(states, base + 8 * kChunk - kChunk / 2);
  iterate();
  const CUdeviceptr kept = allocate(kBlock);
  EXPECT_EQ(kept, base) << "in its place";
  free(kept);
  const CUdeviceptr later = allocate(kChunk / 2);
  EXPECT_EQ(later, base) << "the next time it goes as it did before";
  free(later);
  free(states);
}

TEST_F(PlansOfTheArena, OneThatIsSeldomLeftStays) {
  iterate();
  send(1, kBlock);
  for (int i = 0; i < 300; ++i) {
    iterate();
    if (i % 20 == 19) free(allocate(kOther));
  }
  EXPECT_NE(arena()->plan, nullptr);
}

// What comes seldom and stays for long is held beside it.
TEST_F(PlansOfTheArena, OneByWhichMoreIsHeldThanNativelyIsLeftSoon) {
  constexpr int kTimes = 12;
  const auto left_after = [&](std::uint64_t natively) {
    link_control()->framework_reserved.store(natively);
    for (int i = 0; i < kTimes; ++i) {
      if (arena()->plan == nullptr) return i;
      iterate();
    }
    return kTimes;
  };
  iterate();
  send(1, kBlock);
  for (int i = 0; i < 3; ++i) iterate();
  const CUdeviceptr states = allocate(8 * kChunk);
  iterate();
  ASSERT_NE(arena()->plan, nullptr);
  const std::uint64_t now = held();
  EXPECT_EQ(now, 8 * kChunk + kBlock);
  EXPECT_EQ(left_after(0), kTimes) << "it is not known";
  EXPECT_EQ(left_after(now - 2 * kChunk), kTimes) << "the last chunks";
  EXPECT_LT(left_after(now - 3 * kChunk), kTimes);
  EXPECT_EQ(status().note.substr(0, 19), "it was not kept to:") << status().note;
  EXPECT_EQ(link_control()->refused_generation.load(), 1u);
  link_control()->framework_reserved.store(0);
  free(states);
}

TEST_F(PlansOfTheArena, OneThatIsOftenLeftAndSavesMemoryStays) {
  for (int i = 0; i < 3; ++i) {
    const CUdeviceptr block = allocate(kBlock);
    const CUdeviceptr other = allocate(5 * kChunk);
    free(block);
    free(other);
  }
  send(1, kBlock);
  for (int i = 0; i < 300; ++i) {
    iterate();
    free(allocate(kOther));
  }
  EXPECT_NE(arena()->plan, nullptr);
}

TEST_F(PlansOfTheArena, AChunkThatTheNextPlanDoesNotKeepLeavesTheSlab) {
  const CUdeviceptr weights = weights_in_slab();
  const CUdeviceptr in_it = allocate(kBlock);
  send(2, 2 * kBlock, {weights});
  iterate();
  EXPECT_EQ(arena()->plan->generation, 1u) << "a block of the last plan lies in it";
  free(in_it);
  for (int i = 0; i < 2; ++i) iterate();
  EXPECT_EQ(arena()->plan->generation, 2u) << status().note;
  EXPECT_TRUE(arena()->slab.keeps_only({}));
  EXPECT_EQ(arena()->slab.gone_chunks(), 0u);
  const CUdeviceptr first = allocate(kBlock);
  EXPECT_EQ(first, arena()->slab.window().base) << "in the place of the next plan";
  free(first);
  EXPECT_NE(arena_free(weights).result, CUDA_ERROR_INVALID_VALUE);
}

// As the plan of a planner that does not know what is kept.
TEST_F(PlansOfTheArena, AChunkThatTheNextPlanKeepsElsewhereLeavesTheSlab) {
  const CUdeviceptr weights = weights_in_slab();
  send_keeping(2, weights, kChunk);
  for (int i = 0; i < 3; ++i) iterate();
  EXPECT_EQ(arena()->plan->generation, 2u) << status().note;
  EXPECT_TRUE(arena()->slab.keeps_only({})) << "it is held beside the slab";
  EXPECT_EQ(arena()->slab.gone_chunks(), 0u);
  EXPECT_NE(arena_free(weights).result, CUDA_ERROR_INVALID_VALUE);
}

TEST_F(PlansOfTheArena, APlanIsRefusedIfABlockStaysInAChunkThatItDoesNotKeep) {
  const CUdeviceptr weights = weights_in_slab();
  const CUdeviceptr in_it = allocate(kBlock);
  send(2, 2 * kBlock, {weights});
  for (int i = 0; i < 8; ++i) iterate();
  EXPECT_EQ(arena()->plan->generation, 1u);
  EXPECT_EQ(arena()->next, nullptr);
  EXPECT_NE(status().note.find("takes out of the slab"), std::string::npos) << status().note;
  free(in_it);
}

// Such plans know nothing of chunks in which others have a part.
TEST_F(PlansOfTheArena, UnderALimitASlabThatKeepsChunksMakesWayForThePlanThatComes) {
  const CUdeviceptr weights = weights_in_slab();
  EXPECT_EQ(arena_set_limit("64MiB").error, "");
  iterate();
  ASSERT_NE(arena()->plan, nullptr) << "it is within the limit";
  start_recording(false);
  send(2, kBlock, {weights});
  for (int i = 0; i < 6; ++i) iterate();
  ASSERT_NE(arena()->plan, nullptr) << status().note;
  EXPECT_EQ(arena()->plan->generation, 2u);
  EXPECT_TRUE(arena()->slab.keeps_only({}));
  EXPECT_NE(arena_free(weights).result, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(arena_set_limit("none").error, "");
}

TEST_F(PlansOfTheArena, WhatIsInUseForLongIsGivenBackAfterwards) {
  const CUdeviceptr large = allocate(40 * kChunk);
  const std::uint64_t addresses[] = {large};
  Operation operation;
  EXPECT_TRUE(use_addresses({reinterpret_cast<CUstream>(0x100), false}, false, addresses, &operation));
  queued();
  fake.busy = true;
  free(large);
  send(1, 4 * kChunk);
  for (int i = 0; i < 100; ++i) iterate();
  ASSERT_NE(arena()->plan, nullptr);
  EXPECT_GT(held(), 30 * kChunk);
  EXPECT_LT(fake.queries, 200) << "it is asked about ever less";
  fake.busy = false;
  for (int i = 0; i < 150; ++i) iterate();
  EXPECT_EQ(held(), 4 * kChunk);
}

}  // namespace
}  // namespace memopt::agent
