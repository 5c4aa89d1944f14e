#include "planner/layout/stacked.h"

#include <algorithm>

namespace memopt::layout {

Solution stacked(const Problem& problem) {
  Solution solution;
  solution.offsets.reserve(problem.buffers.size());
  for (const Buffer& buffer : problem.buffers) {
    if (buffer.fixed != kAnywhere) solution.height = std::max(solution.height, buffer.fixed + buffer.bytes);
  }
  for (const Buffer& buffer : problem.buffers) {
    if (buffer.fixed != kAnywhere) {
      solution.offsets.push_back(buffer.fixed);
      continue;
    }
    solution.offsets.push_back((solution.height + buffer.alignment - 1) / buffer.alignment * buffer.alignment);
    solution.height = solution.offsets.back() + buffer.bytes;
  }
  return solution;
}

}  // namespace memopt::layout
