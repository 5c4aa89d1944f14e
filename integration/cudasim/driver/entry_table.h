// Every entry point that CUDA's headers name (cmake/entry_points.py), with this library's own function for it.
#pragma once
#include <span>
#include <string_view>

namespace cudasim {

inline constexpr int kDriverVersion =
    13000;  // CUDA 13.0: what cuDriverGetVersion says and the newest that cuGetProcAddress takes

struct EntryPoint {
  std::string_view base;  // what a program passes to cuGetProcAddress
  int version;            // ABI version: 3020 is CUDA 3.2
  bool per_thread;        // _ptsz and _ptds forms
  const char* symbol;     // what this library exports
  void* address;
  bool implemented;  // false: a stub that returns CUDA_ERROR_NOT_SUPPORTED
};

std::span<const EntryPoint> entry_points();  // sorted by base

}  // namespace cudasim
