#include "ptx/loader/compiler.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>

#include "ptx/jit/plug_in.h"

namespace cudasim::ptx {
namespace {

constexpr const char* kName = "libcudasim_jit.so";

struct PlugIn {
  jit::CompileFunction compile = nullptr;
  std::string problem;
};

// Beside the library in which this code lies, else where the dynamic loader finds it.
std::string path_beside() {
  Dl_info self{};
  if (dladdr(reinterpret_cast<const void*>(&compiler_problem), &self) == 0 || self.dli_fname == nullptr) return kName;
  const std::string path = self.dli_fname;
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? kName : path.substr(0, slash + 1) + kName;
}

PlugIn load() {
  PlugIn plug_in;
  std::string path = path_beside();
  if (access(path.c_str(), R_OK) != 0) path = kName;
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = dlerror();
    plug_in.problem = why == nullptr ? path + " can't be loaded" : why;
    return plug_in;
  }
  plug_in.compile = reinterpret_cast<jit::CompileFunction>(dlsym(library, jit::kCompileName));
  if (plug_in.compile == nullptr) plug_in.problem = path + " is no compiler of kernels";
  return plug_in;
}

const PlugIn& plug_in() {
  static const auto* const loaded = new PlugIn(load());
  return *loaded;
}

}  // namespace

std::string compiler_problem() { return plug_in().problem; }

Compiled compile(const Executable& executable, const std::string& cache_folder) {
  Compiled compiled;
  if (plug_in().compile == nullptr) {
    compiled.problem = plug_in().problem;
    return compiled;
  }
  for (std::uint32_t f = 0; f < executable.codes.size(); ++f) {
    if (executable.codes[f].steps.empty()) continue;
    jit::CompileResult result;
    plug_in().compile({kNativeVersion, &executable, f, cache_folder}, result);
    if (result.native == nullptr) {
      compiled.problem +=
          (compiled.problem.empty() ? "" : "; ") + executable.codes[f].function->name + ": " + result.problem;
      continue;
    }
    ++compiled.functions;
    compiled.from_cache += result.from_cache ? 1 : 0;
    compiled.interpreted_steps += result.native->interpreted_steps;
    if (!result.native->interpreted.empty())
      compiled.interpreted += (compiled.interpreted.empty() ? "" : " ") + result.native->interpreted;
    executable.codes[f].native = result.native;
  }
  return compiled;
}

std::string default_cache_folder() {
  // The environment is the user's; an empty variable is one that is not set, as the specification has it.
  if (const char* const cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && cache[0] == '/')
    return std::string(cache) + "/memopt/ptx";
  const char* const home = std::getenv("HOME");
  return home == nullptr || home[0] != '/' ? std::string() : std::string(home) + "/.cache/memopt/ptx";
}

}  // namespace cudasim::ptx
