// Native code for kernels, where libcudasim_jit.so lies beside this library: it is loaded when the first kernel is
// compiled, for itself alone (its LLVM and the program's do not see each other), and stays.
#pragma once
#include <cstdint>
#include <string>

#include "ptx/execution/executable.h"

namespace cudasim::ptx {

// Empty where kernels can be compiled; else why not. Any thread.
std::string compiler_problem();

struct Compiled {
  std::uint32_t functions = 0;          // that have native code now
  std::uint32_t from_cache = 0;         // of these
  std::uint32_t interpreted_steps = 0;  // instructions in them that call the interpreter
  std::string interpreted;              // which
  std::string problem;                  // of the functions that stay interpreted
};
// All functions that the kernel may call; before its first launch. Any thread.
Compiled compile(const Executable& executable, const std::string& cache_folder);

// $XDG_CACHE_HOME/memopt/ptx, else ~/.cache/memopt/ptx; empty where neither is set.
std::string default_cache_folder();

}  // namespace cudasim::ptx
