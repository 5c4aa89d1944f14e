// Members of an agent's answer (docs/formats/status.md), which is another process's word: what is absent and what is of
// the wrong type are the same.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>

#include "planner/json/tree.h"

namespace memopt::tools {

using MemberPath = std::initializer_list<const char*>;

// The value at the end of the path, or nullptr.
const nlohmann::json* member(const nlohmann::json& object, MemberPath path);
// Printable; empty for none.
std::string text_member(const nlohmann::json& object, MemberPath path);
std::optional<std::uint64_t> count_member(const nlohmann::json& object, MemberPath path);
// Also of a whole number; nothing that is not finite.
std::optional<double> number_member(const nlohmann::json& object, MemberPath path);

}  // namespace memopt::tools
