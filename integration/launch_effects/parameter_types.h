// What a kernel's mangled name says of its parameters.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace launch_effects {

// The types of a mangled function's parameters, as written in C++; empty for other names.
std::vector<std::string> parameter_types(const std::string& mangled_name);

// "float const*", "float const* __restrict__"; not "float* const".
bool is_pointer_to_const(std::string_view type);

}  // namespace launch_effects
