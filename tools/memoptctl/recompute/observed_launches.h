// Of an iteration that was found in a recording or in a text trace: what its launches read and write, as far as that
// is known, or assumed.
#pragma once

#include <string>

#include "planner/input/file.h"
#include "tools/memoptctl/swap/swap_options.h"
#include "tools/memoptctl/swap/swap_problem.h"

namespace memopt::tools {

// Throws std::invalid_argument if the options say something of kernels and the input is no recording.
void refuse_for_known(const SwapPlanOptions& options, const SwapProblem& input);

// Gives the input, which was observed in that file, launches that may be computed again; its peak load may be a byte
// larger (planner/recompute/observed/known.h). What was assumed, and what can't be computed again for which reason: for
// people, lines. Throws std::runtime_error where a file can't be read, std::invalid_argument for options that can't be.
std::string know_launches(const SwapPlanOptions& options, input::File& file, SwapProblem& input);

}  // namespace memopt::tools
