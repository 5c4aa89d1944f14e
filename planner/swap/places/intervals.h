// The times in which a buffer is needed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "planner/layout/problem/problem.h"

namespace memopt::swap {

// Sorts intervals, and joins those that touch; false if two have time in common. None: nothing to do.
inline bool join(std::vector<layout::Interval>& when) {
  std::sort(when.begin(), when.end(),
            [](const layout::Interval& a, const layout::Interval& b) { return a.begin < b.begin; });
  std::size_t kept = 0;
  for (std::size_t k = 1; k < when.size(); ++k) {
    if (when[k].begin < when[kept].end) return false;
    if (when[k].begin == when[kept].end) {
      when[kept].end = when[k].end;
    } else {
      when[++kept] = when[k];
    }
  }
  when.resize(when.empty() ? 0 : kept + 1);
  return true;
}

}  // namespace memopt::swap
