// What a recording says of the operations of an iteration, beside the blocks that they access.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/recompute/model/graph.h"

namespace memopt::recompute {

struct Seen {
  enum class Kind : std::uint8_t { kOther, kLaunch, kCopy, kMemset };

  Kind kind = Kind::kOther;
  std::uint32_t kernel = kNone;  // of a launch: into Observation::kernels; kNone: its name is not known
  bool blind = false;            // its parameters could not be read: it may touch anything
  bool from_host = false;   // of a copy: what it writes comes from the host, or from a source that was not recorded
  bool elsewhere = false;   // it names memory besides that is no block of the iteration
  std::uint64_t bytes = 0;  // of a copy or a memset
};

struct Observation {
  std::vector<std::string> kernels;  // names, as recorded; each once
  std::vector<Seen> operations;      // of the program, in order
  std::vector<std::uint64_t> ranks;  // by operation of the problem: which of `operations` it belongs to; not falling
};

}  // namespace memopt::recompute
