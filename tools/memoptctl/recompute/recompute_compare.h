// `plan --recompute --compare`: what each strategy adds within several limits.
#pragma once

#include "tools/memoptctl/swap/swap_options.h"
#include "tools/memoptctl/swap/swap_problem.h"

namespace memopt::tools {

// Prints the table, and writes it where the options say; an exit code. Throws std::invalid_argument for options that
// can't be.
int compare_recomputation(const SwapPlanOptions& options, const SwapProblem& input);

}  // namespace memopt::tools
