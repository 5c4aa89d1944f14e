// How much host memory may be page-locked now without harm to the machine, to the process's control group or to what
// its administrator allows.
#pragma once

#include <cstdint>

namespace memopt::agent {

struct HostRoom {
  std::uint64_t bytes = 0;
  const char* bound = "";  // what allows no more, for people
};

// The least of: what the kernel could give without swapping (MemAvailable), less a reserve of an eighth of all memory
// or 4 GiB, whichever is less; what is left in the control group, less a sixteenth; the limit of locked memory
// (RLIMIT_MEMLOCK) beyond `locked`, what is page-locked already. The driver's pinning is not counted against that
// limit, but one that was set is respected, except for a process with CAP_IPC_LOCK, which the kernel does not hold to
// it either; the kernel's default (at most 8 MiB) says nothing.
//
// Reads a few small files, some tens of microseconds: not with a lock held. Any thread; errno is kept. `root` is put
// before all files' names: for tests.
HostRoom host_room(std::uint64_t locked, const char* root = "") noexcept;

}  // namespace memopt::agent
