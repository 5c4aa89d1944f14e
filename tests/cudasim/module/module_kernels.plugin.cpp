#include "module_kernels.cuh"

#include "cudasim/kernel_plugin.h"

static __global__ void changed_long_ago(int* p, long long n) { *p = static_cast<int>(n); }

CUDASIM_KERNEL(add_vectors, [](cudasim::Grid, const float*, const float*, float*, int n) {
  return cudasim::Cost{.flops = 1.0 * n, .bytes = 12.0 * n};
});
CUDASIM_KERNEL(by_value, [](cudasim::Grid, float*, Record record, char, Packed, long long) {
  return cudasim::Cost{.flops = 1000.0 * record.offset};
});
CUDASIM_KERNEL(coordinates);
CUDASIM_KERNEL(numbers, [](cudasim::Grid grid, const float*, float*, int) {
  return cudasim::Cost{.nanoseconds = grid.threads()};
});
CUDASIM_KERNEL(store_at);
CUDASIM_KERNEL(load_from);
CUDASIM_KERNEL(nothing);
CUDASIM_KERNEL((scaled<float>));
CUDASIM_KERNEL_NAMED("_Z7changedPii", changed_long_ago);
