// Turns ticks of the program's clock into nanoseconds, by the clock readings in a recording.
#pragma once

#include <cstdint>

#include "planner/daemon/sink.h"

namespace memopt::planner {

// The straight line through the first and the last reading. Differences between readings of minutes apart are below a
// millionth; what is read close to each other only serves while there is nothing better.
class ClockLine {
 public:
  void add(const ClockPair& reading) {
    if (readings_++ == 0) first_ = reading;
    if (readings_ == 1 || reading.ticks > last_.ticks) last_ = reading;
  }

  // Without two readings the rate is not known, and a tick counts as a nanosecond.
  bool known() const { return readings_ >= 2 && last_.ticks > first_.ticks && last_.nanoseconds > first_.nanoseconds; }

  std::uint64_t nanoseconds(std::uint64_t ticks) const {
    if (readings_ == 0) return ticks;
    // 64 bits of mantissa on the machines that there are; readings that are nonsense give a number, not an overflow.
    long double offset = static_cast<long double>(ticks) - static_cast<long double>(first_.ticks);
    if (known()) {
      offset *= static_cast<long double>(last_.nanoseconds - first_.nanoseconds);
      offset /= static_cast<long double>(last_.ticks - first_.ticks);
    }
    const long double result = static_cast<long double>(first_.nanoseconds) + offset;
    if (result <= 0) return 0;
    constexpr long double kLargest = 9.2e18L;
    return static_cast<std::uint64_t>(result < kLargest ? result : kLargest);
  }

 private:
  ClockPair first_;
  ClockPair last_;
  std::uint64_t readings_ = 0;
};

class RecordingReader;

// All readings of a recording: reads on to its end.
ClockLine read_clock(RecordingReader& reader);

}  // namespace memopt::planner
