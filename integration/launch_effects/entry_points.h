// The driver's functions that this library stands in front of, and the ones behind them.
//
// Programs reach the driver by exported symbols, by dlsym and by cuGetProcAddress; all three lead to the wrappers. What
// a wrapper calls in its turn is the next definition after this library: a shim's where one is preloaded behind, else
// the driver's.
#pragma once
#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>

#include <cstddef>

namespace launch_effects {

enum class Entry : std::size_t {
#define LAUNCH_EFFECTS_WRAPPED(symbol) symbol,
#include "wrapped_functions.inc"
  kCount
};

// Null where there is no driver, or an older one.
void* next_function(Entry entry);
// A function of the driver's that is not wrapped, by its exported name; the simulator's own interface too. Null where
// there is none.
void* driver_function(const char* symbol);

}  // namespace launch_effects

// Calls the function behind the wrapper of this name.
#define LAUNCH_EFFECTS_NEXT(symbol, ...)                                                                \
  [&]() -> CUresult {                                                                                   \
    void* const launch_effects_next = ::launch_effects::next_function(::launch_effects::Entry::symbol); \
    if (launch_effects_next == nullptr) return CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND;               \
    return reinterpret_cast<decltype(&symbol)>(launch_effects_next)(__VA_ARGS__);                       \
  }()

#define LAUNCH_EFFECTS_EXPORT extern "C" __attribute__((visibility("default"))) CUresult CUDAAPI
