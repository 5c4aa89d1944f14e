// The first interrupt of a command that searches: it ends the search, and what was found is reported.
#pragma once

#include <atomic>

namespace memopt::tools {

// From the first call on, the first SIGINT sets what is returned, and the second one ends the process.
const std::atomic<bool>& end_at_interrupt();

// False where end_at_interrupt was not called.
bool interrupted();

}  // namespace memopt::tools
