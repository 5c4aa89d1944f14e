// A driver in a namespace of its own, used before, beside and after the program's own one. Prints what each has seen,
// then waits for a line. With "own-first" the program's own one is used first.
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <initializer_list>

namespace {

void call(void* driver, const char* symbol, int times) {
  for (int i = 0; i < times; ++i) reinterpret_cast<int (*)(void*)>(dlsym(driver, symbol))(nullptr);
}

void print_calls(const char* which, void* driver) {
  const auto calls = reinterpret_cast<std::uint64_t (*)(const char*)>(dlsym(driver, "fake_calls"));
  std::printf("%s:", which);
  for (const char* const symbol : {"cuInit", "cuStreamSynchronize", "cuCtxSynchronize", "cuCtxGetDevice"}) {
    std::printf(" %d", static_cast<int>(calls(symbol)));
  }
  std::printf("; ");
}

}  // namespace

int main(int argc, char** argv) {
  void* own = nullptr;
  if (argc > 1 && std::strcmp(argv[1], "own-first") == 0) {
    own = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    call(own, "cuInit", 1);
  }
  void* const other = dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (other == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 3;
  }
  call(other, "cuInit", 1);
  call(other, "cuCtxGetDevice", 1);
  if (own == nullptr) {
    own = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    call(own, "cuInit", 1);
  }
  call(own, "cuInit", 1);
  call(own, "cuStreamSynchronize", 1);
  call(other, "cuStreamSynchronize", 3);
  call(other, "cuCtxSynchronize", 1);
  call(own, "cuCtxSynchronize", 2);
  call(own, "cuCtxGetDevice", 4);
  print_calls("own", own);
  print_calls("other", other);
  std::printf("\n");
  std::fflush(stdout);
  std::getchar();
  return 0;
}
