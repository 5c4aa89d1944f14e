// How many bytes are on the device at each operation of an iteration, which is a circle.
//
// Not thread-safe. O(1) a change, O(n) for the levels.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "planner/swap/model/liveness.h"
#include "planner/swap/model/model.h"

namespace memopt::swap {

class Load {
 public:
  explicit Load(std::uint64_t operations) : change_(operations + 1, 0), level_(operations, 0) {}

  // At positions [from, to), of every instance.
  void add(std::uint64_t from, std::uint64_t to, std::int64_t bytes) {
    if (from >= to) return;
    const std::uint64_t n = level_.size();
    whole_ += bytes * static_cast<std::int64_t>((to - from) / n);
    const std::uint64_t begin = from % n, end = begin + (to - from) % n;
    change_[begin] += bytes;
    change_[std::min(end, n)] -= bytes;
    if (end <= n) return;
    change_[0] += bytes;
    change_[end - n] -= bytes;
  }
  // Wherever the block lives.
  void add_life(const Problem& problem, const Liveness& liveness, std::uint32_t block, std::int64_t bytes) {
    if (problem.blocks[block].persistent) {
      add(0, liveness.operations, bytes);
    } else {
      add(liveness.of[block].start, liveness.of[block].freed + 1, bytes);
    }
  }
  const std::vector<std::int64_t>& levels() {
    std::int64_t now = whole_;
    for (std::size_t i = 0; i < level_.size(); ++i) level_[i] = now += change_[i];
    return level_;
  }
  std::uint64_t peak() { return static_cast<std::uint64_t>(*std::max_element(levels().begin(), levels().end())); }

 private:
  std::vector<std::int64_t> change_, level_;
  std::int64_t whole_ = 0;
};

// Of all blocks, nothing swapped.
inline Load live_load(const Problem& problem, const Liveness& liveness) {
  Load load(liveness.operations);
  for (std::uint32_t block = 0; block < problem.blocks.size(); ++block) {
    load.add_life(problem, liveness, block, static_cast<std::int64_t>(problem.blocks[block].bytes));
  }
  return load;
}

// The blocks that operations [begin, end) access, and which instances, each once.
inline std::vector<std::pair<std::uint32_t, std::uint32_t>> accessed_by(const Problem& problem, std::size_t begin,
                                                                        std::size_t end) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> accessed;
  for (std::size_t at = begin; at < end; ++at) {
    const Operation& operation = problem.operations[at];
    if (is_access(operation)) accessed.emplace_back(operation.block, operation.age);
  }
  std::sort(accessed.begin(), accessed.end());
  accessed.erase(std::unique(accessed.begin(), accessed.end()), accessed.end());
  return accessed;
}

// Of pinned blocks and of what one operation touches, all of a launch's blocks at once: no plan needs less, whatever it
// swaps. O(n log n) for the operations of one launch.
inline std::uint64_t least_load(const Problem& problem, const Liveness& liveness) {
  Load load(liveness.operations);
  for (std::uint32_t block = 0; block < problem.blocks.size(); ++block) {
    if (!problem.blocks[block].pinned) continue;
    load.add_life(problem, liveness, block, static_cast<std::int64_t>(problem.blocks[block].bytes));
  }
  for (std::size_t begin = 0, end = 0; begin < problem.operations.size(); begin = end) {
    end = end_of_launch(problem, begin);
    for (const auto& [block, age] : accessed_by(problem, begin, end)) {
      if (problem.blocks[block].pinned) continue;
      load.add(begin, end, static_cast<std::int64_t>(problem.blocks[block].bytes));
    }
  }
  return load.peak();
}

}  // namespace memopt::swap
