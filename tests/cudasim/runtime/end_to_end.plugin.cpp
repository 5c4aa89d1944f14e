#include "cudasim/kernel_plugin.h"
#include "end_to_end_kernels.cuh"

CUDASIM_KERNEL(apply_line);
CUDASIM_KERNEL((add_constant<int, 5>));
CUDASIM_KERNEL((add_constant<float, 2>));
CUDASIM_KERNEL(nothing);
CUDASIM_KERNEL_NAMED("_Z9store_onePi", store_one);
