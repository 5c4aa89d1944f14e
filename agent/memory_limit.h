// How much host memory the process may still take before a limit of its control group (a container's, a batch
// system's) ends it: beyond that limit the kernel does not refuse memory but kills, and the process killed may be the
// program. Both versions of control groups, all groups above the process's own. What files have in the page cache
// counts as free, since the kernel takes it back.
#pragma once

#include <cstdint>
#include <string>

namespace memopt::agent {

struct MemoryLeft {
  std::uint64_t bytes = ~std::uint64_t{0};
  std::string group;  // the one that leaves least; empty: there is no limit
};

// May throw std::bad_alloc. Reads a few small files. `root` is put before all their names: for tests.
MemoryLeft memory_left(const std::string& root = {});

}  // namespace memopt::agent
