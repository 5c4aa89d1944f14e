// The kernels as a module for the driver API.
#include "facts_kernels.cuh"
