// The kernels of the vector programs: one thread, one element. Written once: nvcc compiles them for devices, g++ for
// the simulator.
#pragma once

#include "vector_math.h"

extern "C" __global__ void vector_fill(unsigned* out, unsigned seed, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) out[i] = vector::filled(seed, static_cast<unsigned>(i));
}

extern "C" __global__ void vector_combine(unsigned* out, const unsigned* a, const unsigned* b, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) out[i] = vector::combined(a[i], b[i]);
}
