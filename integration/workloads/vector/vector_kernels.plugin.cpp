// The kernels of the vector programs for the simulated driver: the same source, and what each launch costs.
#include "vector_kernels.cuh"

#include <cudasim/kernel_plugin.h>

using cudasim::Cost;
using cudasim::Grid;

CUDASIM_KERNEL(vector_fill, [](Grid, unsigned*, unsigned, int count) { return Cost{.bytes = 4.0 * count}; });
CUDASIM_KERNEL(vector_combine, [](Grid, unsigned*, const unsigned*, const unsigned*, int count) {
  return Cost{.bytes = 12.0 * count};
});
