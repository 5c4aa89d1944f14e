#include "preload/hook_table.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "agent/agent.h"
#include "preload/driver_functions.h"
#include "preload/elf_object.h"
#include "preload/real_lookup.h"
#include "preload/typed_hooks.h"

// trampoline.inc: where each trampoline jumps to, and where each is. Written with atomic stores only; a trampoline
// reads one word.
extern "C" [[gnu::visibility("hidden")]] void* memopt_targets[];
extern "C" [[gnu::visibility("hidden")]] void* const memopt_trampolines[];

namespace memopt::preload {
namespace {

constexpr const char* kSymbols[kHookCount] = {
#define MEMOPT_HOOK(index, symbol, type) #symbol,
#include "memopt_entry_points/hooks.inc"
};
static_assert(kHookCount <= agent::kMaxEntryPoints);

constexpr const char* kDriverLibrary = "libcuda.so.1";

constinit std::atomic<void*> g_real[kHookCount] = {};
constinit std::atomic<void*> g_driver_address{nullptr};  // anything inside the driver library
constinit std::atomic<void*> g_second_driver{nullptr};   // something inside another one

std::size_t index_of(Hook hook) noexcept { return static_cast<std::size_t>(hook); }

// What is called where the driver has no such function. Without memopt the program would have ended at the call, with
// "symbol lookup error".
CUresult missing_function() noexcept { return CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND; }

// The first one is the program's driver. It must stay: trampolines hold addresses inside it.
void note_driver(void* address, const ElfObject& driver) noexcept {
  void* expected = nullptr;
  if (!g_driver_address.compare_exchange_strong(expected, address)) return;
  if (*driver.path() != '\0') dlopen(driver.path(), RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  agent::log(agent::LogLevel::kInfo, "the driver is {}", driver.path());
}

bool is_in_driver(const void* address) noexcept {
  const void* const driver = g_driver_address.load();
  return driver != nullptr && object_of(driver).contains(address);
}

// Also of an object in another namespace, which is none of those that we can walk along.
const char* path_of(const void* address) noexcept {
  Dl_info info{};
  return dladdr(address, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

void note_second_driver(Hook hook, void* address) noexcept {
  if (g_second_driver.exchange(address) != nullptr) return;
  agent::log(agent::LogLevel::kInfo, "{} is in a second driver library, {}: its calls are not seen", symbol_of(hook),
             path_of(address));
}

bool is_named_as_driver(const ElfObject& object) noexcept {
  const char* const slash = std::strrchr(object.path(), '/');
  return std::strncmp(slash != nullptr ? slash + 1 : object.path(), "libcuda.so", std::strlen("libcuda.so")) == 0;
}

void point(Hook hook, void* real) noexcept {
  void* const typed = agent::disabled() ? nullptr : typed_function(hook);
  __atomic_store_n(&memopt_targets[index_of(hook)], typed != nullptr ? typed : real, __ATOMIC_RELEASE);
}

// As the linker would find it from here, or in a driver that was loaded privately: a library that is linked to libcuda
// and was opened with RTLD_LOCAL calls us too, since our symbols come first.
[[gnu::cold]] void* look_up(Hook hook) noexcept {
  const char* const symbol = symbol_of(hook);
  void* found = real_dlsym(RTLD_NEXT, symbol);
  if (found == nullptr) {
    // Deliberately never closed.
    static constinit std::atomic<void*> driver{nullptr};
    void* handle = driver.load();
    if (handle == nullptr) {
      const ElfObject known = object_of(g_driver_address.load());
      handle = dlopen(*known.path() == '\0' ? kDriverLibrary : known.path(), RTLD_LAZY | RTLD_NOLOAD);
      driver.store(handle);
    }
    if (handle != nullptr) found = real_dlsym(handle, symbol);
  }
  return found;
}

}  // namespace

const char* symbol_of(Hook hook) noexcept { return kSymbols[index_of(hook)]; }

bool find_hook(const char* symbol, Hook* hook) noexcept {
  const auto before = [](const char* a, const char* b) { return std::strcmp(a, b) < 0; };
  const auto* const found = std::lower_bound(std::begin(kSymbols), std::end(kSymbols), symbol, before);
  if (found == std::end(kSymbols) || std::strcmp(*found, symbol) != 0) return false;
  *hook = static_cast<Hook>(found - std::begin(kSymbols));
  return true;
}

void* trampoline_of(Hook hook) noexcept { return memopt_trampolines[index_of(hook)]; }

// They lie one behind the other, in order.
bool is_trampoline(const void* address) noexcept {
  return address >= memopt_trampolines[0] && address <= memopt_trampolines[kHookCount - 1];
}

bool adopt(Hook hook, void* real) noexcept {
  void* present = g_real[index_of(hook)].load(std::memory_order_acquire);
  if (present != nullptr) {
    if (present == real || object_of(present).contains(real)) return true;
    note_second_driver(hook, real);
    return false;
  }
  // Objects of another namespace are not among ours.
  const ElfObject object = object_of(real);
  if (!object.empty()) note_driver(real, object);
  if (!is_in_driver(real)) {
    note_second_driver(hook, real);
    return false;
  }
  if (g_real[index_of(hook)].compare_exchange_strong(present, real)) point(hook, real);
  return true;
}

void* real_function(Hook hook) noexcept {
  void* found = g_real[index_of(hook)].load(std::memory_order_acquire);
  if (found != nullptr) [[likely]]
    return found;
  found = look_up(hook);
  if (found == nullptr) return reinterpret_cast<void*>(&missing_function);
  // It may be an interposer's, which hands on to the driver: that is no driver, but called all the same, as without us.
  if (const ElfObject object = object_of(found); is_named_as_driver(object)) note_driver(found, object);
  void* present = nullptr;
  if (g_real[index_of(hook)].compare_exchange_strong(present, found)) point(hook, found);
  return g_real[index_of(hook)].load(std::memory_order_acquire);
}

std::string driver_path() {
  void* const address = g_driver_address.load();
  return address == nullptr ? std::string() : std::string(object_of(address).path());
}

void find_problems(std::vector<shm::Problem>& problems) {
  if (void* const second = g_second_driver.load()) {
    problems.push_back(
        {"second-driver", std::string(path_of(second)) + " is a second driver library; its calls are not seen"});
  }
  const ElfObject driver = object_of(g_driver_address.load());
  const ElfObject libc = object_of(reinterpret_cast<const void*>(&std::strtol));
  if (driver.empty()) return;
  std::vector<std::string> bypassing;
  any_loaded_object([&](const ElfObject& object) {
    if (object.empty() || object.contains(memopt_trampolines[0]) || object.contains(driver.find_function("cuInit")) ||
        object.contains(reinterpret_cast<const void*>(&std::strtol))) {
      return false;
    }
    bool bypasses = false;
    object.for_each_reference([&](const char* name, void* const* slot) {
      Hook hook;
      const bool is_lookup = std::strcmp(name, "dlsym") == 0 || std::strcmp(name, "dlvsym") == 0;
      if (bypasses || (!is_lookup && !find_hook(name, &hook))) return;
      // A slot that is not bound yet points into its own object.
      void* const bound = __atomic_load_n(slot, __ATOMIC_RELAXED);
      bypasses = is_lookup ? libc.contains(bound) : driver.contains(bound);
    });
    if (bypasses) {
      try {
        bypassing.emplace_back(*object.path() != '\0' ? object.path() : "the program");
      } catch (...) {
        return true;  // the loader's lock is held: no exception may leave
      }
    }
    return false;
  });
  // It has its own way to libc's dlsym; else the program's look-ups would have come by.
  const char* other = nullptr;
  if (!a_name_was_looked_up()) {
    any_loaded_object([&](const ElfObject& object) {
      if (object.contains(memopt_trampolines[0])) return true;
      if (object.find_function("dlsym") != nullptr) other = object.path();
      return other != nullptr;
    });
  }
  if (other != nullptr) {
    problems.push_back({"other-dlsym", std::string(other) +
                                           " has a dlsym of its own, past which memopt sees nothing: preload it behind "
                                           "libmemopt.so"});
  }
  for (const std::string& path : bypassing) {
    problems.push_back(
        {"bypass", path + " reaches the driver past memopt (opened with RTLD_DEEPBIND?); its calls are not seen"});
  }
}

namespace {

constexpr agent::Interposer kInterposer{kSymbols, kHookCount, driver_path, find_problems, real_driver};

}  // namespace

// From entry.S. Both return where the call goes on.
extern "C" [[gnu::visibility("hidden")]] void* memopt_enter(std::uint32_t index) noexcept {
  if (!agent::disabled()) agent::first_call(kInterposer, index);
  return __atomic_load_n(&memopt_targets[index], __ATOMIC_ACQUIRE);
}

extern "C" [[gnu::visibility("hidden")]] void* memopt_resolve(std::uint32_t index) noexcept {
  const Hook hook = static_cast<Hook>(index);
  void* const real = real_function(hook);
  // Without a real function nothing is stored, so that a driver that is loaded later is found.
  if (real == reinterpret_cast<void*>(&missing_function)) return real;
  point(hook, real);
  return __atomic_load_n(&memopt_targets[index], __ATOMIC_ACQUIRE);
}

extern "C" [[gnu::visibility("default")]] const char* memopt_version() noexcept { return MEMOPT_VERSION; }

}  // namespace memopt::preload
