// Kernels of the planted programs: one thread, one word.
#pragma once

__global__ void fill(unsigned* words, unsigned value, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) words[i] = value;
}

__global__ void add(unsigned* to, const unsigned* from, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) to[i] += from[i];
}
