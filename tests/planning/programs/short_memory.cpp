// Preloaded before libmemopt.so: memopt's shared memory cannot be had. SHORT_MEMORY=memfd:ERRNO or fallocate:ERRNO says
// what fails and how; other callers' memory is left alone.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

bool is_wanted(const char* what, int* code) {
  const char* const text = std::getenv("SHORT_MEMORY");
  const std::size_t length = std::strlen(what);
  if (text == nullptr || std::strncmp(text, what, length) != 0 || text[length] != ':') return false;
  *code = std::atoi(text + length + 1);
  return true;
}

bool is_memopts(int descriptor) {
  // The thread that asks has a table of descriptors of its own.
  char path[64];
  char target[PATH_MAX];
  std::snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", descriptor);
  const ssize_t length = readlink(path, target, sizeof(target) - 1);
  if (length < 0) return false;
  target[length] = '\0';
  return std::strstr(target, "memfd:memopt") != nullptr;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int memfd_create(const char* name, unsigned int flags) noexcept {
  static const auto real = reinterpret_cast<int (*)(const char*, unsigned int)>(dlsym(RTLD_NEXT, "memfd_create"));
  int code = 0;
  if (std::strstr(name, "memopt") != nullptr && is_wanted("memfd", &code)) {
    errno = code;
    return -1;
  }
  return real(name, flags);
}

__attribute__((visibility("default"))) int fallocate(int descriptor, int mode, off_t offset, off_t bytes) {
  static const auto real = reinterpret_cast<int (*)(int, int, off_t, off_t)>(dlsym(RTLD_NEXT, "fallocate"));
  int code = 0;
  if (is_wanted("fallocate", &code) && is_memopts(descriptor)) {
    errno = code;
    return -1;
  }
  return real(descriptor, mode, offset, bytes);
}

}  // extern "C"
