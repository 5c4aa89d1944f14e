// Blocks that are to stay on the device whatever the limit (MEMOPT_PIN): of at least some size, or allocated by some
// function.
#pragma once

#include <cstddef>

namespace memopt::agent {

// Is the block one of these? By its size, else by the program's frames: what is matched of each is FILE:FUNCTION, the
// file without its folder, the function demangled, or nothing where it is not exported. A call stack is looked at once.
// Any thread, without the arena's lock; a load and a comparison where the option is not set. Out of memory: no.
bool is_to_stay(std::size_t bytes, const void* return_address) noexcept;

void forget_pins_after_fork() noexcept;

}  // namespace memopt::agent
