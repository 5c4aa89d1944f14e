// Settings that make frameworks allocate one by one (shm/frameworks.h): added to the program's environment before the
// program runs, and shown in status.
#pragma once

#include <vector>

#include "shm/status.h"

namespace memopt::agent {

// Called once, while the library is initialised: before main, and before any framework that is loaded later. Adds to
// the environment what the options in it ask for. Nothing is logged; without memory the environment stays as it is.
void set_framework_environment() noexcept;

// Frameworks that are loaded in this process now, and what holds for them. May throw std::bad_alloc.
std::vector<shm::FrameworkStatus> loaded_frameworks();

// One of these: a pool of its own is on, which gives back what nothing uses when it is refused memory, and asks again.
bool asks_again(const shm::FrameworkStatus& framework);
// One of these: PyTorch, allocating one by one. The planner has a model of the allocator that is off then.
bool is_pytorch_without_caching(const shm::FrameworkStatus& framework);

}  // namespace memopt::agent
