// A table of file descriptors for one thread.
#pragma once

namespace memopt::agent {

// Gives the calling thread an empty table of descriptors, so that it takes no number from the program, keeps no file of
// the program's open, and the program cannot close what is ours. False where that is not possible: then the thread
// shares the process's table.
bool take_own_descriptors() noexcept;

}  // namespace memopt::agent
