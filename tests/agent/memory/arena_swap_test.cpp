// What comes back at a limit, and what leaves for it: nothing that is in use.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <set>
#include <span>
#include <thread>

#include "agent/memory/arena.h"
#include "agent/memory/arena_state.h"
#include "agent/plan/plan.h"
#include "agent/recording/recorder.h"
#include "tests/agent/memory/at_a_limit.h"

// The arena and its link are never destroyed: what they hold at the end is no leak.
extern "C" [[gnu::visibility("default")]] int __lsan_is_turned_off() { return 1; }

namespace memopt::agent {
namespace {

// A call that wants memory waits for all work; what is queued meanwhile is not waited for, nor is what another thread
// then frees: its bytes serve the call.
TEST_F(AtALimit, ABlockThatWaitedForItsBytesIsNotOlderThanWorkOnThem) {
  const CUdeviceptr freed = allocate(2 * kChunk);
  const CUdeviceptr used = allocate(kChunk);
  ASSERT_EQ(arena_set_limit("6MiB").error, "");
  for (std::uintptr_t number = 1; number <= 5; ++number) use(used, stream(number));  // too many to tell one by one
  use(freed, stream(6));
  fake.busy = true;
  g_work.while_waited_for = [&] {
    use(freed, stream(7));
    free(freed);
    g_work.begin = freed;
    g_work.end = freed + 2 * kChunk;
  };
  const CUdeviceptr heir = allocate(2 * kChunk);
  ASSERT_EQ(heir, freed);
  ASSERT_NE(g_work.begin, g_work.end);
  const CUdeviceptr next = allocate(2 * kChunk);
  EXPECT_NE(next, 0u);
  EXPECT_TRUE(is_away(heir)) << "it could leave";
}

// A thread has announced an operation and waits for room. What another thread queues meanwhile is behind that on their
// stream, as it was counted, and would be in flight for ever: nothing could leave for the operation.
TEST_F(AtALimit, WhatOthersQueueWhileAnOperationWaitsForRoomCanLeaveForIt) {
  const CUdeviceptr touched = allocate(kChunk);
  const std::array others = {allocate(kChunk), allocate(kChunk)};
  for (const CUdeviceptr block : {touched, others[0], others[1]}) use(block, stream(1));
  ASSERT_EQ(arena_set_limit("6MiB").error, "");
  const CUdeviceptr last = allocate(kChunk);
  const auto use_others = [&] {
    // Its first byte may mean the block before it, too.
    for (const CUdeviceptr block : {others[0], others[1], last}) use(block + 1, stream(1));
  };
  use_others();
  ASSERT_TRUE(is_away(touched));
  for (const CUdeviceptr block : {others[0], others[1], last}) ASSERT_FALSE(is_away(block));
  fake.busy = true;
  use_others();
  bool met = false;
  g_work.while_waited_for = [&] {
    met = true;
    std::thread(use_others).join();
  };
  use(touched, stream(1));
  EXPECT_TRUE(met);
  EXPECT_EQ(take_refusal(), CUDA_SUCCESS);
  EXPECT_FALSE(is_away(touched));
  EXPECT_LE(fake.handles.size(), 3u);
  // It was queued last: another leaves before it.
  fake.busy = false;
  for (const CUdeviceptr block : {others[0], others[1]}) use(block, stream(1));
  EXPECT_FALSE(is_away(touched));
  for (const CUdeviceptr block : {touched, others[0], others[1], last}) free(block);
}

// All that could leave is what another thread has announced and not queued yet. Beyond a full device there is nothing:
// that thread is waited for.
TEST_F(AtALimit, OnAFullDeviceWhatAnotherThreadHasAnnouncedIsWaitedFor) {
  fake.capacity = 3 * kChunk;
  const CUdeviceptr touched = allocate(kChunk);
  set_most_pauses(kAsLongAsItTakes);
  const std::array others = {allocate(kChunk), allocate(kChunk)};
  for (const CUdeviceptr block : {touched, others[0], others[1]}) use(block + 1, stream(1));
  ASSERT_EQ(allocate(kChunk), 0u);
  ASSERT_TRUE(arena_begin_swapping(kChunk));
  const CUdeviceptr last = allocate(kChunk);
  const auto use_others = [&](Operation* operation) {
    const std::uint64_t addresses[] = {others[0] + 1, others[1] + 1, last + 1};
    EXPECT_TRUE(use_addresses({stream(1), false}, false, addresses, operation));
  };
  std::promise<void> announced;
  std::thread thread([&] {
    Operation operation;
    use_others(&operation);
    announced.set_value();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    queued();
  });
  announced.get_future().wait();
  EXPECT_TRUE(is_away(touched));
  use(touched, stream(1));
  EXPECT_EQ(take_refusal(), CUDA_SUCCESS);
  EXPECT_FALSE(is_away(touched));
  thread.join();
  for (const CUdeviceptr block : {touched, others[0], others[1], last}) free(block);
}

// At a limit, too, if it is the older operation: the thread gives its own place up meanwhile.
TEST_F(AtALimit, AnOperationGivesWayToAnOlderOneThatAnotherThreadHasAnnounced) {
  const CUdeviceptr touched = allocate(kChunk);
  set_most_pauses(kAsLongAsItTakes);
  const std::array others = {allocate(kChunk), allocate(kChunk), allocate(kChunk)};
  for (const CUdeviceptr block : {touched, others[0], others[1], others[2]}) use(block + 1, stream(1));
  ASSERT_EQ(arena_set_limit("6MiB").error, "");
  use(others[0] + 1, stream(1));
  const auto use_others = [&](Operation* operation) {
    const std::uint64_t addresses[] = {others[0] + 1, others[1] + 1, others[2] + 1};
    EXPECT_TRUE(use_addresses({stream(2), false}, false, addresses, operation));
  };
  std::promise<void> announced;
  std::thread thread([&] {
    Operation operation;
    use_others(&operation);
    announced.set_value();
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    queued();
  });
  announced.get_future().wait();
  ASSERT_TRUE(is_away(touched));
  use(touched, stream(1));
  EXPECT_EQ(take_refusal(), CUDA_SUCCESS);
  EXPECT_FALSE(is_away(touched));
  EXPECT_LE(fake.handles.size(), 3u);
  thread.join();
  for (const CUdeviceptr block : {touched, others[0], others[1], others[2]}) free(block);
}

// The older one may be held up by this very thread: it is given way to once, and then the limit is passed.
TEST_F(AtALimit, AnOlderOperationThatIsHeldUpIsNotWaitedForForEver) {
  const CUdeviceptr touched = allocate(kChunk);
  set_most_pauses(32);
  const std::array others = {allocate(kChunk), allocate(kChunk), allocate(kChunk)};
  for (const CUdeviceptr block : {touched, others[0], others[1], others[2]}) use(block + 1, stream(1));
  ASSERT_EQ(arena_set_limit("6MiB").error, "");
  use(others[0] + 1, stream(1));
  std::promise<void> announced, passed;
  std::thread thread([&] {
    Operation operation;
    const std::uint64_t addresses[] = {others[0] + 1, others[1] + 1, others[2] + 1};
    EXPECT_TRUE(use_addresses({stream(2), false}, false, addresses, &operation));
    announced.set_value();
    passed.get_future().wait();
    queued();
  });
  announced.get_future().wait();
  ASSERT_TRUE(is_away(touched));
  const auto begun = [] {
    const ArenaLock lock;
    return arena()->tickets;
  };
  const std::uint64_t before = begun();
  use(touched, stream(1));
  EXPECT_EQ(begun() - before, 2u) << "it has begun again once";
  EXPECT_EQ(take_refusal(), CUDA_SUCCESS);
  EXPECT_FALSE(is_away(touched));
  EXPECT_EQ(fake.handles.size(), 4u);
  EXPECT_EQ(beyond(), kChunk);
  {
    ArenaLock lock;
    EXPECT_EQ(arena()->swaps.beyond_why, "operations of other threads, which are not queued, were waited for in vain");
  }
  passed.set_value();
  thread.join();
  for (const CUdeviceptr block : {touched, others[0], others[1], others[2]}) free(block);
}

// What a younger operation touches is waited for, as that is going to be queued.
TEST_F(AtALimit, AYoungerOperationThatGetsOnIsWaitedFor) {
  const CUdeviceptr touched = allocate(kChunk);
  set_most_pauses(kAsLongAsItTakes);
  const std::array others = {allocate(kChunk), allocate(kChunk), allocate(kChunk)};
  const auto use_others = [&](Operation* operation) {
    const std::uint64_t addresses[] = {others[0] + 1, others[1] + 1, others[2] + 1};
    EXPECT_TRUE(use_addresses({stream(1), false}, false, addresses, operation));
  };
  use(touched, stream(1));
  ASSERT_EQ(arena_set_limit("6MiB").error, "");
  Operation before;
  use_others(&before);
  queued();
  ASSERT_TRUE(is_away(touched));
  fake.busy = true;
  {
    Operation again;
    use_others(&again);
    queued();
  }
  std::thread thread;
  g_work.while_waited_for = [&] {
    std::promise<void> announced;
    thread = std::thread([&, told = &announced] {
      Operation operation;
      use_others(&operation);
      told->set_value();
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      queued();
    });
    announced.get_future().wait();
  };
  use(touched, stream(2));
  ASSERT_TRUE(thread.joinable());
  thread.join();
  EXPECT_EQ(take_refusal(), CUDA_SUCCESS);
  EXPECT_FALSE(is_away(touched));
  EXPECT_LE(fake.handles.size(), 3u);
  for (const CUdeviceptr block : {touched, others[0], others[1], others[2]}) free(block);
}

// It gave its place up for an older one, and others begin meanwhile, which would be older each time that it begins
// again: it keeps its turn.
TEST_F(AtALimit, AnOperationThatHasGivenWayIsNotOvertaken) {
  const CUdeviceptr touched = allocate(kChunk);
  set_most_pauses(kAsLongAsItTakes);
  const std::array others = {allocate(kChunk), allocate(kChunk), allocate(kChunk)};
  for (const CUdeviceptr block : {touched, others[0], others[1], others[2]}) use(block + 1, stream(1));
  ASSERT_EQ(arena_set_limit("6MiB").error, "");
  use(others[0] + 1, stream(1));
  ASSERT_TRUE(is_away(touched));
  // What this thread does, as the others see it.
  struct Seen {
    bool in_flight;
    bool stuck;
  };
  const auto look = [] {
    ArenaLock lock;
    return Seen{others_are_in_flight(), others_are_in_flight() && !others_get_on()};
  };
  const auto announce_use = [&](std::uintptr_t on) {
    Operation operation;
    const std::uint64_t addresses[] = {others[0] + 1, others[1] + 1, others[2] + 1};
    EXPECT_TRUE(use_addresses({stream(on), false}, false, addresses, &operation));
  };
  std::promise<void> announced, overtaken;
  std::thread older([&] {
    announce_use(2);
    announced.set_value();
    overtaken.get_future().wait();
    queued();
  });
  announced.get_future().wait();
  const auto begun = [] {
    const ArenaLock lock;
    return arena()->tickets;
  };
  const std::uint64_t before = begun();
  bool waits = false;
  std::thread younger([&] {
    // The older one is in flight all the time, and this thread, too, once it has begun, until it gives way.
    const auto count = [] {
      ArenaLock lock;
      return count_others_in_flight();
    };
    while (begun() == before || count() != 1) std::this_thread::yield();
    announce_use(3);
    overtaken.set_value();
    while (begun() != before + 3) std::this_thread::yield();
    Seen seen = look();
    while (seen.in_flight && !seen.stuck) seen = look();
    waits = seen.stuck;
    queued();
  });
  use(touched, stream(1));
  for (std::thread* const thread : {&older, &younger}) thread->join();
  EXPECT_TRUE(waits) << "it has given way to one that began after it";
  EXPECT_EQ(begun() - before, 3u) << "it has begun again once";
  EXPECT_EQ(take_refusal(), CUDA_SUCCESS);
  EXPECT_FALSE(is_away(touched));
  EXPECT_LE(fake.handles.size(), 3u);
  for (const CUdeviceptr block : {touched, others[0], others[1], others[2]}) free(block);
}

// So many threads at a limit of three chunks, each of which uses two of its own again and again. How long they wait for
// each other is not limited: they never need more.
class ThreadsAtALimit : public AtALimit {
 protected:
  template <std::size_t kThreads>
  void take_turns(int rounds, const std::function<void(int thread, int round)>& before_queued) {
    std::array<CUdeviceptr, 2 * kThreads> blocks;
    for (CUdeviceptr& block : blocks) block = allocate(kChunk);
    set_most_pauses(kAsLongAsItTakes);
    for (const CUdeviceptr block : blocks) use(block + 1, stream(1));
    ASSERT_EQ(arena_set_limit("6MiB").error, "");
    use(blocks[0] + 1, stream(1));
    {
      ArenaLock lock;
      ASSERT_LE(arena()->chunks.counts().held_bytes, 3 * kChunk);
      arena()->chunks.take_peak();
    }
    std::array<std::thread, kThreads> threads;
    for (std::size_t t = 0; t < kThreads; ++t) {
      threads[t] = std::thread([&, t] {
        const std::uint64_t addresses[] = {blocks[2 * t] + 1, blocks[2 * t + 1] + 1};
        for (int round = 0; round < rounds; ++round) {
          Operation operation;
          EXPECT_TRUE(use_addresses({stream(t + 2), false}, false, addresses, &operation));
          EXPECT_EQ(take_refusal(), CUDA_SUCCESS);
          before_queued(static_cast<int>(t), round);
          queued();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    {
      ArenaLock lock;
      EXPECT_LE(arena()->chunks.take_peak(), 3 * kChunk);
    }
    EXPECT_EQ(beyond(), 0u);
    for (const CUdeviceptr block : blocks) free(block);
  }
};

// Each operation has room, two at once have not: they take turns.
TEST_F(ThreadsAtALimit, TakeTurnsWhereTheirOperationsTogetherNeedMore) {
  // The driver's call may take a while.
  take_turns<3>(100, [](int thread, int round) {
    if (round % 8 == thread) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  });
}

TEST_F(ThreadsAtALimit, TakeTurnsWhereTheyAreMany) {
  take_turns<12>(25, [](int thread, int round) {
    if (round % 12 == thread) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
}

// What is in the way is queued without the lock: at any moment, while another thread looks at what may leave, and
// before it looks for how long it has to wait.
TEST_F(ThreadsAtALimit, TakeTurnsWheneverTheOtherOneIsQueued) {
  take_turns<2>(1500, [](int thread, int round) {
    for (int i = 0; i < (round * 7 + thread) % 64; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
  });
}

// A plan's slab is being built from free chunks when a block needs them to come back.
TEST_F(AtALimit, NoChunkIsTakenTwiceWhileAPlanIsBeingBuilt) {
  const CUdeviceptr other = allocate(kChunk);
  const CUdeviceptr large = allocate(3 * kChunk);
  ASSERT_EQ(arena_set_limit("8MiB").error, "");
  use(large, stream(1));
  use(other, stream(1));
  {
    ArenaLock lock;
    ASSERT_EQ(arena_send_away(*arena(), lock, 3), 3u);
  }
  ASSERT_FALSE(is_away(other));
  const CUdeviceptr further = allocate(kChunk);
  Plan plan;
  plan.generation = 1;
  plan.mallocs.push_back({kChunk, 0, 0, 1, 0, 1});
  plan.places.push_back({0, kChunk});
  plan.slab_bytes = plan.peak_load = kChunk;
  plan.operations = 2;
  plan.lanes.push_back({current_lane(), 1, std::span<const shm::PlannedMalloc>(plan.mallocs)});
  {
    ArenaLock lock;
    arena_adopt(*arena(), plan);
    ASSERT_EQ(arena()->phase, Arena::Phase::kBuilding);
    arena_build(*arena());
  }
  use(large, stream(1));
  EXPECT_FALSE(is_away(large));
  const CUdeviceptr last = allocate(kChunk);
  std::set<CUmemGenericAllocationHandle> handles;
  for (const auto& [address, handle] : fake.mapped) {
    EXPECT_TRUE(handles.insert(handle).second) << "a chunk lies at two places";
  }
  free(last);
  free(large);
  free(other);
  free(further);
}

// Where the device is full there is nothing beyond the limit: a block that is touched while it is away gets what the
// plan holds for nothing at that moment.
TEST_F(AtALimit, WhereTheDeviceIsFullABlockThatComesBackGetsIdleChunksOfTheSlab) {
  // The slab has a chunk that is mapped in the region still, where a block was freed, and one that is not.
  fake.capacity = 4 * kChunk;
  const CUdeviceptr freed = allocate(kChunk);
  const CUdeviceptr stays = allocate(kChunk);
  const CUdeviceptr leaves = allocate(2 * kChunk);
  for (const CUdeviceptr block : {freed, stays, leaves}) use(block, stream(1));
  ASSERT_EQ(allocate(kChunk), 0u);
  ASSERT_TRUE(arena_begin_swapping(kChunk));
  free(freed);
  {
    ArenaLock lock;
    Arena& arena = *memopt::agent::arena();
    arena.blocks.find(stays)->escaped = true;
    ASSERT_EQ(arena_send_away(arena, lock, 2), 2u);
    ASSERT_TRUE(arena.slab.want(3 * kChunk, [](std::uint64_t) { return false; }));
    ASSERT_EQ(arena.slab.go_live(nullptr), CUDA_SUCCESS);
    ASSERT_EQ(arena.bootstrap.free_chunks(), 0u);
    ASSERT_EQ(fake.handles.size(), 4u);
  }
  ASSERT_TRUE(is_away(leaves));
  use(leaves, stream(1));
  EXPECT_EQ(take_refusal(), CUDA_SUCCESS);
  EXPECT_FALSE(is_away(leaves));
  EXPECT_LE(fake.handles.size(), 4u);
  free(stays);
}

// A plan of a loop that the program has left holds memory for nothing meanwhile: that serves before anything leaves.
TEST_F(AtALimit, WhatAPlanHoldsThatTheProgramHasLeftServesBeforeBlocksLeave) {
  const CUdeviceptr weights = allocate(3 * kChunk);
  const auto iterate = [] { free(allocate(2 * kChunk)); };
  iterate();
  ASSERT_EQ(arena_set_limit("12MiB").error, "");
  Plan plan;
  plan.generation = 1;
  plan.mallocs.push_back({2 * kChunk, 0, 0, 1, 0, 1});
  plan.places.push_back({0, 2 * kChunk});
  plan.slab_bytes = plan.peak_load = 2 * kChunk;
  plan.operations = 2;
  plan.lanes.push_back({current_lane(), 1, std::span<const shm::PlannedMalloc>(plan.mallocs)});
  {
    ArenaLock lock;
    plan.persistent.push_back(arena()->blocks.find(weights)->number);
    arena_adopt(*arena(), plan);
    while (arena()->phase == Arena::Phase::kBuilding) arena_build(*arena());
  }
  for (int i = 0; i < 3; ++i) iterate();
  ASSERT_NE(arena()->plan, nullptr);
  ASSERT_EQ(fake.handles.size(), 5u);
  use(weights, stream(1));
  const CUdeviceptr first = allocate(3 * kChunk);
  EXPECT_NE(first, 0u);
  EXPECT_FALSE(is_away(weights));
  EXPECT_EQ(fake.handles.size(), 6u);
  // More than that can't be had without.
  const CUdeviceptr second = allocate(kChunk);
  EXPECT_NE(second, 0u);
  EXPECT_TRUE(is_away(weights) || is_away(first));
  EXPECT_EQ(fake.handles.size(), 6u);
  free(first);
  free(second);
  // The loop has its memory again.
  for (int i = 0; i < 3; ++i) iterate();
  {
    ArenaLock lock;
    EXPECT_EQ(arena()->slab.gone_chunks(), 0u);
  }
  free(weights);
}

// It is in nothing's use until its address is kept, and nothing is in flight that uses it.
TEST_F(AtALimit, WhatIsToStayComesBackUntilItIsHere) {
  const std::array blocks = blocks_in_turn();
  EXPECT_EQ(send_away(1), 1u);
  ASSERT_TRUE(is_away(blocks[0]));
  g_kernel.while_it_runs = [&] {
    std::thread([&] {
      while (!is_away(blocks[0]) && send_away(6) != 0) {
      }
      EXPECT_TRUE(is_away(blocks[0]));
    }).join();
  };
  {
    ArenaLock lock;
    escaped(lock, *arena()->blocks.find(blocks[0]));
    EXPECT_TRUE(arena()->blocks.find(blocks[0])->escaped);
  }
  EXPECT_FALSE(g_kernel.while_it_runs) << "no copy was waited for";
  EXPECT_FALSE(is_away(blocks[0]));
  for (const CUdeviceptr block : blocks) free(block);
}

}  // namespace
}  // namespace memopt::agent
