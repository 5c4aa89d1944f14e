// The kernels of the limit's programs for the simulated driver: the same source, and what each launch costs.
#include "limit_kernels.cuh"

#include <cudasim/kernel_plugin.h>

using cudasim::Cost;
using cudasim::Grid;

CUDASIM_KERNEL(limit_fill, [](Grid, unsigned*, unsigned, int count) { return Cost{.bytes = 4.0 * count}; });
CUDASIM_KERNEL(limit_add, [](Grid, unsigned*, const unsigned*, int count) { return Cost{.bytes = 12.0 * count}; });
CUDASIM_KERNEL(limit_add_two, [](Grid, int count, Two) { return Cost{.bytes = 12.0 * count}; });
CUDASIM_KERNEL(limit_add_before, [](Grid, unsigned*, unsigned, int count) { return Cost{.bytes = 8.0 * count}; });
CUDASIM_KERNEL(limit_gather, [](Grid, unsigned*, const unsigned* const*, int blocks, int count) {
  return Cost{.bytes = 4.0 * (blocks + 1) * count};
});
CUDASIM_KERNEL(limit_scatter, [](Grid, unsigned* const*, int blocks, unsigned, int count) {
  return Cost{.bytes = 8.0 * blocks * count};
});
CUDASIM_KERNEL(limit_store, [](Grid, unsigned**, int, int count, unsigned*) { return Cost{.bytes = 8.0 * count}; });
CUDASIM_KERNEL(limit_first_words, [](Grid, unsigned*, unsigned*, unsigned*, unsigned*) { return Cost{.bytes = 32.0}; });
