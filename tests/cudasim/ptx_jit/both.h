// The same kernel interpreted and in native code, on the same memory: every byte has to be the same afterwards.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "ptx/execution/executable.h"
#include "ptx/execution/launch.h"
#include "ptx/front/parse.h"
#include "ptx/loader/compiler.h"

namespace ptx_both {

namespace ptx = cudasim::ptx;
using Bytes = std::vector<std::byte>;

class Kernel {
 public:
  explicit Kernel(const std::string& text, const std::string& name, const std::string& cache_folder = "")
      : program_(ptx::parse(text)) {
    for (const std::uint32_t index : program_->module_variables) {
      const ptx::Variable& v = program_->variables[index];
      initial_.emplace_back(v.size + 64);
      std::copy(v.initial.begin(), v.initial.end(), initial_.back().begin());
      variables_.push_back(initial_.back());
      names_.push_back(v.name);
    }
    const ptx::Function* const function = program_->kernel(name);
    if (function == nullptr) throw std::runtime_error("no kernel " + name);
    interpreted_ = make(*function);
    native_ = make(*function);
    compiled = ptx::compile(*native_, cache_folder);
  }

  // Buffers are passed by address, then the numbers.
  void run(const ptx::Shape& shape, const std::vector<Bytes>& buffers, const std::vector<std::uint32_t>& numbers = {}) {
    ASSERT_GT(compiled.functions, 0u) << compiled.problem;
    memory_ = buffers;
    restore_variables();
    const ptx::Outcome expected = launch(interpreted_, shape, memory_, numbers);
    const std::vector<Bytes> interpreted = memory_, variables = variables_;
    // At the same addresses, so that kernels that store them agree.
    for (std::size_t b = 0; b < buffers.size(); ++b)
      std::copy(buffers[b].begin(), buffers[b].end(), memory_[b].begin());
    restore_variables();
    outcome = launch(native_, shape, memory_, numbers);
    EXPECT_EQ(outcome.stop, expected.stop) << expected.text << " / " << outcome.text;
    EXPECT_EQ(outcome.text, expected.text);
    for (std::size_t b = 0; b < buffers.size(); ++b) {
      for (std::size_t at = 0; at < interpreted[b].size(); ++at) {
        ASSERT_EQ(static_cast<int>(memory_[b][at]), static_cast<int>(interpreted[b][at]))
            << "buffer " << b << ", byte " << at << "; interpreted in native code: " << compiled.interpreted;
      }
    }
    EXPECT_TRUE(variables_ == variables);
  }

  template <class T>
  std::vector<T> result(std::size_t buffer) const {
    std::vector<T> values(memory_[buffer].size() / sizeof(T));
    std::memcpy(values.data(), memory_[buffer].data(), values.size() * sizeof(T));
    return values;
  }

  ptx::Compiled compiled;
  ptx::Outcome outcome;

 private:
  std::shared_ptr<const ptx::Executable> make(const ptx::Function& function) {
    std::string problem;
    auto executable = ptx::Executable::make(
        program_, function,
        [this](const ptx::Variable& v) -> std::uint64_t {
          for (std::size_t i = 0; i < names_.size(); ++i) {
            if (names_[i] == v.name) return reinterpret_cast<std::uint64_t>(variables_[i].data());
          }
          return 0;
        },
        problem);
    if (executable == nullptr) throw std::runtime_error(problem);
    return executable;
  }
  void restore_variables() {
    for (std::size_t v = 0; v < variables_.size(); ++v)
      std::copy(initial_[v].begin(), initial_[v].end(), variables_[v].begin());
  }
  static ptx::Outcome launch(const std::shared_ptr<const ptx::Executable>& executable, const ptx::Shape& shape,
                             std::vector<Bytes>& buffers, const std::vector<std::uint32_t>& numbers) {
    Bytes parameters;
    for (Bytes& buffer : buffers) {
      std::byte* const address = buffer.data();
      parameters.resize(parameters.size() + sizeof address);
      std::memcpy(parameters.data() + parameters.size() - sizeof address, &address, sizeof address);
    }
    for (const std::uint32_t number : numbers) {
      parameters.resize(parameters.size() + sizeof number);
      std::memcpy(parameters.data() + parameters.size() - sizeof number, &number, sizeof number);
    }
    ptx::Launch launch(executable, shape, parameters, {});
    return launch.run(0, std::uint64_t{shape.grid[0]} * shape.grid[1] * shape.grid[2]);
  }

  std::shared_ptr<const ptx::Program> program_;
  std::shared_ptr<const ptx::Executable> interpreted_, native_;
  std::vector<Bytes> initial_, variables_, memory_;
  std::vector<std::string> names_;
};

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

}  // namespace ptx_both
