// What the library libcudasim_jit.so exports: one function, found by its name. Both sides are of one build.
#pragma once
#include <memory>
#include <string>

#include "ptx/execution/executable.h"
#include "ptx/execution/native.h"

namespace cudasim::ptx::jit {

struct CompileRequest {
  std::uint32_t version;  // kNativeVersion of the caller
  const Executable* executable;
  std::uint32_t function;  // into Executable::codes
  std::string cache_folder;
};
struct CompileResult {
  std::shared_ptr<const Native> native;  // null: `problem` says why
  std::string problem;
  bool from_cache = false;
};

inline constexpr const char* kCompileName = "cudasim_jit_compile";
using CompileFunction = void (*)(const CompileRequest& request, CompileResult& result);

}  // namespace cudasim::ptx::jit
