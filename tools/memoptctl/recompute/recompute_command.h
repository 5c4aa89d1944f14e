// `memoptctl plan FILE --recompute`: blocks are dropped and computed again, so that an iteration stays within a limit.
#pragma once

#include "planner/input/file.h"
#include "tools/memoptctl/swap/swap_options.h"

namespace memopt::tools {

// Prints; with --json it writes the plan, or the comparison. The exit code: as swap_plan has them, and 1 where it is
// not known what the file's launches write.
int recompute_plan(const SwapPlanOptions& options, input::File& file);

}  // namespace memopt::tools
