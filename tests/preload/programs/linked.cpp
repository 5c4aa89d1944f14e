// Linked directly to libcuda.so.1; its first call is made before main. Then it waits for a line, so that its status can
// be asked for.
#include <cuda.h>

#include <cstdio>

static const CUresult g_before_main = cuInit(0);

int main() {
  CUdeviceptr address = 0;
  const CUresult allocated = cuMemAlloc(&address, 12345);
  CUcontext context = nullptr;
  const CUresult retained = cuDevicePrimaryCtxRetain(&context, 0);
  std::printf("%d %d %d\n", g_before_main, allocated, retained);
  std::fflush(stdout);
  std::getchar();
  std::printf("%d\n", cuMemFree(address));
  return 0;
}
