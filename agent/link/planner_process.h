// Finding and starting memoptd.
#pragma once

#include <string>

namespace memopt::agent {

// The program to start: `wanted` if it is not empty, else the one that belongs to this library: <here>/../bin/memoptd
// or <here>/memoptd. Empty if there is none that can be executed; `*why` then says where it was looked for.
std::string find_planner(const std::string& wanted, std::string* why);

// Starts `path` with "--name instance" (if there is one) and an empty environment: neither LD_PRELOAD nor options of
// ours, nor the program's library path. The program sees nothing of it: no child to wait for, no SIGCHLD. 0, or the
// errno; that memoptd serves is not known yet when this returns.
//
// Two files implement it: spawn.cpp, and spawn_posix.cpp for sanitised builds.
int start_planner(const std::string& path, const std::string& instance) noexcept;

}  // namespace memopt::agent
