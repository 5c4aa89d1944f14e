// Small iterations to learn on that are none of anyone's: training steps of random networks, forward and backward.
#pragma once

#include <cstdint>

#include "planner/swap/model/model.h"

namespace memopt::recompute {

// 8 to 24 layers, each dear or cheap, of sizes that mostly fall, some reading an earlier one besides; backward each
// reads its layer's input or output, or both. Copying all that the forward half makes takes a third of the period to
// three of them. The same seed gives the same iteration.
swap::Problem generated_iteration(std::uint64_t seed);

}  // namespace memopt::recompute
