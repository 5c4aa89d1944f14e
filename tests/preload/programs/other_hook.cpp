// Another preloaded library that interposes dlsym, as tools for graphics and profiling do. It counts what passes
// through it. How it finds the next one, OTHER_HOOK says: by version (the default), by a handle of libc, or, "past", in
// a way that shows it nothing but libc's: then the value is "past:" and the path of libc_dlsym.
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

using Dlsym = void* (*)(void*, const char*);

std::atomic<int> g_seen{0};

Dlsym find_next() {
  const char* const way = std::getenv("OTHER_HOOK");
  if (way != nullptr && std::strcmp(way, "handle") == 0) {
    return reinterpret_cast<Dlsym>(dlvsym(dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD), "dlsym", "GLIBC_2.2.5"));
  }
  if (way != nullptr && std::strncmp(way, "past:", 5) == 0) {
    void* const helper = dlopen(way + 5, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    const auto next = reinterpret_cast<Dlsym>(dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5"));
    const auto tell = reinterpret_cast<void* (*)()>(next(helper, "libc_dlsym"));
    return tell != nullptr ? reinterpret_cast<Dlsym>(tell()) : nullptr;
  }
  return reinterpret_cast<Dlsym>(dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5"));
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void* dlsym(void* handle, const char* name) {
  static const Dlsym real = find_next();
  if (real == nullptr) std::abort();
  if (std::strcmp(name, "cuInit") == 0) ++g_seen;
  return real(handle, name);
}

extern "C" __attribute__((visibility("default"))) int other_hook_seen() { return g_seen; }

__attribute__((destructor)) static void say() {
  if (g_seen > 0) std::fprintf(stderr, "other hook: cuInit was looked up\n");
}
