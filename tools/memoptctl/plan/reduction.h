// A recording cut down to a few iterations of its steady state: what a planner, a replay or a test wants to keep of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/input/file.h"

namespace memopt::tools {

struct Reduction {
  std::uint32_t iterations = 1;
  bool hash_names = false;  // long kernel names become short ones, call stacks and loaded files go
  bool parameters = false;  // keep the bytes of launch parameters
  std::string version{};    // of the memopt that writes
};

// Where the iterations of a recording begin and end.
struct SteadyWindow {
  // Sequence numbers of the main lane's operations with which iterations begin, the last one first; every one repeats
  // the one behind it.
  std::vector<std::uint64_t> begins;
  std::uint64_t last = 0;        // of the last iteration's last operation
  std::uint64_t operations = 0;  // of an iteration
  std::uint64_t peak_load = 0;
};

// The shortest of the iterations with the highest peak load that planning finds. Throws std::runtime_error where there
// is none.
SteadyWindow find_steady_window(input::File& file);

struct ReducedCounts {
  std::uint64_t records = 0;
  std::uint64_t before = 0;  // allocations that were there already, and are put first
  std::uint64_t bytes = 0;
};

// Writes the records `first` to `last` of the recording `from` into `to`, which must not exist, behind what they need
// of what came before: blocks that live, streams, names. Numbers of records begin with 1 again.
ReducedCounts write_reduced(input::File& from, const std::string& to, std::uint64_t first, std::uint64_t last,
                            const Reduction& reduction);

// A name of at most 56 characters, different for different names.
std::string short_name(const std::string& name);

}  // namespace memopt::tools
