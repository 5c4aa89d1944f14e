// A program at a limit, for tests of what leaves and comes back: over a driver that knows what is mapped where, which
// work is under way, and what was copied to the host.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

#include "agent/agent.h"
#include "agent/memory/arena.h"
#include "agent/memory/arena_state.h"
#include "agent/order/current_context.h"
#include "tests/agent/arena_calls.h"
#include "tests/agent/fake_memory.h"

namespace memopt::agent {

inline const auto kContext = reinterpret_cast<CUcontext>(0x10);

// Beside FakeDriver: work on a range of addresses that is under way.
struct Work {
  CUdeviceptr begin = 0;
  CUdeviceptr end = 0;                     // begin: there is none
  std::function<void()> while_waited_for;  // once, while the host waits for it, or for all there is
};
inline Work g_work;

// What the driver is asked without the arena's lock.
inline std::mutex g_mutex;
inline std::map<CUevent, CUstream> g_events;  // the stream that each was recorded on last
// Streams of ours: those that copies are queued on come behind none of the program's work.
inline std::set<CUstream> g_own_streams;
inline std::set<CUstream> g_copy_streams;
inline std::multiset<CUdeviceptr> g_copied;  // to host memory

// The kernel that looks for addresses (scan/scan_kernel.h), where the driver has one.
struct Kernel {
  bool is_there = false;
  bool does_nothing = false;
  std::map<CUdeviceptr, CUdeviceptr> stored;  // address of a block -> a word that stands in it
  std::function<void()> while_it_runs;        // while the host waits for a stream of ours
  int launches = 0;
};
inline Kernel g_kernel;

// Each of the parameters is a word, but for the last.
inline void run_kernel(void** parameters) {
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

inline CUstream stream(std::uintptr_t number) { return reinterpret_cast<CUstream>(0x100 * number); }

inline Driver functions_with_work() {
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

inline constexpr Interposer kInterposer{nullptr, 0, nullptr, nullptr, functions_with_work};

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
    // The arena is left behind; not its host memory, for which there is the less room the more is in use.
    ArenaLock lock;
    arena()->host.release();
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

  // How long threads wait for each other, in pauses. As long as it takes, however slow the machine: then no limit is
  // passed because another thread had to wait for a core.
  static constexpr int kAsLongAsItTakes = std::numeric_limits<int>::max();
  static void set_most_pauses(int pauses) {
    ArenaLock lock;
    arena()->most_pauses = pauses;
  }
  // By how many bytes the limit was passed at most, so far.
  static std::uint64_t beyond() {
    ArenaLock lock;
    return arena()->swaps.beyond;
  }

  static std::size_t send_away(std::size_t chunks) {
    ArenaLock lock;
    return arena_send_away(*arena(), lock, chunks);
  }

  FakeDriver fake;
};

}  // namespace memopt::agent
