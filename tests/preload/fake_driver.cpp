#include "fake_driver.h"

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <string_view>
#include <tuple>

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cudaTypedefs.h>

#define FAKE_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

enum Index : std::size_t {
#define MEMOPT_HOOK(index, symbol, type) k_##symbol = index,
#include "memopt_entry_points/hooks.inc"
};
constexpr const char* kSymbols[] = {
#define MEMOPT_HOOK(index, symbol, type) #symbol,
#include "memopt_entry_points/hooks.inc"
};
constexpr std::size_t kCount = std::size(kSymbols);

std::atomic<std::uint64_t> g_calls[kCount];
std::atomic<int> g_failures[kCount];
std::atomic<bool> g_hide{false};

thread_local std::uint64_t g_last_arguments = 0;

// FNV-1a over the arguments' bytes; the code has room for a part of it only (an enumeration's values end at 1023). No
// template: it would be compiled for each entry point.
std::uint64_t mix(std::uint64_t hash, const void* argument, std::size_t size) {
  const auto* const bytes = static_cast<const unsigned char*>(argument);
  for (std::size_t i = 0; i < size; ++i) hash = (hash ^ bytes[i]) * 1099511628211ull;
  return hash;
}
CUresult answer(std::uint64_t hash) {
  g_last_arguments = hash;
  return static_cast<CUresult>(hash % 1000);
}
template <typename... Arguments>
CUresult code_of(std::size_t index, const Arguments&... arguments) {
  std::uint64_t hash = 14695981039346656037ull ^ index;
  ((hash = mix(hash, &arguments, sizeof arguments)), ...);
  return answer(hash);
}

// True if the call is to fail; counts it either way.
bool begin(std::size_t index, CUresult* failure) {
  g_calls[index].fetch_add(1, std::memory_order_relaxed);
  const int code = g_failures[index].load(std::memory_order_relaxed);
  if (code == 0) return false;
  *failure = static_cast<CUresult>(g_failures[index].exchange(0));
  return *failure != CUDA_SUCCESS;
}

template <std::size_t index, typename Pointer>
struct Fake;
template <std::size_t index, typename... Parameters>
struct Fake<index, CUresult (*)(Parameters...)> {
  static CUresult call(Parameters... arguments) {
    CUresult failure;
    return begin(index, &failure) ? failure : code_of(index, arguments...);
  }
};

// ---- memory
// -------------------------------------------------------------------------------------------------------------------------
struct FakeBlock {
  std::size_t size;
  CUcontext context;
};
std::mutex g_mutex;
std::map<CUdeviceptr, FakeBlock> g_blocks;
CUdeviceptr g_next = 0x10000000;
thread_local CUcontext g_current = reinterpret_cast<CUcontext>(0x1000);
std::map<CUmemGenericAllocationHandle, std::size_t> g_handles;
CUmemGenericAllocationHandle g_next_handle = 1;

CUresult allocate(std::size_t index, CUdeviceptr* out, std::size_t bytes, CUcontext context) {
  CUresult failure;
  if (begin(index, &failure)) return failure;
  if (out == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(g_mutex);
  *out = g_next;
  g_blocks[g_next] = {bytes, context};
  g_next += (bytes + 511) / 512 * 512;
  return CUDA_SUCCESS;
}

CUresult release(std::size_t index, CUdeviceptr address) {
  CUresult failure;
  if (begin(index, &failure)) return failure;
  const std::lock_guard lock(g_mutex);
  if (address == 0) return CUDA_SUCCESS;
  return g_blocks.erase(address) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

void drop_context(CUcontext context) {
  const std::lock_guard lock(g_mutex);
  std::erase_if(g_blocks, [&](const auto& entry) { return entry.second.context == context; });
}

CUresult alloc_v2(CUdeviceptr* out, size_t bytes) { return allocate(k_cuMemAlloc_v2, out, bytes, g_current); }
CUresult alloc_v1(CUdeviceptr_v1* out, unsigned int bytes) {
  CUdeviceptr address = 0;
  const CUresult result = allocate(k_cuMemAlloc, out == nullptr ? nullptr : &address, bytes, g_current);
  if (result == CUDA_SUCCESS) *out = static_cast<CUdeviceptr_v1>(address);
  return result;
}
CUresult alloc_pitch(CUdeviceptr* out, size_t* pitch, size_t width, size_t height, unsigned int) {
  if (pitch == nullptr) {
    g_calls[k_cuMemAllocPitch_v2].fetch_add(1, std::memory_order_relaxed);
    return CUDA_ERROR_INVALID_VALUE;
  }
  const std::size_t padded = (width + 511) / 512 * 512;
  const CUresult result = allocate(k_cuMemAllocPitch_v2, out, padded * height, g_current);
  if (result == CUDA_SUCCESS) *pitch = padded;
  return result;
}
CUresult free_v2(CUdeviceptr address) { return release(k_cuMemFree_v2, address); }
CUresult free_v1(CUdeviceptr_v1 address) { return release(k_cuMemFree, address); }
CUresult alloc_async(CUdeviceptr* out, size_t bytes, CUstream) {
  return allocate(k_cuMemAllocAsync, out, bytes, nullptr);
}
CUresult alloc_async_ptsz(CUdeviceptr* out, size_t bytes, CUstream) {
  return allocate(k_cuMemAllocAsync_ptsz, out, bytes, nullptr);
}
CUresult alloc_pool(CUdeviceptr* out, size_t bytes, CUmemoryPool, CUstream) {
  return allocate(k_cuMemAllocFromPoolAsync, out, bytes, nullptr);
}
CUresult free_async(CUdeviceptr address, CUstream) { return release(k_cuMemFreeAsync, address); }
CUresult free_async_ptsz(CUdeviceptr address, CUstream) { return release(k_cuMemFreeAsync_ptsz, address); }

CUresult create(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp* properties,
                unsigned long long) {
  CUresult failure;
  if (begin(k_cuMemCreate, &failure)) return failure;
  if (handle == nullptr || properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(g_mutex);
  *handle = g_next_handle++;
  g_handles[*handle] = bytes;
  return CUDA_SUCCESS;
}
CUresult release_handle(CUmemGenericAllocationHandle handle) {
  CUresult failure;
  if (begin(k_cuMemRelease, &failure)) return failure;
  const std::lock_guard lock(g_mutex);
  return g_handles.erase(handle) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
template <std::size_t index, typename... Parameters>
CUresult succeed(Parameters...) {
  CUresult failure;
  return begin(index, &failure) ? failure : CUDA_SUCCESS;
}

CUresult pointer_attribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  CUresult failure;
  if (begin(k_cuPointerGetAttribute, &failure)) return failure;
  const std::lock_guard lock(g_mutex);
  const auto found = g_blocks.find(address);
  if (data == nullptr || found == g_blocks.end() || attribute != CU_POINTER_ATTRIBUTE_CONTEXT)
    return CUDA_ERROR_INVALID_VALUE;
  *static_cast<CUcontext*>(data) = found->second.context;
  return CUDA_SUCCESS;
}

// ---- contexts
// -----------------------------------------------------------------------------------------------------------------------
CUcontext primary_of(CUdevice device) {
  return reinterpret_cast<CUcontext>(std::uintptr_t{0x2000} + static_cast<unsigned>(device));
}
std::atomic<int> g_retained{0};

CUresult retain(CUcontext* context, CUdevice device) {
  CUresult failure;
  if (begin(k_cuDevicePrimaryCtxRetain, &failure)) return failure;
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *context = primary_of(device);
  ++g_retained;
  return CUDA_SUCCESS;
}
CUresult release_primary(CUdevice device) {
  CUresult failure;
  if (begin(k_cuDevicePrimaryCtxRelease_v2, &failure)) return failure;
  if (g_retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (--g_retained == 0) drop_context(primary_of(device));
  return CUDA_SUCCESS;
}
CUresult reset_primary(CUdevice device) {
  CUresult failure;
  if (begin(k_cuDevicePrimaryCtxReset_v2, &failure)) return failure;
  drop_context(primary_of(device));
  return CUDA_SUCCESS;
}
CUresult primary_state(CUdevice, unsigned int* flags, int* active) {
  g_calls[k_cuDevicePrimaryCtxGetState].fetch_add(1, std::memory_order_relaxed);
  *flags = 0;
  *active = g_retained > 0;
  return CUDA_SUCCESS;
}
CUresult set_current(CUcontext context) {
  g_calls[k_cuCtxSetCurrent].fetch_add(1, std::memory_order_relaxed);
  g_current = context;
  return CUDA_SUCCESS;
}
CUresult destroy_context(CUcontext context) {
  CUresult failure;
  if (begin(k_cuCtxDestroy_v2, &failure)) return failure;
  drop_context(context);
  return CUDA_SUCCESS;
}

// ---- addresses
// ----------------------------------------------------------------------------------------------------------------------
struct Row {
  std::string_view base;
  int version;
  bool per_thread;
  std::size_t index;
};
constexpr Row kRows[] = {
#define MEMOPT_ABI(base, version, per_thread, index) {base, version, per_thread, index},
#include "memopt_entry_points/hooks.inc"
};

CUresult future_function() { return CUDA_ERROR_NOT_PERMITTED; }

CUresult answer(const char* symbol, void** function, int version, cuuint64_t flags);
CUresult proc_address(const char* symbol, void** function, int version, cuuint64_t flags) {
  CUresult failure;
  return begin(k_cuGetProcAddress, &failure) ? failure : answer(symbol, function, version, flags);
}
CUresult proc_address_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                         CUdriverProcAddressQueryResult* found) {
  CUresult failure;
  if (begin(k_cuGetProcAddress_v2, &failure)) return failure;
  const CUresult result = answer(symbol, function, version, flags);
  if (found != nullptr) {
    *found = result == CUDA_SUCCESS && *function != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS
                                                            : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return result;
}

}  // namespace

extern "C" void* const fake_stubs[];
// Read by the stubs. Filled before anybody can call: the slots are constants but for the overrides.
extern "C" void* fake_functions[];
void* fake_functions[kCount] = {
#define MEMOPT_HOOK(index, symbol, type) reinterpret_cast<void*>(&Fake<index, type>::call),
#include "memopt_entry_points/hooks.inc"
};

namespace {

CUresult answer(const char* symbol, void** function, int version, cuuint64_t flags) {
  if (symbol == nullptr || function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *function = nullptr;
  const bool wants_per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  const std::string_view name = symbol;
  // A driver that is newer than the headers: a name, and a version of an old name, that they do not know.
  if (name == "cuFutureThing" || (name == "cuCtxCreate" && version >= 99000)) {
    *function = reinterpret_cast<void*>(&future_function);
    return CUDA_SUCCESS;
  }
  const Row* chosen = nullptr;
  bool has_per_thread = false;
  for (const Row& row : kRows) has_per_thread |= row.base == name && row.per_thread;
  for (const Row& row : kRows) {
    if (row.base == name && row.per_thread == (wants_per_thread && has_per_thread) && row.version <= version)
      chosen = &row;
  }
  if (chosen != nullptr) *function = g_hide ? fake_functions[chosen->index] : fake_stubs[chosen->index];
  return chosen != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

__attribute__((constructor)) void fill_functions() {
  // Each override is checked against the symbol's own pointer type.
  const auto set = [](std::size_t index, auto* function, auto* type) {
    static_assert(std::is_same_v<decltype(function), std::remove_pointer_t<decltype(type)>>);
    fake_functions[index] = reinterpret_cast<void*>(function);
  };
#define FAKE(symbol, function, type) set(k_##symbol, &function, static_cast<type*>(nullptr))
  FAKE(cuMemAlloc, alloc_v1, PFN_cuMemAlloc_v2000);
  FAKE(cuMemAlloc_v2, alloc_v2, PFN_cuMemAlloc_v3020);
  FAKE(cuMemAllocPitch_v2, alloc_pitch, PFN_cuMemAllocPitch_v3020);
  FAKE(cuMemFree, free_v1, PFN_cuMemFree_v2000);
  FAKE(cuMemFree_v2, free_v2, PFN_cuMemFree_v3020);
  FAKE(cuMemAllocAsync, alloc_async, PFN_cuMemAllocAsync_v11020);
  FAKE(cuMemAllocAsync_ptsz, alloc_async_ptsz, PFN_cuMemAllocAsync_v11020_ptsz);
  FAKE(cuMemAllocFromPoolAsync, alloc_pool, PFN_cuMemAllocFromPoolAsync_v11020);
  FAKE(cuMemFreeAsync, free_async, PFN_cuMemFreeAsync_v11020);
  FAKE(cuMemFreeAsync_ptsz, free_async_ptsz, PFN_cuMemFreeAsync_v11020_ptsz);
  FAKE(cuMemCreate, create, PFN_cuMemCreate_v10020);
  FAKE(cuMemRelease, release_handle, PFN_cuMemRelease_v10020);
  fake_functions[k_cuMemMap] = reinterpret_cast<void*>(
      &succeed<k_cuMemMap, CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long>);
  fake_functions[k_cuMemUnmap] = reinterpret_cast<void*>(&succeed<k_cuMemUnmap, CUdeviceptr, size_t>);
  fake_functions[k_cuInit] = reinterpret_cast<void*>(&succeed<k_cuInit, unsigned int>);
  FAKE(cuPointerGetAttribute, pointer_attribute, PFN_cuPointerGetAttribute_v4000);
  FAKE(cuDevicePrimaryCtxRetain, retain, PFN_cuDevicePrimaryCtxRetain_v7000);
  FAKE(cuDevicePrimaryCtxRelease_v2, release_primary, PFN_cuDevicePrimaryCtxRelease_v11000);
  FAKE(cuDevicePrimaryCtxReset_v2, reset_primary, PFN_cuDevicePrimaryCtxReset_v11000);
  FAKE(cuDevicePrimaryCtxGetState, primary_state, PFN_cuDevicePrimaryCtxGetState_v7000);
  FAKE(cuCtxSetCurrent, set_current, PFN_cuCtxSetCurrent_v4000);
  FAKE(cuCtxDestroy_v2, destroy_context, PFN_cuCtxDestroy_v4000);
  FAKE(cuGetProcAddress, proc_address, PFN_cuGetProcAddress_v11030);
  FAKE(cuGetProcAddress_v2, proc_address_v2, PFN_cuGetProcAddress_v12000);
}

std::size_t index_of(const char* symbol) {
  for (std::size_t i = 0; i < kCount; ++i) {
    if (std::strcmp(kSymbols[i], symbol) == 0) return i;
  }
  return kCount;
}

}  // namespace

FAKE_EXPORT std::uint64_t fake_calls(const char* symbol) {
  const std::size_t index = index_of(symbol);
  return index == kCount ? ~std::uint64_t{0} : g_calls[index].load();
}
FAKE_EXPORT void* fake_export(const char* symbol) {
  const std::size_t index = index_of(symbol);
  return index == kCount ? nullptr : fake_stubs[index];
}
FAKE_EXPORT void fake_fail_next(const char* symbol, int code) {
  const std::size_t index = index_of(symbol);
  if (index != kCount) g_failures[index] = code;
}
FAKE_EXPORT void fake_hide_exports(bool hide) { g_hide = hide; }
FAKE_EXPORT std::uint64_t fake_live_bytes() {
  const std::lock_guard lock(g_mutex);
  std::uint64_t bytes = 0;
  for (const auto& [address, block] : g_blocks) bytes += block.size;
  for (const auto& [handle, size] : g_handles) bytes += size;
  return bytes;
}
FAKE_EXPORT std::uint64_t fake_last_arguments() { return g_last_arguments; }
