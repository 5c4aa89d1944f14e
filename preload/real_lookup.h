// The real dlsym and dlvsym: the next definitions after ours in load order, which is libc's unless another preloaded
// library has its own.
#pragma once

// Set by memopt_find_real_lookups (real_lookup.cpp); until then code that calls it (entry.S).
extern "C" {
[[gnu::visibility("hidden")]] extern void* (*memopt_real_dlsym)(void* handle, const char* name);
[[gnu::visibility("hidden")]] extern void* (*memopt_real_dlvsym)(void* handle, const char* name, const char* version);
[[gnu::visibility("hidden")]] void memopt_find_real_lookups() noexcept;
}

// Ours (entry.S), by names that no other library has.
extern "C" {
[[gnu::visibility("hidden")]] void* memopt_dlsym(void* handle, const char* name);
[[gnu::visibility("hidden")]] void* memopt_dlvsym(void* handle, const char* name, const char* version);
}

namespace memopt::preload {

// As if this library had called dlsym: RTLD_NEXT means what comes after it.
inline void* real_dlsym(void* handle, const char* name) noexcept {
  return __atomic_load_n(&memopt_real_dlsym, __ATOMIC_RELAXED)(handle, name);
}
inline void* real_dlvsym(void* handle, const char* name, const char* version) noexcept {
  return __atomic_load_n(&memopt_real_dlvsym, __ATOMIC_RELAXED)(handle, name, version);
}

}  // namespace memopt::preload
