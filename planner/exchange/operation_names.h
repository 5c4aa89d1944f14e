// How kinds of records, their flags and their directions are spelt in CSV files.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "shm/record.h"

namespace memopt::exchange {

inline constexpr std::array<std::string_view, shm::kLastRecordKind + 1> kOperationNames{
    "pad",          "malloc",     "free",         "launch",        "copy",           "memset",
    "event_record", "event_wait", "synchronize",  "stream_create", "stream_destroy", "host_function",
    "function",     "stack",      "parameters",   "module",        "device_time",    "state",
    "clock",        "escape",     "python_frame", "python_stack"};
inline constexpr std::string_view kGapName = "gap";

using Named = std::pair<std::uint64_t, std::string_view>;
inline constexpr std::array<Named, 4> kFlagNames{{{shm::kStreamOrdered, "stream-ordered"},
                                                  {shm::kForeign, "foreign"},
                                                  {shm::kBlindLaunch, "blind"},
                                                  {shm::kStays, "stays"}}};
inline constexpr std::array<Named, 4> kCopyNames{{{1, "to-device"}, {2, "to-host"}, {3, "on-device"}, {4, "unknown"}}};
inline constexpr std::array<Named, 3> kScopeNames{{{1, "context"}, {2, "stream"}, {3, "event"}}};
inline constexpr std::array<Named, 4> kStateNames{{{1, "live"}, {2, "deviated"}, {3, "restarted"}, {4, "new-context"}}};

template <std::size_t Count>
constexpr std::optional<std::string_view> name_of(const std::array<Named, Count>& names, std::uint64_t number) {
  for (const Named& named : names) {
    if (named.first == number) return named.second;
  }
  return std::nullopt;
}
template <std::size_t Count>
constexpr std::optional<std::uint64_t> number_of(const std::array<Named, Count>& names, std::string_view name) {
  for (const Named& named : names) {
    if (named.second == name) return named.first;
  }
  return std::nullopt;
}

// In the order in which they are written; read in any.
enum Column : std::uint8_t {
  kNumber,
  kThread,
  kTime,
  kOperation,
  kFlags,
  kStream,
  kBlock,
  kBytes,
  kAddress,
  kStack,
  kCaller,
  kAccesses,
  kName,
  kValues,
  kColumns
};
inline constexpr std::array<std::string_view, kColumns> kColumnNames{
    "number", "thread",  "time_ns", "operation", "flags",    "stream", "block",
    "bytes",  "address", "stack",   "caller",    "accesses", "name",   "values"};

}  // namespace memopt::exchange
