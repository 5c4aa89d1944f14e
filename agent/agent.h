// The runtime inside the program's process, as the hooks see it: its start, fork and end, and what it answers for
// status. What it does with memory is in arena.h, what it is told about queued work in operations.h.
//
// Nothing happens before the first CUDA call. Hooks may call from any thread, in any order, during start and exit of
// the process and before any constructor has run. Nothing here throws, and nothing is destroyed at exit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "agent/process/driver.h"
#include "agent/process/log.h"
#include "agent/process/options.h"
#include "agent/status/block_table.h"
#include "agent/status/call_counters.h"
#include "agent/status/physical_memory.h"
#include "shm/status.h"

namespace memopt::agent {

// What the agent cannot know by itself. The functions are called on the status thread and may throw std::bad_alloc.
struct Interposer {
  const char* const* symbols = nullptr;  // of entry point 0, 1, ...
  std::size_t symbol_count = 0;
  std::string (*driver_path)() = nullptr;
  void (*find_problems)(std::vector<shm::Problem>& problems) = nullptr;
  Driver (*real_driver)() = nullptr;  // what the agent calls itself; called once, at the first use of driver()
};

// The slow way of counting, for a thread's first call (preload/trampoline.inc). Starts the agent at the process's first
// call. Not to be called when disabled().
void first_call(const Interposer& interposer, std::size_t entry_point) noexcept;

// Where the hooks note what the program holds.
BlockTable& blocks() noexcept;
PhysicalMemory& physical_memory() noexcept;

// What this process would answer now; may throw std::bad_alloc.
shm::Status read_status();

}  // namespace memopt::agent
