// Before a wrapper returns, in a run that decides: clears the stack below its caller.
//
// Structs of parameters are made on the stack, and what they don't set is what calls before have left there. A shim's
// calls leave something else than the driver's do. Words that stand there in a run that has cleared it are the
// program's own.
#pragma once

namespace launch_effects {

void scrub_stack();

}  // namespace launch_effects
