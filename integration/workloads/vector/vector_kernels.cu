// The kernels as a module for the driver API.
#include "vector_kernels.cuh"
