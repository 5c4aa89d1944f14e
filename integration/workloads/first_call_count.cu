// Asks for the number of devices first, and is content with none. Ends by _exit with an allocation still there.
#include <unistd.h>

#include <cstdio>

#include "cuda_check.h"

int main() {
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  std::printf("%s %d\n", cudaGetErrorName(error), error == cudaSuccess ? devices : 0);
  std::fflush(stdout);
  if (error != cudaSuccess || devices == 0) _exit(3);
  void* kept = nullptr;
  CHECK_CUDA(cudaMalloc(&kept, 1 << 20));
  _exit(5);
}
