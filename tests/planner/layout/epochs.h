// Epochs: the same step again and again, and something behind the last one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "planner/layout/problem/problem.h"
#include "tests/planner/layout/training_like.h"

namespace memopt::layout {

struct Epoch {
  struct Block {
    std::uint64_t bytes;
    std::uint64_t begin, end;  // behind `length`: in the next step
    std::uint64_t alignment = 1;
  };
  std::vector<Block> step;
  std::uint64_t length = 0;
  std::vector<std::uint64_t> throughout;  // bytes
};

// What is needed over the end of the last step is so in the next epoch's beginning.
inline Problem problem_of(const Epoch& epoch, std::uint64_t steps) {
  Problem problem;
  const std::uint64_t end = steps * epoch.length + 2;
  for (const std::uint64_t bytes : epoch.throughout) problem.add(bytes, Interval{0, end});
  for (std::uint64_t k = 0; k < steps; ++k) {
    for (const Epoch::Block& block : epoch.step) {
      const Interval when{block.begin + k * epoch.length, block.end + k * epoch.length};
      const Interval parts[] = {{0, when.end - std::min(when.end, end)}, {when.begin, std::min(when.end, end)}};
      if (when.begin <= parts[0].end) {
        problem.add(block.bytes, Interval{0, end}, block.alignment);
      } else {
        problem.add(block.bytes, when.end <= end ? std::span(parts).last(1) : std::span(parts), block.alignment);
      }
    }
  }
  problem.add(3 << 20, Interval{end - 2, end - 1});
  return problem;
}

// Of a training program's step.
inline Epoch epoch_of(const Problem& step) {
  Epoch epoch;
  for (const Interval& interval : step.intervals) epoch.length = std::max(epoch.length, interval.end);
  for (std::size_t i = 0; i < step.buffers.size(); ++i) {
    const auto intervals = step.intervals_of(i);
    const bool crosses = intervals.size() == 2;
    epoch.step.push_back({step.buffers[i].bytes, intervals.back().begin,
                          crosses ? intervals.front().end + epoch.length : intervals.back().end,
                          step.buffers[i].alignment});
  }
  return epoch;
}

}  // namespace memopt::layout
