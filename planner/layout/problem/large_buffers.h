// Internal to planner/layout: the large buffers of a problem as a problem of their own. Where these are few, a search
// among them goes through many more layouts in the same time, and the small ones go into the holes that they leave.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/layout/problem/problem.h"
#include "planner/layout/problem/sections.h"

namespace memopt::layout {

struct LargeBuffers {
  Problem problem;                     // without a capacity
  std::vector<std::uint32_t> numbers;  // of the problem's buffers, as they are in the other one
};

// As few as possible of the largest, so that the others together never need more than `part` of the load; those that
// have their place are among them. Nothing where that is more than half of all. O(n log n).
std::optional<LargeBuffers> large_buffers(const Problem& problem, const Sections& sections, double part);

}  // namespace memopt::layout
