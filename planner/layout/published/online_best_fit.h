// Best fit as an allocator does it that knows nothing of the future: each buffer, in the order in which they begin,
// into the smallest free range that is large enough, or on top (Knuth, "The Art of Computer Programming" 1,
// section 2.5). For comparison, and as the layout that there is in any case: it takes a fraction of the time of a
// skyline.
//
// Beyond the book: of buffers that begin together the largest goes first; where very many ranges are free, one is taken
// that is hardly larger than the smallest (free_ranges.h). A buffer that is needed in several intervals has its bytes
// from the first to the last; a fixed one has them all the time. Supports alignments: a range must be large enough for
// the aligned buffer.
//
// O(n log n). Looks at no limit, and uses neither threads nor seed. The only bound is the load.
#pragma once

#include "planner/layout/problem/limits.h"
#include "planner/layout/problem/outcome.h"
#include "planner/layout/problem/problem.h"

namespace memopt::layout {

Outcome online_best_fit(const Problem& problem, const Limits& limits);

}  // namespace memopt::layout
