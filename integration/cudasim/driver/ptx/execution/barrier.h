// bar and barrier: what a step asks for, and the result of bar.red.
#pragma once
#include "ptx/execution/warp.h"

namespace cudasim::ptx {

// Of bar.red, into the step's destination: how many, whether all, whether any of the block's predicates are true.
void store_reduction(Warp& warp, const Step& step, Mask mask, std::uint32_t true_count, std::uint32_t predicates);

}  // namespace cudasim::ptx
