#include "planted_kernels.cuh"

#include <cudasim/kernel_plugin.h>

CUDASIM_KERNEL(fill, [](cudasim::Grid, unsigned*, unsigned, int count) {
  return cudasim::Cost{.flops = 0, .bytes = 4.0 * count};
});
CUDASIM_KERNEL(add, [](cudasim::Grid, unsigned*, const unsigned*, int count) {
  return cudasim::Cost{.flops = 1.0 * count, .bytes = 12.0 * count};
});
