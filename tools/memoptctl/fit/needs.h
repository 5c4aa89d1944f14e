// What a recorded program needs of a device: as it is, over a caching allocator, and under memopt.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "planner/input/file.h"
#include "planner/swap/model/model.h"

namespace memopt::tools {

// Percent of an iteration's time that swaps may add.
inline constexpr std::array<int, 4> kAdded{0, 1, 5, 20};

// Bytes; nothing where it is not known, and the notes say why.
struct Needs {
  std::uint64_t peak_load = 0;          // of the whole recording
  std::uint64_t caching = 0;            // that PyTorch's caching allocator would have reserved; 0: not known
  std::optional<std::uint64_t> layout;  // memopt without swaps, in whole chunks
  std::uint64_t iteration_load = 0;     // where there is a layout: peak load of the iteration
  std::array<std::optional<std::uint64_t>, kAdded.size()> swapped;  // memopt with swaps, by kAdded
  double period_ns = 0;                                             // of an iteration; 0: not known
  std::string note;    // why there is no layout, or no swaps; empty: nothing is missing
  std::string times;   // where the times come from
  std::string damage;  // of the recording
};

struct NeedsOptions {
  swap::Machine machine;
  bool swaps = true;     // are looked for
  double seconds = 20;   // for all searches together
  unsigned threads = 0;  // 0: one for each processor
  std::uint64_t seed = 1;
};

// `stage`: told what is being done. Throws std::runtime_error where the file can't be read.
Needs find_needs(input::File& recording, const NeedsOptions& options,
                 const std::function<void(const std::string&)>& stage);

}  // namespace memopt::tools
