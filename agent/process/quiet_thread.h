// A thread of ours in somebody else's process: detached, and no signal of the program reaches it.
#pragma once

namespace memopt::agent {

// `body` runs on it once, with `argument`. 0, or the errno.
int start_quiet_thread(void* (*body)(void*), void* argument) noexcept;

}  // namespace memopt::agent
