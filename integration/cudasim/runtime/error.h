#pragma once

// Error codes: the driver's into the runtime's, and the last error of each thread.

#include <cuda.h>
#include <driver_types.h>

namespace cudart {

// The two enumerations share their numbers; a driver code that the runtime does not know becomes cudaErrorUnknown.
cudaError_t to_runtime_error(CUresult result);

// Notes a failure as the thread's last error and returns it; success leaves the last error alone.
cudaError_t record(cudaError_t error);
inline cudaError_t record(CUresult result) { return record(to_runtime_error(result)); }

// The last error; `take` also resets it, except one that has destroyed the context: that stays.
cudaError_t peek_last_error();
cudaError_t take_last_error();

// After a successful device reset nothing of the old context is left to complain about.
void forget_last_error();

}  // namespace cudart
