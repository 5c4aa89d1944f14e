// Serves the status on an abstract unix socket (docs/formats/status.md), from one detached thread that no signal of the
// program reaches.
#pragma once

#include <string>

namespace memopt::agent {

// Starts the thread and returns; what cannot be set up is logged, and the program goes on without a status. `answer` is
// called on that thread for each request; it may throw std::bad_alloc.
void start_status_server(std::string (*answer)()) noexcept;

// In a forked child: the parent's thread is not here, its socket must not be kept alive.
void forget_status_server_after_fork() noexcept;

}  // namespace memopt::agent
