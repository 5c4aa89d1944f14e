// Units of the simulated device. Virtual time is a clock of its own, so that it can't be mixed up with wall time.
#pragma once
#include <chrono>
#include <cstdint>

namespace cudasim {

using Duration = std::chrono::nanoseconds;

// Starts at 0 when the driver is loaded. Never read from the machine: the engine says what time it is.
struct VirtualClock {
  using rep = std::int64_t;
  using period = std::nano;
  using duration = Duration;
  using time_point = std::chrono::time_point<VirtualClock>;
  static constexpr bool is_steady = true;
};
using TimePoint = VirtualClock::time_point;

enum class ContextId : std::uint64_t { kNone = 0 };
enum class OperationId : std::uint64_t { kNone = 0 };

// Identity of bytes for the checker: physical device bytes (offset in the device's memory, whatever address they were
// reached by) or pinned host bytes (their address).
struct ByteRange {
  enum class Space : std::uint8_t { kDevice, kPinned };
  Space space;
  std::uint64_t begin;
  std::uint64_t end;  // exclusive
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

inline constexpr std::uint64_t kGranule = 2u << 20;  // physical granularity of the device: 2 MiB

}  // namespace cudasim
