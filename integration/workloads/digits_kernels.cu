// The kernels as a module of their own, for programs that load it through the driver API.
#include "digits_cnn_kernels.cuh"
