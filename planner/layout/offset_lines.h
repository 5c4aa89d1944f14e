// Best fit on offset lines: Sekiyama, Imai, Negishi, Kawachiya, "Profile-guided memory optimization for deep neural
// networks" (2018), section 3.3. The lowest line is taken (of equal ones the earliest), and of the buffers that fit
// into its time the one with the longest lifetime goes on it; if there is none, the line is lifted to its lower
// neighbour. Of equal lifetimes the buffer that begins first goes first.
//
// Beyond the paper: several intervals, alignments and fixed places, as skyline.h says; and other keys than the
// lifetime. O(n log^2 n). No answer if the limits were met first. Threads and seed change nothing.
#pragma once

#include "planner/layout/problem.h"
#include "planner/layout/search.h"

namespace memopt::layout {

enum class LineKey {
  kLifetime,  // the paper's
  kBytes,
  kArea,  // bytes times lifetime
};

Outcome offset_lines(const Problem& problem, const Limits& limits, LineKey key = LineKey::kLifetime);

}  // namespace memopt::layout
