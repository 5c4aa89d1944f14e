#include "planted_kernels.cuh"
