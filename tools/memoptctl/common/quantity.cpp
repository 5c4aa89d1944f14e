#include "tools/memoptctl/common/quantity.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "shm/durations.h"

namespace memopt::tools {

std::string exact_size(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  for (; bytes != 0 && bytes % 1024 == 0 && unit + 1 < kUnits.size(); ++unit) bytes /= 1024;
  return fmt::format("{}{}", bytes, kUnits[unit]);
}

std::string exact_duration(std::uint64_t nanoseconds) {
  if (nanoseconds == 0) return "0s";
  const shm::DurationUnit* largest = nullptr;
  for (const shm::DurationUnit& unit : shm::kDurationUnits) {
    const bool larger = largest == nullptr || unit.nanoseconds > largest->nanoseconds;
    if (nanoseconds % unit.nanoseconds == 0 && larger) largest = &unit;
  }
  return fmt::format("{}{}", nanoseconds / largest->nanoseconds, largest->name);
}

}  // namespace memopt::tools
