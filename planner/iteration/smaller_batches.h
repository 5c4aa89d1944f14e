// Batches that are smaller than planned: an epoch's last one, texts that are shorter. They make the planned mallocs, of
// fewer bytes, and whoever follows the plan has their blocks in its places (agent/memory/follower.h).
#pragma once

#include "planner/iteration/detection.h"
#include "planner/iteration/lifetimes.h"
#include "planner/iteration/operation_store.h"

namespace memopt::planner {

// Is what was found the planned iteration, once or several times over, with blocks of which none is larger and some are
// smaller? Compared are the mallocs of each lane, from anywhere in the iteration on, by bytes and return addresses. No,
// too, where that can't be told in a bounded number of comparisons.
bool is_of_smaller_batches(const OperationStore& store, const Iteration& found, const IterationLifetimes& planned);

}  // namespace memopt::planner
