// The kernels for the simulated driver: the same source.
#include "facts_kernels.cuh"

#include <cudasim/kernel_plugin.h>

using cudasim::Cost;
using cudasim::Grid;

CUDASIM_KERNEL(facts_empty);
CUDASIM_KERNEL(facts_spin, [](Grid, unsigned long long nanoseconds, unsigned long long*) {
  return Cost{.nanoseconds = double(nanoseconds)};
});
CUDASIM_KERNEL(facts_fill);
CUDASIM_KERNEL(facts_compare);
CUDASIM_KERNEL(facts_within);
