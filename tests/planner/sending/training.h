// A program that swaps can be planned for, told to whatever listens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <utility>
#include <vector>

namespace memopt::planner {

// Forward and backward through layers: activations are made by launches that read weights and what was made before, and
// are freed on the way back. Each seed is another program.
//
// Told has `malloc(bytes, stack, return address)`, which answers with a block, `free(block)`, `launch(function,
// blocks)`, `took(nanoseconds)` of the launch before, and `pause(nanoseconds)`.
template <typename Told>
class Training {
 public:
  Told told;
  std::uint64_t waits = 1000;  // nanoseconds, in each iteration: far more on demand, at a limit

  template <typename... Arguments>
  explicit Training(std::uint64_t seed, Arguments&&... arguments)
      : told(std::forward<Arguments>(arguments)...), random_(seed) {
    const std::size_t layers = 4 + random_() % 5;
    for (std::size_t i = 0; i < layers; ++i) {
      weights_.push_back(told.malloc((1 + random_() % 16) * kMiB / 2, 100 + i, 7));
      bytes_.push_back((1 + random_() % 24) * kMiB / 2);
      launch_.push_back(1'000'000 + random_() % 4'000'000);
    }
    // Some programs allocate the next input before they free the last one.
    crosses_ = random_() % 2 == 0;
    if (crosses_) input_ = told.malloc(4 * kMiB, 50, 7);
  }

  void iterate() {
    const std::uint64_t last_input = input_;
    if (crosses_) input_ = told.malloc(4 * kMiB, 50, 7);
    std::vector<std::uint64_t> activations;
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      activations.push_back(told.malloc(bytes_[i], 10 + i, 70 + i));
      const auto function = static_cast<std::uint32_t>(10 + i);
      if (i == 0) {
        launch(function, {activations[0], weights_[0]}, launch_[i]);
        if (crosses_) launch(90, {last_input, activations[0]}, 100);
      } else {
        launch(function, {activations[i - 1], weights_[i], activations[i]}, launch_[i]);
      }
    }
    if (crosses_) told.free(last_input);
    for (std::size_t i = weights_.size(); i-- > 0;) {
      launch(static_cast<std::uint32_t>(30 + i), {activations[i], weights_[i]}, 2 * launch_[i]);
      told.free(activations[i]);
    }
    launch(91, {weights_[0], weights_[1]}, 0);
    told.pause(waits);
  }

 private:
  static constexpr std::uint64_t kMiB = 1 << 20;

  void launch(std::uint32_t function, std::initializer_list<std::uint64_t> blocks, std::uint64_t nanoseconds) {
    told.launch(function, blocks);
    told.took(nanoseconds);
  }

  std::mt19937_64 random_;
  std::vector<std::uint64_t> weights_, bytes_, launch_;
  bool crosses_ = false;
  std::uint64_t input_ = 0;
};

}  // namespace memopt::planner
