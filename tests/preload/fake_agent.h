// A driver and an agent that note what the hooks of operation_hooks.inc call and tell.
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>

#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/agent.h"
#include "agent/memory/arena.h"
#include "agent/memory/arena_graphs.h"
#include "agent/memory/points.h"
#include "agent/operations/graph_uses.h"
#include "agent/operations/launch_parameters.h"
#include "agent/operations/operations.h"
#include "agent/operations/pinned_memory.h"
#include "agent/recording/recorder.h"
#include "preload/relief.h"
#include "preload/typed_hooks.h"

namespace memopt::test {

// What reached the driver.
struct DriverCall {
  memopt::preload::Hook hook{};
  std::string arguments;  // their bytes
};
inline std::vector<DriverCall> g_driver;
inline CUresult g_result = CUDA_SUCCESS;

template <typename... Arguments>
std::string bytes_of(const Arguments&... arguments) {
  std::string bytes;
  (bytes.append(reinterpret_cast<const char*>(&arguments), sizeof(arguments)), ...);
  return bytes;
}

// What the agent was told.
struct Agent {
  bool watched = true;
  bool serialize = false;
  std::vector<memopt::agent::LaunchCall> launches;
  std::vector<memopt::agent::CopyCall> copies;
  std::vector<memopt::agent::MemsetCall> memsets;
  std::vector<std::string> notes;
  std::map<std::uint64_t, std::size_t> pinned;
  std::set<CUstream> captured;
  bool serves_pools = false;
  bool follows = false;
  CUmemoryPool pool_of_blocks = nullptr;
  std::uint64_t unused = 0;  // address in memory of ours and in no block
  bool behind_free = false;
  bool relieves_cached = false;
  bool relieves_all = false;
  bool swaps = false;               // where its own memory is short
  bool swaps_for_others = false;    // likewise for another call
  CUresult refusal = CUDA_SUCCESS;  // of the next operation
  std::vector<std::pair<memopt::agent::Relief, std::size_t>> reliefs;
  std::vector<std::string> pool_calls;
  std::vector<memopt::agent::device_times_detail::Open> measured;  // as each hook ended
};
inline Agent g_agent;

inline void note(const char* what) { g_agent.notes.emplace_back(what); }

inline std::map<CUdeviceptr, unsigned int> g_memory_types;
// The driver's functions wait as poll() does.
inline bool g_cancellation_point = false;

inline constexpr CUdeviceptr kOurs = 0x7000'0000'1000;
inline CUstream stream() { return reinterpret_cast<CUstream>(0x500); }

class Hooks : public testing::Test {
 protected:
  void SetUp() override {
    g_agent = Agent();
    g_driver.clear();
    g_memory_types.clear();
    g_result = CUDA_SUCCESS;
  }
};

}  // namespace memopt::test
