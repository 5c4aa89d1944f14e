// open_plugin LIBRARY [deepbind]: makes one visible call, calls the plugin, then waits for a line.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>

int main(int argc, char** argv) {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr || argc < 2) return 2;
  reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"))(0);
  const bool deep = argc > 2 && std::strcmp(argv[2], "deepbind") == 0;
  void* const plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL | (deep ? RTLD_DEEPBIND : 0));
  if (plugin == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 3;
  }
  reinterpret_cast<int (*)()>(dlsym(plugin, "plugin_call"))();
  std::printf("ready\n");
  std::fflush(stdout);
  std::getchar();
  return 0;
}
