// What the arena gives back when a call of the driver's finds the device full, over a driver that knows what is mapped
// where.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "agent/agent.h"
#include "agent/memory/arena.h"
#include "agent/memory/arena_state.h"
#include "agent/memory/arena_streams.h"
#include "agent/order/current_context.h"
#include "agent/order/in_flight.h"
#include "agent/recording/recorder.h"
#include "tests/agent/arena_calls.h"
#include "tests/agent/fake_memory.h"

// The arena and its link are never destroyed: what they hold at the end is no leak.
extern "C" [[gnu::visibility("default")]] int __lsan_is_turned_off() { return 1; }

namespace memopt::agent {
namespace {

const auto kOurs = reinterpret_cast<CUcontext>(0x10);
const auto kOther = reinterpret_cast<CUcontext>(0x20);

// Beside FakeDriver.
struct Contexts {
  CUcontext current = kOurs;
  CUdevice device = 0;
  std::vector<CUcontext> pushed;
  int waits = 0;
  int waits_for_all = 0;
  bool waited_elsewhere = false;
  bool waited_with_the_lock = false;
};
Contexts g_contexts;

CUresult wait_for_work() {
  ++g_contexts.waits;
  g_contexts.waited_elsewhere |= g_contexts.current != kOurs;
  g_contexts.waited_with_the_lock |= __atomic_load_n(&arena_lock_word.word, __ATOMIC_RELAXED) != 0;
  return CUDA_SUCCESS;
}

Driver functions_with_contexts() {
  Driver driver = functions();
  driver.current_context = [](CUcontext* context) { return *context = g_contexts.current, CUDA_SUCCESS; };
  driver.current_device = [](CUdevice* device) { return *device = g_contexts.device, CUDA_SUCCESS; };
  driver.context_push = [](CUcontext context) {
    g_contexts.pushed.push_back(g_contexts.current);
    g_contexts.current = context;
    return CUDA_SUCCESS;
  };
  driver.context_pop = [](CUcontext* context) {
    *context = g_contexts.current;
    g_contexts.current = g_contexts.pushed.back();
    g_contexts.pushed.pop_back();
    return CUDA_SUCCESS;
  };
  driver.stream_synchronize = [](CUstream) { return wait_for_work(); };
  driver.synchronize_context = [] {
    ++g_contexts.waits_for_all;
    return wait_for_work();
  };
  driver.default_pool = [](CUmemoryPool*, CUdevice) { return CUDA_ERROR_NOT_SUPPORTED; };
  driver.event_elapsed = [](float*, CUevent, CUevent) { return CUDA_ERROR_NOT_READY; };
  return driver;
}

constexpr Interposer kInterposer{nullptr, 0, nullptr, nullptr, functions_with_contexts};

class Relieve : public testing::Test, protected ArenaCalls {
 protected:
  static void SetUpTestSuite() { begin_without_planner(kInterposer, "error"); }
  void SetUp() override {
    g_contexts = {};
    note_context_change();
    g_fake = &fake;
    forget_arena_after_fork();  // each test begins anew
  }

  // An iteration of two blocks, `within` while they live.
  template <typename Within>
  static void iterate(Within&& within) {
    const CUdeviceptr first = allocate(kHalf);
    const CUdeviceptr second = allocate(kHalf);
    ASSERT_NE(first, 0u);
    ASSERT_NE(second, 0u);
    use(first);
    use(second);
    within(first, second);
    free(first);
    free(second);
  }
  static void iterate() {
    iterate([](CUdeviceptr, CUdeviceptr) {});
  }

  // Armed, and live with the next iteration.
  static void arm(std::uint64_t slab_bytes = 2 * kHalf) {
    iterate();
    auto plan = std::make_unique<Plan>();
    plan->generation = 1;
    for (std::uint64_t i = 0; i < 2; ++i) {
      plan->mallocs.push_back({kHalf, 0, i, 1, static_cast<std::uint32_t>(i), i + 2});
      plan->places.push_back({i * kHalf, kHalf});
    }
    plan->slab_bytes = plan->peak_load = slab_bytes;
    plan->operations = 4;
    plan->lanes.push_back({current_lane(), 1, std::span<const shm::PlannedMalloc>(plan->mallocs)});
    {
      ArenaLock lock;
      arena_adopt(*arena(), *plan);
      for (int i = 0; i < 4; ++i) arena_build(*arena());
    }
    ASSERT_EQ(arena()->phase, Arena::Phase::kArmed);
  }
  void go_live() {
    arm();
    // Both mallocs are alike: the second one may be taken for a beginning, at which the first block lives.
    arena()->wait_for_known = 0;
    for (int i = 0; i < 4; ++i) iterate();
    ASSERT_EQ(arena()->phase, Arena::Phase::kLive);
    ASSERT_EQ(held(), 2 * kHalf);
  }
  std::uint64_t held() const { return fake.handles.size() * kChunk; }
  void expect_waits_were_right() const {
    EXPECT_FALSE(g_contexts.waited_elsewhere);
    EXPECT_FALSE(g_contexts.waited_with_the_lock) << "a host function may wait for a thread that wants it";
    EXPECT_TRUE(g_contexts.pushed.empty());
    EXPECT_EQ(g_contexts.waits_for_all, 0) << "more than what is to go back was waited for";
  }

  static constexpr std::uint64_t kHalf = 4 * kChunk;
  FakeDriver fake;
};

TEST_F(Relieve, WhatFreedBlocksLeftGoesBackWhateverContextAsks) {
  const CUdeviceptr stays = allocate(kChunk);
  const CUdeviceptr large = allocate(6 * kChunk);
  use(large);
  free(large);
  ASSERT_EQ(held(), 7 * kChunk);
  g_contexts.current = kOther;
  note_context_change();
  fake.busy = true;  // as far as is known without waiting
  EXPECT_TRUE(arena_relieve(Relief::kCached, 0));
  EXPECT_EQ(held(), kChunk);
  EXPECT_EQ(g_contexts.waits, 1);
  EXPECT_EQ(g_contexts.current, kOther);
  expect_waits_were_right();
  EXPECT_FALSE(arena_relieve(Relief::kAll, 0)) << "nothing is idle";
  EXPECT_EQ(g_contexts.waits, 1);
  free(stays);
}

TEST_F(Relieve, WhatIsOverIsNotWaitedFor) {
  const CUdeviceptr block = allocate(6 * kChunk);
  free(block);
  EXPECT_TRUE(arena_relieve(Relief::kCached, 5 * kChunk));
  EXPECT_EQ(held(), 0u);
  EXPECT_EQ(g_contexts.waits, 0);
}

TEST_F(Relieve, WorkOnBlocksThatLiveIsNotWaitedFor) {
  const CUdeviceptr lives = allocate(2 * kChunk);
  const CUdeviceptr idle = allocate(6 * kChunk);
  use(lives);
  use(idle, nullptr);
  EXPECT_EQ(arena_free_async(idle, {}).result, CUDA_SUCCESS);
  fake.busy = true;
  EXPECT_TRUE(arena_relieve(Relief::kAll, 0));
  EXPECT_EQ(held(), 2 * kChunk);
  EXPECT_EQ(fake.host_waits, 1) << "for the event behind the last use of what went back";
  EXPECT_EQ(g_contexts.waits, 0) << "for all that is on a stream";
  expect_waits_were_right();
}

TEST_F(Relieve, NothingHappensForWhatCannotBeHad) {
  go_live();
  const std::uint64_t all = fake.capacity - held() + 2 * kHalf;
  EXPECT_FALSE(arena_relieve(Relief::kAll, all + 1));
  EXPECT_EQ(held(), 2 * kHalf);
  EXPECT_EQ(g_contexts.waits, 0);
  EXPECT_EQ(arena_reserve_bytes(), 2 * kHalf);
  EXPECT_TRUE(arena_relieve(Relief::kAll, all));
  EXPECT_EQ(held(), 0u);
}

TEST_F(Relieve, AnotherDevicesMemoryIsNotOurs) {
  free(allocate(6 * kChunk));
  g_contexts.device = 1;
  EXPECT_FALSE(arena_relieve(Relief::kAll, 0));
  EXPECT_EQ(arena_reserve_bytes(), 0u);
  EXPECT_EQ(held(), 6 * kChunk);
}

TEST_F(Relieve, NothingIsWaitedForWhileAStreamCaptures) {
  const CUdeviceptr block = allocate(6 * kChunk);
  use(block);
  free(block);
  fake.busy = true;
  note_capture_begins(reinterpret_cast<CUstream>(0x300));
  EXPECT_FALSE(arena_relieve(Relief::kAll, 0));
  EXPECT_EQ(g_contexts.waits, 0);
  note_capture_ended(reinterpret_cast<CUstream>(0x300));
  EXPECT_TRUE(arena_relieve(Relief::kAll, 0));
}

TEST_F(Relieve, ThePlansMemoryStaysUntilTheRestDidNotDo) {
  go_live();
  const CUdeviceptr beside = allocate(2 * kHalf + kChunk);
  free(beside);
  ASSERT_GT(held(), 2 * kHalf);
  EXPECT_TRUE(arena_relieve(Relief::kCached, 0));
  EXPECT_EQ(held(), 2 * kHalf);
  EXPECT_FALSE(arena_relieve(Relief::kCached, 0));
  EXPECT_TRUE(arena_relieve(Relief::kAll, 0));
  EXPECT_EQ(held(), 0u);
  EXPECT_TRUE(fake.mapped.empty());
  expect_waits_were_right();
}

TEST_F(Relieve, ABlockInTheSlabKeepsItsChunksAndTheProgramGoesOn) {
  go_live();
  const CUdeviceptr first = allocate(kHalf);
  const CUdeviceptr second = allocate(kHalf);
  use(first);
  free(second);
  EXPECT_TRUE(arena_relieve(Relief::kAll, 0));
  EXPECT_EQ(held(), kHalf);
  for (std::uint64_t at = first; at < first + kHalf; at += kChunk) EXPECT_TRUE(fake.mapped.contains(at));
  EXPECT_FALSE(fake.mapped.contains(second));
  BlockExtent extent;
  EXPECT_TRUE(arena_block_at(first, &extent));
  EXPECT_FALSE(arena_block_at(second, &extent));
  free(first);
  // The second block's place is gone: it is served beside the plan, and lies where memory is.
  iterate([&](CUdeviceptr, CUdeviceptr beside) {
    EXPECT_NE(beside, second);
    for (std::uint64_t at = beside; at < beside + kHalf; at += kChunk) EXPECT_TRUE(fake.mapped.contains(at));
  });
  EXPECT_EQ(arena()->phase, Arena::Phase::kLive);
}

TEST_F(Relieve, TheSlabIsMadeWholeAgainWhenThereIsMemory) {
  go_live();
  EXPECT_TRUE(arena_relieve(Relief::kAll, 0));
  ASSERT_EQ(held(), 0u);
  fake.capacity = 2 * kHalf - kChunk;
  for (int i = 0; i < 20; ++i) {
    const CUdeviceptr first = allocate(kHalf);
    EXPECT_NE(first, 0u);
    EXPECT_EQ(allocate(kHalf), 0u) << "there is no memory for two of them";
    free(first);
  }
  EXPECT_GT(arena()->slab.gone_chunks(), 0u);
  fake.capacity = kDevice;
  for (int i = 0; i < 100; ++i) iterate();
  EXPECT_EQ(arena()->slab.gone_chunks(), 0u);
  EXPECT_EQ(held(), 2 * kHalf);
  const std::uint64_t displaced = arena()->displaced;
  iterate();
  EXPECT_EQ(arena()->displaced, displaced);
}

TEST_F(Relieve, APlanInPreparationIsPostponed) {
  arm(2 * kHalf + 2 * kChunk);
  EXPECT_TRUE(arena_relieve(Relief::kAll, 0));
  EXPECT_EQ(held(), 0u);
  EXPECT_TRUE(fake.mapped.empty());
  // There is memory for an iteration, but not for the slab.
  fake.capacity = 2 * kHalf + kChunk;
  for (int i = 0; i < 20; ++i) iterate();
  EXPECT_EQ(arena()->plan, nullptr);
  EXPECT_NE(arena()->next, nullptr);
  fake.capacity = kDevice;
  for (int i = 0; i < 100; ++i) iterate();
  EXPECT_EQ(arena()->phase, Arena::Phase::kLive);
  EXPECT_EQ(arena()->deviations, 0u) << "it goes live where an iteration begins";
}

}  // namespace
}  // namespace memopt::agent
