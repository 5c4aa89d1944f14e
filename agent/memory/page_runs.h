// Pages of the region in which blocks lie that stay, and which a plan has in its slab (shm::PlannedPages): a run of
// them is swapped as one, as the plan says. The blocks keep their addresses, which are mapped onto the slab's chunks
// from the run's place on; while the pages are away, these bytes are others'. In the steady state nothing is mapped.
//
// Pages become a run when they are away, and are ordinary ones again when they are away.
#pragma once

#include <cstddef>
#include <cstdint>

#include "agent/memory/blocks.h"
#include "agent/memory/own_windows.h"

namespace memopt::agent {

// In the numbers of owners, which are no blocks'.
inline constexpr std::uint64_t kRunNumber = std::uint64_t{1} << 63;

struct PageRun {
  OwnWindow* window = nullptr;  // of the pages' addresses
  std::size_t first = 0;        // pages of the region
  std::size_t count = 0;
  bool swapped = false;  // by the plan: else it keeps no host memory once it is back
  // No block of the program's: while the pages are here it owns their bytes of the slab. `away` counts pages, `former`
  // is the copy that brought them back.
  Block owner;
};

}  // namespace memopt::agent
