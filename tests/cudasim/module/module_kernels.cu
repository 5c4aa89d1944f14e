#include "module_kernels.cuh"

__device__ int answer = 42;
__constant__ short shorts[3] = {1, -2, 3};
__device__ double zeros[8];

// In the image, but in no plug-in.
__global__ void unknown_to_plugins(int* p) { *p = answer + shorts[1] + static_cast<int>(zeros[3]); }

// In the plug-in with other parameters.
__global__ void changed(int* p, int n) { *p = n; }

template __global__ void scaled<float>(float*, float);
