// Another preloaded library that interposes an entry point of the driver, and finds the real one both ways.
#include <dlfcn.h>

#include <cstdio>

extern "C" __attribute__((visibility("default"))) int cuInit(unsigned flags) {
  using Init = int (*)(unsigned);
  Init real = reinterpret_cast<Init>(dlsym(RTLD_NEXT, "cuInit"));
  if (real == nullptr) {
    void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (driver != nullptr) real = reinterpret_cast<Init>(dlsym(driver, "cuInit"));
  }
  if (real == nullptr || real == &cuInit) return 999;
  std::fprintf(stderr, "other interposer: cuInit\n");
  return real(flags);
}
