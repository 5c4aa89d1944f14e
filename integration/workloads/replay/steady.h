// The iteration in which a trace ends, as a loop that can go on for ever.
//
// Found by itself, so that tests of planners can rely on it: the trace's tokens (operation, size, distance to the
// operation before on the same block) end with a shortest sequence that repeats exactly the one before it. It has to be
// balanced (each block born in it is freed at one place of the same or a later round), to use the same blocks of those
// that are there all the time (layers of one shape don't), and to reach 90 % of the peak load of the trace's second
// half (a loop over small blocks does not). What comes after the last iteration (a truncated one, frees at exit) is cut
// off, in steps of a 128th of the trace, up to half of it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "trace.h"

namespace replay {

// Which block an operation of the loop means.
struct LoopOperation {
  Verb verb = Verb::kMarker;
  // Born in the loop: at this offset, `age` rounds ago. Otherwise `block` is there all the time.
  bool born_in_loop = false;
  std::uint32_t birth = 0;
  std::uint32_t age = 0;
  BlockIndex block = 0;
  std::uint64_t bytes = 0;
};

struct Steady {
  std::size_t end = 0;         // of the last iteration: an index of the trace
  std::size_t period = 0;      // operations
  std::size_t iterations = 0;  // whole ones before `end`; blocks may be met for the first time in the first of them
  std::uint32_t deepest = 0;   // largest age
  std::vector<LoopOperation> loop;  // `period` of them

  std::size_t begin() const { return end - iterations * period; }
};

std::optional<Steady> find_steady(const Trace& trace);

}  // namespace replay
