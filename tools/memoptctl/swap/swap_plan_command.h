// `memoptctl plan` with swaps: what leaves the device in one iteration, when, and what that costs.
#pragma once

#include "tools/memoptctl/swap/swap_options.h"

namespace memopt::tools {

// 0; 2 for options that can't be; 3 if no plan of the strategy fits into the limit: the least that does is named; 4 if
// no iteration was found.
int swap_plan(const SwapPlanOptions& options);

}  // namespace memopt::tools
