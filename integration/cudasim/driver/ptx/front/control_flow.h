// Blocks, their successors and post-dominators, and what is known of a module only when all of it has been read.
#pragma once
#include "ptx/front/program.h"

namespace cudasim::ptx {

// Cuts a function's instructions into blocks. Operands that name a block have the number of an instruction before, of a
// block after.
void find_blocks(Function& function);

// Immediate post-dominators, by the algorithm of Cooper, Harvey and Kennedy ("A Simple, Fast Dominance Algorithm") on
// the reversed graph, whose root is a common exit behind all blocks that leave.
void find_post_dominators(Function& function);

// Both for all functions, and the layout of each kernel's shared memory.
void finish(Program& program);

}  // namespace cudasim::ptx
