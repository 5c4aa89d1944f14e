// Best fit on offset lines: Sekiyama, Imamichi, Imai, Raymond, "Profile-guided memory optimization for deep neural
// networks" (arXiv 1804.10001, 2018), section 3.3. The lowest line is taken (of equal ones the earliest), and of the
// buffers that fit into its time the one with the longest lifetime is placed on it; if there is none, the line is
// lifted to its lower neighbour. Of equal lifetimes the buffer that begins first is placed first.
//
// Beyond the paper: several intervals, alignments and fixed offsets (skyline.h), and other keys than the lifetime.
// O(n log^2 n). No solution if the limits were met first. Threads and seed change nothing.
#pragma once

#include "planner/layout/problem/limits.h"
#include "planner/layout/problem/outcome.h"
#include "planner/layout/problem/problem.h"

namespace memopt::layout {

enum class LineKey {
  kLifetime,  // the paper's
  kBytes,
  kArea,  // bytes times lifetime
};

Outcome offset_lines(const Problem& problem, const Limits& limits, LineKey key = LineKey::kLifetime);

}  // namespace memopt::layout
