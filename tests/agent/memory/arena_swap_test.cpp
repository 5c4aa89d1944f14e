// What leaves for host memory at a limit, over a driver that knows what is mapped where: nothing that is in use.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <initializer_list>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <span>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "agent/agent.h"
#include "agent/memory/arena.h"
#include "agent/memory/arena_state.h"
#include "agent/order/current_context.h"
#include "agent/plan/plan.h"
#include "agent/recording/recorder.h"
#include "tests/agent/arena_calls.h"
#include "tests/agent/fake_memory.h"

// The arena and its link are never destroyed: what they hold at the end is no leak.
extern "C" [[gnu::visibility("default")]] int __lsan_is_turned_off() { return 1; }

namespace memopt::agent {
namespace {

const auto kContext = reinterpret_cast<CUcontext>(0x10);

// Beside FakeDriver: work on a range of addresses that is under way.
struct Work {
  CUdeviceptr begin = 0;
  CUdeviceptr end = 0;                     // begin: there is none
  std::function<void()> while_waited_for;  // once, while the host waits for it, or for all there is
};
Work g_work;

// What the driver is asked without the arena's lock.
std::mutex g_mutex;
std::map<CUevent, CUstream> g_events;  // the stream that each was recorded on last
// Streams of ours: those that copies are queued on come behind none of the program's work.
std::set<CUstream> g_own_streams;
std::set<CUstream> g_copy_streams;
std::multiset<CUdeviceptr> g_copied;  // to host memory

// The kernel that looks for addresses (scan/scan_kernel.h), where the driver has one.
struct Kernel {
  bool is_there = false;
  bool does_nothing = false;
  std::map<CUdeviceptr, CUdeviceptr> stored;  // address of a block -> a word that stands in it
  std::function<void()> while_it_runs;        // while the host waits for a stream of ours
  int launches = 0;
};
Kernel g_kernel;

// Each of the parameters is a word, but for the last.
void run_kernel(void** parameters) {
  ++g_kernel.launches;
  if (g_kernel.does_nothing) return;
  const auto word = [&](int i) { return *static_cast<const std::uint64_t*>(parameters[i]); };
  auto* const slot = reinterpret_cast<ScanSlot*>(word(0));
  slot->serial = *static_cast<const std::uint32_t*>(parameters[4]);
  for (const ScanRange& range : slot->ranges) {
    const auto stored = range.words != 0 ? g_kernel.stored.find(range.base) : g_kernel.stored.end();
    if (stored == g_kernel.stored.end() || stored->second - word(2) >= word(3)) continue;
    slot->words[slot->found++] = stored->second;
  }
}

CUstream stream(std::uintptr_t number) { return reinterpret_cast<CUstream>(0x100 * number); }

Driver functions_with_work() {
  Driver driver = functions();
  driver.current_context = [](CUcontext* context) { return *context = kContext, CUDA_SUCCESS; };
  driver.current_device = [](CUdevice* device) { return *device = 0, CUDA_SUCCESS; };
  driver.context_push = [](CUcontext) { return CUDA_SUCCESS; };
  driver.context_pop = [](CUcontext*) { return CUDA_SUCCESS; };
  driver.default_pool = [](CUmemoryPool*, CUdevice) { return CUDA_ERROR_NOT_SUPPORTED; };
  driver.event_elapsed = [](float*, CUevent, CUevent) { return CUDA_ERROR_NOT_READY; };
  driver.stream_create = [](CUstream* made, unsigned) {
    const std::scoped_lock lock(g_mutex);
    *made = stream(90 + g_own_streams.size());
    g_own_streams.insert(*made);
    return CUDA_SUCCESS;
  };
  driver.copy_to_host_async = [](void*, CUdeviceptr address, std::size_t, CUstream copies) {
    const std::scoped_lock lock(g_mutex);
    g_copy_streams.insert(copies);
    g_copied.insert(address);
    return CUDA_SUCCESS;
  };
  driver.copy_to_device_async = [](CUdeviceptr, const void*, std::size_t, CUstream) { return CUDA_SUCCESS; };
  driver.module_load = [](CUmodule*, const void*) {
    return g_kernel.is_there ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
  };
  driver.module_function = [](CUfunction* function, CUmodule, const char*) {
    return *function = reinterpret_cast<CUfunction>(0x20), CUDA_SUCCESS;
  };
  driver.host_device_pointer = [](CUdeviceptr* address, void* memory, unsigned) {
    return *address = reinterpret_cast<CUdeviceptr>(memory), CUDA_SUCCESS;
  };
  driver.launch_kernel = [](CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                            void** parameters, void**) { return run_kernel(parameters), CUDA_SUCCESS; };
  driver.unmap = [](CUdeviceptr address, std::size_t bytes) {
    const std::scoped_lock lock(g_mutex);
    EXPECT_TRUE(address + bytes <= g_work.begin || g_work.end <= address) << "work on it is under way";
    return functions().unmap(address, bytes);
  };
  driver.event_create = [](CUevent* event, unsigned) {
    const std::scoped_lock lock(g_mutex);
    *event = reinterpret_cast<CUevent>(0x10 + g_events.size());
    g_events[*event] = nullptr;
    return CUDA_SUCCESS;
  };
  driver.event_record = [](CUevent event, CUstream recorded) {
    const std::scoped_lock lock(g_mutex);
    g_events[event] = recorded;
    return CUDA_SUCCESS;
  };
  driver.event_synchronize = [](CUevent event) {
    Work work;
    {
      const std::scoped_lock lock(g_mutex);
      if (event != nullptr && g_copy_streams.contains(g_events[event])) return CUDA_SUCCESS;
      work = std::exchange(g_work, {});
    }
    // What is queued meanwhile is not waited for.
    if (work.while_waited_for) work.while_waited_for();
    return CUDA_SUCCESS;
  };
  driver.stream_synchronize = [](CUstream waited_for) {
    const bool is_own = [&] {
      const std::scoped_lock lock(g_mutex);
      return g_own_streams.contains(waited_for);
    }();
    if (!is_own) return functions_with_work().event_synchronize(nullptr);
    if (const auto meanwhile = std::exchange(g_kernel.while_it_runs, nullptr)) meanwhile();
    return CUDA_SUCCESS;
  };
  driver.synchronize_context = [] { return functions_with_work().event_synchronize(nullptr); };
  return driver;
}

constexpr Interposer kInterposer{nullptr, 0, nullptr, nullptr, functions_with_work};

class AtALimit : public testing::Test, protected ArenaCalls {
 protected:
  static void SetUpTestSuite() { begin_without_planner(kInterposer, "error"); }
  void SetUp() override {
    g_work = {};
    g_kernel = {};
    g_copied.clear();
    g_fake = &fake;
    note_context_change();
    forget_arena_after_fork();
  }
  void TearDown() override {
    g_work = {};
    EXPECT_EQ(arena_set_limit("none").error, "");
  }

  // Where there is a kernel that looks for addresses: the second was used before the first.
  static std::array<CUdeviceptr, 2> blocks_at_a_limit(std::string_view limit) {
    g_kernel.is_there = true;
    const CUdeviceptr first = allocate(kChunk);
    const CUdeviceptr second = allocate(kChunk);
    for (const CUdeviceptr block : {second, first}) use(block, stream(1));
    EXPECT_EQ(arena_set_limit(limit).error, "");
    return {first, second};
  }
  // As before a launch of the function that names the blocks, and after it.
  static void launch(std::uint32_t function, std::initializer_list<CUdeviceptr> addresses, bool made = true) {
    Operation operation;
    {
      ArenaLock lock;
      begin_operation({stream(1), false}, &operation);
      for (const CUdeviceptr address : addresses) {
        Block& block = *arena()->blocks.find(address);
        use_block(block, operation);
        if (is_scanned(false, function)) scan_block(block, operation, {stream(1), false}, function);
      }
      order_operation(lock, operation);
    }
    if (scans_due) {
      made ? queue_due_scans() : forget_due_scans();
    }
    queued();
  }
  // Bytes of it are in no chunk.
  static bool is_away(CUdeviceptr address) {
    ArenaLock lock;
    const Region& region = arena()->bootstrap.region();
    const auto [first, last] = region.pages_of(*arena()->blocks.find(address));
    for (std::size_t page = first; page < last; ++page) {
      if (!region.is_here(page)) return true;
    }
    return false;
  }

  // Blocks of a chunk each, used in this order, at a limit that they just keep to.
  static std::array<CUdeviceptr, 6> blocks_in_turn() {
    std::array<CUdeviceptr, 6> blocks;
    for (CUdeviceptr& block : blocks) block = allocate(kChunk);
    for (const CUdeviceptr block : blocks) use(block + 1, stream(1));
    EXPECT_EQ(arena_set_limit("12MiB").error, "");
    g_copied.clear();
    return blocks;
  }

  static std::size_t send_away(std::size_t chunks) {
    ArenaLock lock;
    return arena_send_away(*arena(), lock, chunks);
  }

  FakeDriver fake;
};

TEST_F(AtALimit, WhatIsToLeaveNextIsCopiedAhead) {
  const std::array blocks = blocks_in_turn();
  EXPECT_EQ(send_away(1), 1u);
  EXPECT_TRUE(is_away(blocks[0]));
  EXPECT_FALSE(is_away(blocks[1]));
  EXPECT_EQ(g_copied.count(blocks[1]), 1u);
  EXPECT_EQ(send_away(1), 1u);
  EXPECT_TRUE(is_away(blocks[1]));
  EXPECT_EQ(g_copied.count(blocks[1]), 1u) << "what it held was on the host already";
  for (const CUdeviceptr block : blocks) free(block);
}

TEST_F(AtALimit, WhatIsUsedOnceItHasBeenCopiedStaysAndIsCopiedAgain) {
  const std::array blocks = blocks_in_turn();
  EXPECT_EQ(send_away(1), 1u);
  ASSERT_EQ(g_copied.count(blocks[1]), 1u);
  use(blocks[1] + 1, stream(1));
  EXPECT_EQ(send_away(1), 1u);
  EXPECT_FALSE(is_away(blocks[1]));
  EXPECT_TRUE(is_away(blocks[2]));
  EXPECT_EQ(send_away(4), 3u) << "work on the last of them is not waited for, where there are others";
  EXPECT_EQ(send_away(1), 1u);
  EXPECT_TRUE(is_away(blocks[1]));
  EXPECT_EQ(g_copied.count(blocks[1]), 2u);
  for (const CUdeviceptr block : blocks) free(block);
}

TEST_F(AtALimit, WhatIsFreedOnceItHasBeenCopiedServesAtOnce) {
  const std::array blocks = blocks_in_turn();
  EXPECT_EQ(send_away(1), 1u);
  ASSERT_EQ(g_copied.count(blocks[1]), 1u);
  free(blocks[1]);
  EXPECT_EQ(allocate(kChunk), blocks[1]);
  EXPECT_FALSE(is_away(blocks[2]));
  for (const CUdeviceptr block : blocks) free(block);
}

// An operation of many addresses touches its blocks in several holdings of the lock.
TEST_F(AtALimit, WhatAnOperationInFlightTouchesOnceItHasBeenCopiedStays) {
  const std::array blocks = blocks_in_turn();
  Operation operation;
  {
    ArenaLock lock;
    begin_operation({stream(1), false}, &operation);
    ASSERT_EQ(arena_send_away(*arena(), lock, 1), 1u);
    ASSERT_EQ(g_copied.count(blocks[1]), 1u);
    use_block(*arena()->blocks.find(blocks[1]), operation);
    order_operation(lock, operation);
    EXPECT_EQ(arena_send_away(*arena(), lock, 6), 4u);
  }
  EXPECT_FALSE(is_away(blocks[1]));
  queued();
  for (const CUdeviceptr block : blocks) free(block);
}

// Each with blocks of its own, which together are more than the limit, and with those of all others in its way.
TEST_F(AtALimit, ThreadsCopyAheadAndUseAndFree) {
  free(allocate(kChunk));
  ASSERT_EQ(arena_set_limit("16MiB").error, "");
  std::vector<std::thread> threads;
  for (unsigned seed = 1; seed <= 4; ++seed) {
    threads.emplace_back([seed] {
      std::mt19937 random(seed);
      std::vector<CUdeviceptr> blocks;
      for (int step = 0; step < 400; ++step) {
        const auto any = [&] { return blocks.begin() + static_cast<std::ptrdiff_t>(random() % blocks.size()); };
        if (blocks.size() < 4) {
          blocks.push_back(allocate((1 + random() % 3) * kChunk - 4096));
          EXPECT_NE(blocks.back(), 0u);
        } else if (random() % 6 == 0) {
          const auto block = any();
          free(*block);
          blocks.erase(block);
        }
        use(*any() + 1, stream(seed));
        EXPECT_EQ(take_refusal(), CUDA_SUCCESS);
      }
      for (const CUdeviceptr block : blocks) free(block);
    });
  }
  for (std::thread& thread : threads) thread.join();
  ArenaLock lock;
  Arena& arena = *memopt::agent::arena();
  EXPECT_GT(arena.swaps.in_pages, 0u);
  EXPECT_TRUE(arena.copied_ahead.pages.empty()) << "of blocks that are no more";
  EXPECT_EQ(arena.bootstrap.region().away_bytes(), 0u);
  EXPECT_EQ(arena.host.free_pieces() * kChunk, arena.host.held_bytes());
}

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

// A kernel has stored a block's address, so that another may use it without naming it.
TEST_F(AtALimit, WhatStandsOnTheDeviceAsAnAddressStays) {
  g_kernel.is_there = true;
  const CUdeviceptr table = allocate(kChunk);
  const CUdeviceptr stored = allocate(kChunk);
  const CUdeviceptr other = allocate(kChunk);
  const CUdeviceptr later = allocate(kChunk);
  for (const CUdeviceptr block : {stored, other, later, table}) use(block, stream(1));
  g_kernel.stored[table] = stored + 8;
  ASSERT_EQ(arena_set_limit("8MiB").error, "");
  const CUdeviceptr first = allocate(kChunk);
  EXPECT_FALSE(is_away(stored));
  EXPECT_TRUE(is_away(other));
  EXPECT_EQ(g_kernel.launches, 1);
  // From now on behind launches: the block that was used least lately is the next to leave, but its address is stored.
  g_kernel.stored[table] = later;
  launch(7, {table, later});
  EXPECT_EQ(g_kernel.launches, 2);
  for (const CUdeviceptr block : {table, first}) use(block, stream(1));
  const CUdeviceptr second = allocate(kChunk);
  EXPECT_FALSE(is_away(later));
  // A function behind which there was an address is looked at again, others are not.
  launch(8, {first});
  launch(8, {first});
  launch(8, {first});
  EXPECT_EQ(g_kernel.launches, 4);
  EXPECT_TRUE(is_suspect(7));
  for (const CUdeviceptr block : {table, stored, other, later, first, second}) free(block);
}

TEST_F(AtALimit, ALaunchThatWasNotMadeIsNotLookedAt) {
  const auto [table, stored] = blocks_at_a_limit("4MiB");
  const CUdeviceptr first = allocate(kChunk);
  EXPECT_TRUE(is_away(stored));
  g_kernel.stored[table] = stored;
  launch(9, {table, stored}, false);
  EXPECT_EQ(g_kernel.launches, 1);
  for (std::uint32_t function = 100; function < 100 + 2 * AddressScan::kScans; ++function)
    launch(function, {table}, false);
  const CUdeviceptr second = allocate(kChunk);
  launch(10, {table});
  EXPECT_EQ(g_kernel.launches, 2) << "there is room for it again";
  for (const CUdeviceptr block : {table, stored, first, second}) free(block);
}

// More launches than are kept in mind: all is looked at once more before something leaves.
TEST_F(AtALimit, WhatCouldNotBeLookedAtIsLookedForBeforeSomethingLeaves) {
  const auto [table, stored] = blocks_at_a_limit("6MiB");
  const CUdeviceptr first = allocate(kChunk);
  const CUdeviceptr second = allocate(kChunk);
  use(stored, stream(1));
  for (std::uint32_t function = 1000; function < 1000 + AddressScan::kScans; ++function) launch(function, {table});
  g_kernel.stored[table] = stored;
  launch(5000, {table, stored});
  const int before = g_kernel.launches;
  for (const CUdeviceptr block : {first, second, table}) {
    if (!is_away(block)) use(block, stream(1));
  }
  const CUdeviceptr third = allocate(kChunk);
  EXPECT_GT(g_kernel.launches, before);
  EXPECT_FALSE(is_away(stored));
  for (const CUdeviceptr block : {table, stored, first, second, third}) free(block);
}

// All else that used the block is over: that it is read is what its chunk waits for.
TEST_F(AtALimit, WhatIsFreedWhileAllIsLookedAtIsNotUnmappedBeforeThatIsOver) {
  const auto [other, freed] = blocks_at_a_limit("4MiB");
  const CUdeviceptr is_freed = freed;  // lambdas capture no structured binding
  bool met = false;
  g_kernel.while_it_runs = [&] {
    met = g_kernel.launches == 1;
    fake.busy = true;
    g_work.begin = is_freed;
    g_work.end = is_freed + kChunk;
    free(is_freed);
    {
      ArenaLock lock;
      arena()->bootstrap.trim(~std::size_t{0});
    }
    EXPECT_TRUE(fake.mapped.contains(is_freed));
    g_work = {};
    fake.busy = false;
  };
  const CUdeviceptr next = allocate(kChunk);
  EXPECT_TRUE(met);
  EXPECT_NE(next, 0u);
  for (const CUdeviceptr block : {other, next}) free(block);
}

// As on a simulated device without our kernel: blocks leave as ever, and it is not tried again.
TEST_F(AtALimit, AKernelThatDoesNothingIsGivenUp) {
  g_kernel.is_there = true;
  g_kernel.does_nothing = true;
  const CUdeviceptr block = allocate(kChunk);
  use(block, stream(1));
  ASSERT_EQ(arena_set_limit("2MiB").error, "");
  const CUdeviceptr first = allocate(kChunk);
  EXPECT_TRUE(is_away(block));
  const int launches = g_kernel.launches;
  launch(11, {first});
  EXPECT_EQ(g_kernel.launches, launches);
  EXPECT_NE(arena()->scans.why, "");
  for (const CUdeviceptr one : {block, first}) free(one);
}

}  // namespace
}  // namespace memopt::agent
