// What a loaded library calls in others, by name, put in the place of what the dynamic linker has bound.
#pragma once

namespace memopt::agent {

// `handle` from dlopen. Every reference of that library (not of others) to `name` leads to `function` from now on.
// False if it has none, or they cannot be written.
bool replace_import(void* handle, const char* name, void* function) noexcept;

}  // namespace memopt::agent
