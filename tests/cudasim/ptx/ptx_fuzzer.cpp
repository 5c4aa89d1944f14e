// libFuzzer target over PTX text: anything but a program, made ready or with a problem, or ParseError is a bug.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ptx/execution/executable.h"
#include "ptx/front/parse.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace ptx = cudasim::ptx;
  try {
    const auto program = ptx::parse(std::string_view(reinterpret_cast<const char*>(data), size));
    for (const ptx::Function& function : program->functions) {
      std::string problem;
      if (function.is_kernel && function.is_defined)
        ptx::Executable::make(
            program, function, [](const ptx::Variable&) { return std::uint64_t{4096}; }, problem);
    }
  } catch (const ptx::ParseError&) {
  }
  return 0;
}
