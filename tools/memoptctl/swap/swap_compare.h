// `memoptctl plan --compare`: what each strategy adds to an iteration under each of several limits, beside the bound.
#pragma once

#include "tools/memoptctl/swap/swap_options.h"

namespace memopt::tools {

// 0, also where limits can't be met: that is what a comparison is to show; 4 if no iteration was found. Throws
// std::invalid_argument for options that can't be.
int compare_swaps(const SwapPlanOptions& options);

}  // namespace memopt::tools
