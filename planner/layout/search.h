// What every solver is told about how long to go on, and what it answers.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string_view>

#include "planner/layout/problem.h"

namespace memopt::layout {

// Ends at whichever comes first. With no time limit the same seed gives the same result on any machine and any number
// of threads.
struct Limits {
  std::chrono::nanoseconds time = std::chrono::nanoseconds::max();
  std::uint64_t work = ~std::uint64_t{0};  // steps, of about a microsecond at most; counted, so that results repeat
  const std::atomic<bool>* cancelled = nullptr;  // may be set by another thread
  unsigned threads = 1;
  std::uint64_t seed = 1;
};

struct Outcome {
  Solution solution;              // empty offsets: none was found (within the capacity)
  std::uint64_t lower_bound = 0;  // proven: no solution is smaller
  bool optimal = false;           // proven: height == lower_bound, or the search was exhausted
  bool infeasible = false;        // proven: none within the capacity
  std::string_view solver;        // that found it; a literal

  bool found(std::size_t buffers) const { return solution.offsets.size() == buffers; }
};

// Called with each solution that is smaller than the last, from any thread, one at a time.
using OnBetter = std::function<void(const Outcome&)>;

}  // namespace memopt::layout
