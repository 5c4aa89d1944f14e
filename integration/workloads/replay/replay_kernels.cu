// The kernels as a module for the driver API.
#include "replay_kernels.cuh"
