// Preloaded: machine code that a program asks NVRTC for is the PTX of the same program.
#include <dlfcn.h>
#include <stddef.h>

namespace {

// As in nvrtc.h, which a toolkit of drivers' headers alone does not have.
using Program = void*;
using Result = int;
constexpr Result kInternalError = 11;

using Size = Result (*)(Program, size_t*);
using Text = Result (*)(Program, char*);

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) Result nvrtcGetCUBINSize(Program program, size_t* size) {
  static const auto own = next<Size>("nvrtcGetCUBINSize");
  static const auto ptx = next<Size>("nvrtcGetPTXSize");
  if (own == nullptr || ptx == nullptr) return kInternalError;
  // No machine code, no PTX in its place: programs tell virtual from real architectures by that.
  const Result result = own(program, size);
  return result != 0 || *size == 0 ? result : ptx(program, size);
}

__attribute__((visibility("default"))) Result nvrtcGetCUBIN(Program program, char* code) {
  static const auto ptx = next<Text>("nvrtcGetPTX");
  return ptx == nullptr ? kInternalError : ptx(program, code);
}
}
