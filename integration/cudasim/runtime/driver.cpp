#include "driver.h"

#include <dlfcn.h>
#include <pthread.h>

#include <cstddef>

#include "error.h"
#include "version.h"

namespace cudart {
namespace {

struct EntryPoint {
  const char* name;
  int version;
  int per_thread_version;  // 0: has no per-thread twin
  std::size_t offset;
};

constexpr EntryPoint kEntryPoints[] = {
#define CUDASIM_PLAIN(name, version) {#name, version, 0, offsetof(DriverTable, name)},
#define CUDASIM_STREAM(name, version, per_thread_version, suffix) \
  {#name, version, per_thread_version, offsetof(DriverTable, name)},
    CUDASIM_DRIVER_ENTRY_POINTS(CUDASIM_PLAIN, CUDASIM_STREAM)
#undef CUDASIM_PLAIN
#undef CUDASIM_STREAM
};

// A per-thread twin is called through the plain type: the two must be one signature.
template <typename A, typename B>
constexpr bool kSame = false;
template <typename A>
constexpr bool kSame<A, A> = true;
#define CUDASIM_PLAIN(name, version)
#define CUDASIM_STREAM(name, version, per_thread_version, suffix) \
  static_assert(kSame<PFN_##name##_v##version, PFN_##name##_v##per_thread_version##_##suffix>, #name);
CUDASIM_DRIVER_ENTRY_POINTS(CUDASIM_PLAIN, CUDASIM_STREAM)
#undef CUDASIM_PLAIN
#undef CUDASIM_STREAM

using LookUp = PFN_cuGetProcAddress_v12000;
using OldLookUp = PFN_cuGetProcAddress_v11030;

DriverTable g_tables[2];
LookUp g_look_up;
OldLookUp g_old_look_up;
int g_driver_version;
cudaError_t g_open_result = cudaErrorUnknown;
cudaError_t g_init_result = cudaErrorUnknown;
pthread_once_t g_open_once = PTHREAD_ONCE_INIT;
pthread_once_t g_init_once = PTHREAD_ONCE_INIT;

// Drivers before 12.0 have only the five-argument-less form; both are presented as the newer one.
CUresult look_up_old(const char* name, void** function, int version, cuuint64_t flags,
                     CUdriverProcAddressQueryResult* status) {
  const CUresult result = g_old_look_up(name, function, version, flags);
  if (status) {
    *status = result == CUDA_SUCCESS ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return result;
}

void* look_up(const EntryPoint& entry, DefaultStream mode) {
  const bool twin = mode == DefaultStream::kPerThread && entry.per_thread_version;
  void* function = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  const CUresult result =
      g_look_up(entry.name, &function, twin ? entry.per_thread_version : entry.version,
                twin ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM : CU_GET_PROC_ADDRESS_LEGACY_STREAM, &status);
  return result == CUDA_SUCCESS && status == CU_GET_PROC_ADDRESS_SUCCESS ? function : nullptr;
}

void fill(DriverTable& table, DefaultStream mode) {
  for (const EntryPoint& entry : kEntryPoints) {
    void* function = look_up(entry, mode);
    __builtin_memcpy(reinterpret_cast<char*>(&table) + entry.offset, &function, sizeof function);
  }
}

void open_driver() {
  g_open_result = cudaErrorInsufficientDriver;
  // Never closed: calls arrive from static destructors, after any moment at which closing would seem right.
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) return;
  g_look_up = reinterpret_cast<LookUp>(dlsym(library, "cuGetProcAddress_v2"));
  if (!g_look_up) {
    g_old_look_up = reinterpret_cast<OldLookUp>(dlsym(library, "cuGetProcAddress"));
    if (!g_old_look_up) return;
    g_look_up = look_up_old;
  }
  fill(g_tables[0], DefaultStream::kLegacy);
  fill(g_tables[1], DefaultStream::kPerThread);
  if (!g_tables[0].cuInit || !g_tables[0].cuDriverGetVersion) {
    // The toolkit's stub answers nothing but its own error.
    void* function = nullptr;
    if (g_look_up("cuInit", &function, 2000, CU_GET_PROC_ADDRESS_LEGACY_STREAM, nullptr) == CUDA_ERROR_STUB_LIBRARY) {
      g_open_result = cudaErrorStubLibrary;
    }
    return;
  }
  if (g_tables[0].cuDriverGetVersion(&g_driver_version) != CUDA_SUCCESS) {
    g_driver_version = 0;
    return;
  }
  g_open_result = g_driver_version / 1000 >= kRuntimeVersion / 1000 ? cudaSuccess : cudaErrorInsufficientDriver;
}

void initialise_driver() {
  pthread_once(&g_open_once, open_driver);
  g_init_result = g_open_result == cudaSuccess ? to_runtime_error(driver().cuInit(0)) : g_open_result;
}

}  // namespace

cudaError_t load_driver() {
  pthread_once(&g_init_once, initialise_driver);
  return g_init_result;
}

const DriverTable& driver(DefaultStream mode) { return g_tables[mode == DefaultStream::kPerThread]; }

PFN_cuGetProcAddress_v12000 driver_look_up() { return g_look_up; }

int driver_version() {
  pthread_once(&g_open_once, open_driver);
  return g_driver_version;
}

}  // namespace cudart
