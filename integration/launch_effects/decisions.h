// Which words of a launch's parameters name blocks, decided by one run and used by others.
//
// A launch is known by the number of its thread and its number in that thread, a block by BlockId: no address is kept.
// The file is text, version 1:
//   launch-effects 1
//   kernel NUMBER NAME
//   launch THREAD NUMBER KERNEL DIGEST BYTES [OFFSET:THREAD.NUMBER+BEGIN]...
// DIGEST (hexadecimal) is of the name and the parameters that are no addresses. BYTES are what the launch's time goes
// by. Each word: its offset in the packed parameters, the block that it names, and where in the block it points.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "blocks.h"

namespace launch_effects {

struct Named {
  std::uint32_t offset = 0;
  BlockId block;
  std::uint64_t begin = 0;
  bool operator==(const Named&) const = default;
};

struct Decision {
  std::string kernel;
  std::uint64_t digest = 0;
  std::uint64_t bytes = 0;
  std::vector<Named> named;
};

struct LaunchId {
  std::uint32_t thread = 0;
  std::uint32_t number = 0;
  auto operator<=>(const LaunchId&) const = default;
};

using Decisions = std::map<LaunchId, Decision>;

// False, with the reason on standard error: the file can't be read, or is none.
bool read_decisions(const std::string& path, Decisions& out);
void write_decisions(const std::string& path, const Decisions& decisions);

}  // namespace launch_effects
