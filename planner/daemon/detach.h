// Turns this process into one that nobody waits for and that holds nothing of the one that started it.
#pragma once

#include <string>

namespace memopt::planner {

// `already_orphaned`: the starter has no child of this to wait for, so that no further fork is needed. Otherwise forks
// twice; the first process exits with 0 as soon as the last one exists. New session, working folder /, descriptors 0 to
// 2 to /dev/null, all others but `keep` closed, signals unblocked and at their defaults.
// False with `*error` if there is no way to fork.
bool detach(bool already_orphaned, int keep, std::string* error);

}  // namespace memopt::planner
