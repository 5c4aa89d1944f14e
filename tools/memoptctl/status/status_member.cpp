#include "tools/memoptctl/status/status_member.h"

#include <cmath>

#include "tools/memoptctl/common/printable.h"

namespace memopt::tools {

const nlohmann::json* member(const nlohmann::json& object, MemberPath path) {
  const nlohmann::json* value = &object;
  for (const char* name : path) {
    if (!value->is_object()) return nullptr;
    const auto found = value->find(name);
    if (found == value->end()) return nullptr;
    value = &*found;
  }
  return value;
}

std::string text_member(const nlohmann::json& object, MemberPath path) {
  const nlohmann::json* value = member(object, path);
  return value != nullptr && value->is_string() ? printable(value->get_ref<const std::string&>()) : "";
}

std::optional<std::uint64_t> count_member(const nlohmann::json& object, MemberPath path) {
  const nlohmann::json* value = member(object, path);
  if (value == nullptr || !value->is_number_unsigned()) return std::nullopt;
  return value->get<std::uint64_t>();
}

std::optional<double> number_member(const nlohmann::json& object, MemberPath path) {
  const nlohmann::json* value = member(object, path);
  if (value == nullptr || !value->is_number() || !std::isfinite(value->get<double>())) return std::nullopt;
  return value->get<double>();
}

}  // namespace memopt::tools
