// Keeps libunwind from opening descriptors in the program. Before it reads a word it writes it into a pipe of its own,
// to learn whether the address can be read. The pipe takes two numbers that the program counts on, and when the program
// closes all that it knows nothing of, and opens files of its own, libunwind writes into these and reads from them.
#pragma once

namespace memopt::agent {

// For a libunwind that has opened no pipe yet: from now on the kernel is asked without one. False if that is not
// possible; then nothing has changed.
bool give_pipeless_validation(void* libunwind) noexcept;

// Can the word around the address be read?
bool is_readable(const void* address) noexcept;

}  // namespace memopt::agent
