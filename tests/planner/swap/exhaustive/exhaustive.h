// The best plans for a problem that is small enough to try everything: what planners and bounds are held against.
//
// Tried are: for each gap of each block, to stay or to be swapped, with every pair of issue points; every order of the
// swaps, as far as it decides between copies issued after the same operation; for each block that crosses the boundary
// of the iteration, one place or two in turn; every layout up to the equivalence below. verify() judges each candidate,
// early copies in refused; nothing of the simulator is used in any other way.
//
// Left out, because each only adds waits or bytes, and all times are maxima and sums of others, so that one wait less
// delays nothing: swaps that are waited for before the next access; several swaps between two accesses; swaps with no
// operation between their going out and their return; coming back only to be freed. Left out although they could be
// better: more than two places for a block, and two for one that does not cross. Drops without a copy are tried where
// the problem allows them, behind operations that only read.
//
// Layouts: which blocks share bytes decides everything but the footprint. For any layout, keep which of two blocks that
// share nothing is below the other, and push all down: no two blocks share bytes that did not before, and each offset
// is 0 or, rounded up, the end of another block. So only such offsets are tried.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/swap/model/model.h"

namespace memopt::swap::testing {

struct OptimalPlan {
  std::uint64_t footprint = 0;  // without layout: the limit of the problem
  double added_ns = 0;
  Decisions decisions;
};

struct Optimum {
  std::vector<OptimalPlan> plans;  // footprints ascending, added times falling; without layout one, or none
  std::size_t candidates = 0;      // choices of swaps with their issue points
  std::size_t judged = 0;          // by verify()

  // Null if nothing fits.
  const OptimalPlan* least_added_time(std::uint64_t limit) const;
  const OptimalPlan* least_footprint(double added_ns) const;
};

struct ExhaustiveOptions {
  std::size_t most_candidates = 20000;
  // Each of these may be switched off, which changes nothing but the work.
  bool fewest_waits = true;  // no layouts in which more blocks share bytes than in one that is no larger
  bool skip_worse = true;  // no candidates that could not be better than a plan that was found, even if nothing waited
};

// How many choices of swaps there are. Throws std::invalid_argument for problems with more than 12 operations, with
// ages above 1, or with more than 6 places.
std::size_t count_candidates(const Problem& problem);

// With a layout, the limit of the problem is left aside: `plans` has the answers for all. Throws std::invalid_argument
// if there are more candidates than allowed. Exponential in everything.
Optimum exhaustive(const Problem& problem, const ExhaustiveOptions& options = {});

}  // namespace memopt::swap::testing
