// The table of hooks, one per exported entry point of the driver, in the order of their symbols.
//
// Who calls cuX lands in its trampoline (trampoline.inc), which counts and jumps to the hook's target. The target is
// either the driver's real function ("count and forward") or a function of ours with the same signature
// (typed_hooks.cpp), which calls the real one through real<Hook>(). Addresses become known when a program asks for
// them, or at the first call; from then on they do not change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "preload/driver_api.h"
#include "shm/status.h"

namespace memopt::preload {

enum class Hook : std::uint32_t {
#define MEMOPT_HOOK(index, symbol, type) symbol = index,
#include "memopt_entry_points/hooks.inc"
};

#define MEMOPT_TOOLKIT(version, hooks, rows)      \
  inline constexpr int kToolkitVersion = version; \
  inline constexpr std::size_t kHookCount = hooks;
#include "memopt_entry_points/hooks.inc"

// The pointer type of a hook's function.
template <Hook hook>
struct Signature;
#define MEMOPT_HOOK(index, symbol, type) \
  template <>                            \
  struct Signature<Hook::symbol> {       \
    using Pointer = type;                \
  };
#include "memopt_entry_points/hooks.inc"

const char* symbol_of(Hook hook) noexcept;

// The hook of an exported symbol; false if there is none.
bool find_hook(const char* symbol, Hook* hook) noexcept;

// What a program is given in place of the driver's own function.
void* trampoline_of(Hook hook) noexcept;
bool is_trampoline(const void* address) noexcept;

// Makes `real`, a driver's answer for this entry point, the hook's real function. False: the program is to have `real`
// itself, for it lies in another driver library than the first one that was used, or in another namespace (dlmopen).
// All hooks lead to one driver.
bool adopt(Hook hook, void* real) noexcept;

// The real function: adopted, or looked up as the linker would. Never null: without one, a function that returns
// CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND.
void* real_function(Hook hook) noexcept;

template <Hook hook>
typename Signature<hook>::Pointer real() noexcept {
  return reinterpret_cast<typename Signature<hook>::Pointer>(real_function(hook));
}

// lookup.cpp: does the address lie in an object that comes before us in the order of loading? Has a name of the
// driver's been looked up through our dlsym?
bool is_before_us(const void* address) noexcept;
bool a_name_was_looked_up() noexcept;

// The driver library in use: that of the first adopted function. Empty path if none.
std::string driver_path();

// References to the driver, or to dlsym, that do not lead here, and a second driver: for status.
void find_problems(std::vector<shm::Problem>& problems);

}  // namespace memopt::preload
