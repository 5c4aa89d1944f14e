#pragma once

// What the ways to launch a kernel have in common.

#include <cuda.h>
#include <driver_types.h>
#include <vector_types.h>

namespace cudart {

// The driver calls every impossible launch an invalid value; the runtime tells an impossible grid or block apart.
cudaError_t explain_launch_failure(cudaError_t error, dim3 grid, dim3 block);

}  // namespace cudart
