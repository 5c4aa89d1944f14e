// Serves the status on an abstract unix socket (docs/formats/status.md), from one detached thread that no signal of the
// program reaches.
#pragma once

#include <string>
#include <string_view>

namespace memopt::agent {

// A request line with its newline, to be answered. It may throw std::bad_alloc.
using Answer = std::string (*)(std::string_view request);

// Starts the thread and returns; what cannot be set up is logged, and the program goes on without a status. `answer` is
// called on that thread for each request of this user's processes, or root's.
void start_status_server(Answer answer) noexcept;

// In a forked child: the parent's thread is not here, its socket must not be kept alive.
void forget_status_server_after_fork() noexcept;

}  // namespace memopt::agent
