// Best fit on offset lines (Sekiyama et al. 2018, section 3.3), for iterations that repeat.
//
// The top of what is placed is a skyline over time. The lowest line is taken, and the buffer with the largest key that
// fits into its time is put on it; if there is none, the line is lifted to its lower neighbour. Difference from the
// paper: lifetimes are cyclic. Buffers that cross the boundary are stacked first, longest at the bottom, and form the
// ground on which the others stand.
#pragma once

#include <cstdint>

#include "planner/iteration/layout/problem.h"

namespace memopt::planner::layout {

enum class LineKey { kLifetime, kSize, kArea };  // the paper has the lifetime

// `work` counts buffers looked at and stops the search at `budget`: then the solution is empty.
Solution place_on_lines(const Problem& problem, LineKey key, std::uint64_t budget);

}  // namespace memopt::planner::layout
