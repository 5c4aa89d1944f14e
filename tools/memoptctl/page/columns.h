// Columns of numbers as the page's data has them (docs/report.md): base64 in JSON, the longer ones packed by zlib.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/json/tree.h"

namespace memopt::tools {

// Throws std::runtime_error where zlib can't pack it.
nlohmann::json column(const std::vector<double>& numbers);
nlohmann::json column(const std::vector<std::uint32_t>& numbers);
nlohmann::json column(const std::vector<std::uint8_t>& numbers);

template <typename Number, typename Items, typename Value>
nlohmann::json column_of(const Items& items, const Value& value) {
  std::vector<Number> numbers;
  numbers.reserve(items.size());
  for (const auto& item : items) numbers.push_back(static_cast<Number>(value(item)));
  return column(numbers);
}

// Fit for a terminal and for a page; names of C++ may be long.
nlohmann::json names_json(const std::vector<std::string>& names);
std::string shown_name(const std::string& name);

// The document as text that can be put between <script> tags: there is no '<' in it.
std::string script_text(const nlohmann::json& document);

}  // namespace memopt::tools
