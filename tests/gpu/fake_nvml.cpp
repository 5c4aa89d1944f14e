// Stands in for NVML: the device's used memory is 100 MiB and as many bytes as the file FAKE_NVML_FILE has.
#include <sys/stat.h>

#include <cstdlib>

namespace {
struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED int nvmlInit_v2() { return std::getenv("FAKE_NVML_BROKEN") != nullptr ? 9 : 0; }

EXPORTED int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  static int only;
  *device = &only;
  return index == 0 ? 0 : 2;
}

EXPORTED int nvmlDeviceGetMemoryInfo(void*, Memory* memory) {
  constexpr unsigned long long kMiB = 1ull << 20;
  const char* const path = std::getenv("FAKE_NVML_FILE");
  struct stat about {};
  const bool known = path != nullptr && stat(path, &about) == 0;
  memory->total = 143771 * kMiB;
  memory->used = 100 * kMiB + (known ? static_cast<unsigned long long>(about.st_size) : 0);
  memory->free = memory->total - memory->used;
  return 0;
}
