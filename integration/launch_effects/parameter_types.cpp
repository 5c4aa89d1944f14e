#include "parameter_types.h"

#include <cxxabi.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

namespace launch_effects {

bool is_pointer_to_const(std::string_view type) {
  for (const std::string_view qualifier : {" __restrict__", " const", " volatile"}) {
    if (type.ends_with(qualifier)) type.remove_suffix(qualifier.size());
  }
  return type.ends_with(" const*");
}

std::vector<std::string> parameter_types(const std::string& mangled_name) {
  if (!mangled_name.starts_with("_Z")) return {};
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> demangled(
      abi::__cxa_demangle(mangled_name.c_str(), nullptr, nullptr, &status), &std::free);
  if (status != 0 || demangled == nullptr) return {};
  const std::string_view name = demangled.get();
  if (!name.ends_with(')')) return {};
  // From the last parenthesis back to the one that it closes.
  std::size_t begin = name.size();
  for (int depth = 0; begin > 0;) {
    const char c = name[--begin];
    if (c == ')') ++depth;
    if (c == '(' && --depth == 0) break;
  }
  std::vector<std::string> types;
  std::string type;
  int depth = 0;
  for (const char c : name.substr(begin + 1, name.size() - begin - 2)) {
    if (std::strchr("<([{", c) != nullptr) ++depth;
    if (std::strchr(">)]}", c) != nullptr) --depth;
    if (c == ',' && depth == 0) {
      types.push_back(std::exchange(type, {}));
    } else if (c != ' ' || !type.empty()) {
      type += c;
    }
  }
  if (!type.empty()) types.push_back(type);
  return types;
}

}  // namespace launch_effects
