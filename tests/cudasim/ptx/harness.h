// PTX run on host memory, without a driver: for tests of the interpreter, and of whatever else executes a Program.
#pragma once
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "ptx/execution/executable.h"
#include "ptx/execution/launch.h"
#include "ptx/front/parse.h"
#include "ptx/loader/compiler.h"

namespace ptx_test {

namespace ptx = cudasim::ptx;

// The same tests are built a second time, to run in native code.
#ifdef PTX_TEST_NATIVE
inline constexpr bool kIsNative = true;
#else
inline constexpr bool kIsNative = false;
#endif

// Module variables get memory of the process.
class Module {
 public:
  explicit Module(const std::string& text) : program(ptx::parse(text)) {
    for (const std::uint32_t index : program->module_variables) {
      const ptx::Variable& v = program->variables[index];
      auto& bytes = memory_.emplace_back(v.size + 64);
      std::copy(v.initial.begin(), v.initial.end(), bytes.begin());
      names_.push_back(v.name);
    }
  }
  std::uint64_t address(const std::string& name) {
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (names_[i] == name) return reinterpret_cast<std::uint64_t>(memory_[i].data());
    }
    return 0;
  }
  // Empty, or why the kernel can't be run.
  std::string make(const std::string& kernel) {
    std::string problem;
    const ptx::Function* const function = program->kernel(kernel);
    if (function == nullptr) return "no such kernel";
    executable = ptx::Executable::make(
        program, *function, [this](const ptx::Variable& v) { return address(v.name); }, problem);
    if (kIsNative && executable != nullptr) {
      const ptx::Compiled compiled = ptx::compile(*executable, "");
      EXPECT_EQ(compiled.problem, "");
      EXPECT_GT(compiled.functions, 0u);
    }
    return problem;
  }
  template <class... Arguments>
  ptx::Outcome run(const ptx::Shape& shape, ptx::Observer observer, const Arguments&... arguments) {
    std::vector<std::byte> buffer;
    const auto add = [&](const auto& argument) {
      const std::size_t at = (buffer.size() + sizeof argument - 1) / sizeof argument * sizeof argument;
      buffer.resize(at + sizeof argument);
      std::memcpy(buffer.data() + at, &argument, sizeof argument);
    };
    (add(arguments), ...);
    ptx::Launch launch(executable, shape, buffer, observer);
    return launch.run(0, std::uint64_t{shape.grid[0]} * shape.grid[1] * shape.grid[2]);
  }

  std::shared_ptr<const ptx::Program> program;
  std::shared_ptr<const ptx::Executable> executable;

 private:
  std::vector<std::vector<std::byte>> memory_;
  std::vector<std::string> names_;
};

using Values = std::array<std::uint64_t, 32>;

// A warp computes `body` from %rd1, %rd2, %rd3 (a value per lane) into %rd0. Declared: %p, %rs, %r, %rd, %f, %fd with
// ten of each.
inline std::string kernel_text(const std::string& body) {
  return R"(.version 8.6
.target sm_90
.address_size 64
.entry k(.param .u64 out, .param .u64 a, .param .u64 b, .param .u64 c)
{
.reg .pred %p<10>; .reg .b16 %rs<10>; .reg .b32 %r<20>; .reg .b64 %rd<10>; .reg .f32 %f<10>; .reg .f64 %fd<10>;
.reg .b64 %at<10>; .reg .b32 %lane;
mov.u32 %lane, %tid.x;
mul.wide.u32 %at1, %lane, 8;
ld.param.u64 %at2, [a]; add.s64 %at2, %at2, %at1; ld.global.u64 %rd1, [%at2];
ld.param.u64 %at3, [b]; add.s64 %at3, %at3, %at1; ld.global.u64 %rd2, [%at3];
ld.param.u64 %at4, [c]; add.s64 %at4, %at4, %at1; ld.global.u64 %rd3, [%at4];
mov.u64 %rd0, 0;
)" + body +
         R"(
ld.param.u64 %at5, [out]; add.s64 %at5, %at5, %at1; st.global.u64 [%at5], %rd0;
ret;
}
)";
}

inline Values computed(const std::string& body, const Values& a, const Values& b = {}, const Values& c = {}) {
  Module module(kernel_text(body));
  const std::string problem = module.make("k");
  EXPECT_EQ(problem, "") << body;
  Values out{};
  if (!problem.empty()) return out;
  const ptx::Outcome outcome = module.run({{1, 1, 1}, {32, 1, 1}}, {}, out.data(), a.data(), b.data(), c.data());
  EXPECT_EQ(outcome.stop, ptx::Stop::kDone) << body << outcome.text;
  return out;
}

// Numbers at the edges, and any: bits of the width.
inline Values interesting(unsigned bits, std::uint32_t seed) {
  std::mt19937_64 random(seed);
  const std::uint64_t ones = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
  const std::uint64_t top = std::uint64_t{1} << (bits - 1);
  Values values{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t edges[] = {0, 1, ones, top, top - 1, top + 1, 2, ones - 1, bits - 1, bits};
    values[i] = (random() % 2 == 0 ? edges[random() % 10] : random() >> random() % 64) & ones;
  }
  return values;
}

}  // namespace ptx_test
