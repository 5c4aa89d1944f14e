// Another preloaded library that interposes dlsym, as tools for graphics and profiling do. It counts what passes
// through it.
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {
std::atomic<int> g_seen{0};
}

extern "C" __attribute__((visibility("default"))) void* dlsym(void* handle, const char* name) {
  using Dlsym = void* (*)(void*, const char*);
  static const auto real = reinterpret_cast<Dlsym>(dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5"));
  if (real == nullptr) std::abort();
  if (std::strcmp(name, "cuInit") == 0) ++g_seen;
  return real(handle, name);
}

extern "C" __attribute__((visibility("default"))) int other_hook_seen() { return g_seen; }

__attribute__((destructor)) static void say() {
  if (g_seen > 0) std::fprintf(stderr, "other hook: cuInit was looked up\n");
}
