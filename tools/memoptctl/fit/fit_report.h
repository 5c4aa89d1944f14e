// What `memoptctl fit` found, as text and as JSON (docs/fit.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/json/tree.h"
#include "tools/memoptctl/fit/fit_device.h"
#include "tools/memoptctl/fit/needs.h"

namespace memopt::tools {

// Ways to hold a program: caching allocator, plain allocation, memopt's layout, memopt's swaps by kAdded.
inline constexpr std::size_t kWays = 3 + kAdded.size();
// For people, and as a key of JSON.
std::string way_name(std::size_t way);
std::string way_key(std::size_t way);
// Bytes; nothing where it is not known.
std::optional<std::uint64_t> needed(const Needs& needs, std::size_t way);
inline bool fits(const Needs& needs, std::size_t way, std::uint64_t capacity) {
  const auto bytes = needed(needs, way);
  return bytes && *bytes <= capacity;
}

struct FitRow {
  std::string value;  // of --scale; empty: there is none
  Needs needs;
  std::string fault;  // why there is nothing else
  std::string note;   // of the run
};

struct FitReport {
  FitDevice device;
  std::string source;  // what was looked at: a recording and its device, or a run
  std::string scale;   // the name; empty: there is none
  std::vector<FitRow> rows;
  std::vector<std::optional<std::string>> largest;  // by way: the largest value that fits; empty without a scale
};

std::string to_text(const FitReport& report);
nlohmann::json to_json(const FitReport& report);

}  // namespace memopt::tools
