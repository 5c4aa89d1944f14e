// `memoptctl plan` with swaps: what leaves the device in one iteration, when, and what that costs.
#pragma once

#include "planner/input/file.h"
#include "tools/memoptctl/swap/swap_options.h"

namespace memopt::tools {

// 0; 2 for options that can't be; 3 if no plan of the strategy fits into the limit: the least that does is named; 4 if
// no iteration was found.
int swap_plan(const SwapPlanOptions& options, input::File& file);

// `--compare`: what each strategy adds to the iteration under each of several limits, beside the bound. 0, also where
// limits can't be met: that is what a comparison is to show; 4 if no iteration was found. Throws std::invalid_argument
// for options that can't be.
int compare_swaps(const SwapPlanOptions& options, input::File& file);

}  // namespace memopt::tools
