// A second way to attach, without LD_PRELOAD: the driver loads the library that CUDA_INJECTION64_PATH names while it is
// initialised, and calls InitializeInjection. The loader has bound the program's references by then: those to the
// driver, and to the functions that look names up, are bound anew. What was looked up before, and kept, is not seen.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "agent/process/log.h"
#include "agent/process/options.h"
#include "preload/elf_object.h"
#include "preload/hook_table.h"
#include "preload/real_lookup.h"

namespace memopt::preload {
namespace {

// References are read-only once an object is loaded. The process's own memory, as a file, takes a write all the same
// and leaves the page as it is.
class OwnMemory {
 public:
  OwnMemory() noexcept : file_(open("/proc/self/mem", O_RDWR | O_CLOEXEC)) {}
  ~OwnMemory() {
    if (file_ >= 0) close(file_);
  }
  OwnMemory(const OwnMemory&) = delete;
  OwnMemory& operator=(const OwnMemory&) = delete;

  bool write(void* const* slot, void* value) noexcept {
    return file_ >= 0 &&
           pwrite(file_, &value, sizeof(value), reinterpret_cast<off_t>(slot)) == static_cast<ssize_t>(sizeof(value));
  }

 private:
  const int file_;
};

// Ours in place of what the name is bound to; null: it is bound to what is to stay.
void* instead_of(const char* name, const void* bound, const ElfObject& object, const ElfObject& libc) noexcept {
  // Not bound yet: it points into its own object.
  const bool lazily = object.contains(bound);
  if (std::strcmp(name, "dlsym") == 0) {
    return lazily || libc.contains(bound) ? reinterpret_cast<void*>(&memopt_dlsym) : nullptr;
  }
  if (std::strcmp(name, "dlvsym") == 0) {
    return lazily || libc.contains(bound) ? reinterpret_cast<void*>(&memopt_dlvsym) : nullptr;
  }
  Hook hook;
  if (!find_hook(name, &hook)) return nullptr;
  // Another interposer's, before the driver, is the program's first.
  return lazily || object_of(bound).find_function("cuInit") != nullptr ? trampoline_of(hook) : nullptr;
}

}  // namespace

// Called by the driver, in the program's first cuInit. The number is what NVIDIA's examples return: it was successful.
extern "C" [[gnu::visibility("default")]] int InitializeInjection() noexcept {
  const ElfObject libc = object_of(reinterpret_cast<const void*>(&std::strtol));
  // Preloaded as well: all is bound to us already.
  if (agent::disabled() || libc.empty() || !is_before_us(reinterpret_cast<const void*>(&std::strtol))) return 1;
  OwnMemory memory;
  bool failed = false;
  any_loaded_object([&](const ElfObject& object) {
    if (object.empty() || object.contains(trampoline_of(Hook{})) || object.find_function("cuInit") != nullptr ||
        object.contains(reinterpret_cast<const void*>(&std::strtol))) {
      return false;
    }
    object.for_each_reference([&](const char* name, void* const* slot) {
      void* const ours = instead_of(name, __atomic_load_n(slot, __ATOMIC_RELAXED), object, libc);
      if (ours != nullptr && !memory.write(slot, ours)) failed = true;
    });
    return false;
  });
  if (failed) {
    agent::log(agent::LogLevel::kWarn,
               "attached by CUDA_INJECTION64_PATH, but the program's references could not be bound to memopt: use "
               "LD_PRELOAD");
  }
  return 1;
}

}  // namespace memopt::preload
