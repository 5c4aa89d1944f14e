// The smallest CUDA program: its very first call allocates.
#include <cstdio>

#include "cuda_check.h"

int main() {
  int value = 42;
  int* device = nullptr;
  CHECK_CUDA(cudaMalloc(&device, sizeof value));
  CHECK_CUDA(cudaMemcpy(device, &value, sizeof value, cudaMemcpyHostToDevice));
  value = 0;
  CHECK_CUDA(cudaMemcpy(&value, device, sizeof value, cudaMemcpyDeviceToHost));
  CHECK_CUDA(cudaFree(device));
  std::printf("%d\n", value);
  return value == 42 ? 0 : 1;
}
