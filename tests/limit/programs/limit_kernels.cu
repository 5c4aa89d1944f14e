// The kernels as a module for the driver API.
#include "limit_kernels.cuh"
