// The iteration that the planner finds in a recording.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "planner/input/file.h"

namespace memopt::tools {

struct ShownIteration {
  std::uint64_t operations = 0;  // of one iteration
  std::uint64_t mallocs = 0;     // placed ones
  std::uint64_t peak_load = 0;
  std::uint64_t slab_bytes = 0;
  std::uint64_t persistent_bytes = 0;
  std::uint64_t first = 0;        // sequence number with which the first observed one begins
  std::uint64_t detected_at = 0;  // and with which it was known
};

struct IterationSearch {
  std::optional<ShownIteration> found;
  std::string note;  // the planner's words
};

// Reads the file as far as it can be read, and plans as the daemon would. The last plan counts.
IterationSearch find_iteration(input::File& file);

}  // namespace memopt::tools
