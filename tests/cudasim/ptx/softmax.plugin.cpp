// The one kernel of digits_cnn that calls functions of the C library.
#include <cudasim/kernel_plugin.h>

#include "digits_cnn_kernels.cuh"

CUDASIM_KERNEL(softmax_loss);
