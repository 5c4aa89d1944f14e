#include "entry_points.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <iterator>

extern "C" {
extern void* (*launch_effects_next_dlsym)(void* handle, const char* name);
__attribute__((visibility("hidden"))) void launch_effects_find_dlsym();
__attribute__((visibility("hidden"))) void* launch_effects_lookup(void* handle, const char* name);
}

namespace launch_effects {
namespace {

struct Wrapped {
  const char* symbol;
  void* wrapper;
};

const Wrapped kWrapped[] = {
#define LAUNCH_EFFECTS_WRAPPED(symbol) {#symbol, reinterpret_cast<void*>(&symbol)},
#include "wrapped_functions.inc"
};
constexpr std::size_t kCount = static_cast<std::size_t>(Entry::kCount);
static_assert(std::size(kWrapped) == kCount);

constinit std::atomic<void*> g_next[kCount] = {};

// Which symbol cuGetProcAddress means by a base name.
struct Version {
  const char* base;
  int version;
  bool per_thread;
  const char* symbol;
};
constexpr Version kVersions[] = {
#define MEMOPT_ENTRY(base, version, per_thread, symbol) {base, version, per_thread, #symbol},
#include "memopt_entry_points/table.inc"
};

void* next_dlsym(void* handle, const char* name) { return launch_effects_next_dlsym(handle, name); }

std::size_t find(const char* symbol) {
  std::size_t at = 0;
  while (at < kCount && std::strcmp(kWrapped[at].symbol, symbol) != 0) ++at;
  return at;
}

// The newest version that is not newer than asked for; per thread if asked for and existing.
const char* symbol_of(const char* base, int version, bool per_thread) {
  const Version* best = nullptr;
  for (const bool kind : {per_thread, false}) {
    for (const Version& row : kVersions) {
      if (row.per_thread == kind && row.version <= version && std::strcmp(row.base, base) == 0 &&
          (best == nullptr || row.version > best->version))
        best = &row;
    }
    if (best != nullptr || !kind) break;
  }
  return best != nullptr ? best->symbol : nullptr;
}

void replace(const char* base, void** function, int version, cuuint64_t flags) {
  if (base == nullptr || function == nullptr || *function == nullptr) return;
  const char* const symbol = symbol_of(base, version, (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0);
  if (symbol == nullptr) return;
  const std::size_t at = find(symbol);
  if (at == kCount || *function == kWrapped[at].wrapper) return;
  void* nothing = nullptr;
  g_next[at].compare_exchange_strong(nothing, *function);
  *function = kWrapped[at].wrapper;
}

// Loaded by the program or its runtime, perhaps out of sight of RTLD_NEXT. Never closed.
void* driver_library() {
  static std::atomic<void*> library{nullptr};
  void* found = library.load();
  if (found == nullptr) library = found = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  return found;
}

// Behind a shim the program's calls would never come here.
__attribute__((constructor)) void check_place() {
  void* const first = next_dlsym(RTLD_DEFAULT, "cuLaunchKernel");
  if (first == nullptr || first == kWrapped[static_cast<std::size_t>(Entry::cuLaunchKernel)].wrapper) return;
  std::fputs("launch effects: another library stands in front: this one must come first in LD_PRELOAD\n", stderr);
}

}  // namespace

void* next_function(Entry entry) {
  const auto at = static_cast<std::size_t>(entry);
  if (void* const known = g_next[at].load(std::memory_order_acquire)) return known;
  void* const found = driver_function(kWrapped[at].symbol);
  if (found != nullptr) g_next[at].store(found, std::memory_order_release);
  return found;
}

// The next in the order of search first: by handle, a shim behind this library would answer with the driver's own
// function, as this library exports the name too and might call it back for ever.
void* driver_function(const char* symbol) {
  if (void* const found = next_dlsym(RTLD_NEXT, symbol)) return found;
  void* const library = driver_library();
  return library != nullptr ? next_dlsym(library, symbol) : nullptr;
}

}  // namespace launch_effects

using namespace launch_effects;

// From dlsym.S. Null: the next dlsym is to answer, called as by the program.
void* launch_effects_lookup(void* handle, const char* name) {
  if (handle == RTLD_DEFAULT || handle == RTLD_NEXT) return nullptr;
  const std::size_t at = find(name);
  if (at == kCount) return nullptr;
  // What the handle does not have stays absent.
  return next_dlsym(handle, name) != nullptr ? kWrapped[at].wrapper : nullptr;
}

// Concurrent first calls find and store the same.
void launch_effects_find_dlsym() {
  void* const found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  __atomic_store_n(&launch_effects_next_dlsym, reinterpret_cast<decltype(launch_effects_next_dlsym)>(found),
                   __ATOMIC_RELEASE);
}

LAUNCH_EFFECTS_EXPORT cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
  const CUresult result = LAUNCH_EFFECTS_NEXT(cuGetProcAddress, symbol, function, version, flags);
  if (result == CUDA_SUCCESS) replace(symbol, function, version, flags);
  return result;
}

LAUNCH_EFFECTS_EXPORT cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                                          CUdriverProcAddressQueryResult* status) {
  const CUresult result = LAUNCH_EFFECTS_NEXT(cuGetProcAddress_v2, symbol, function, version, flags, status);
  if (result == CUDA_SUCCESS) replace(symbol, function, version, flags);
  return result;
}
