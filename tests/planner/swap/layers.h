// A made-up training iteration of any size.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/swap/model/model.h"

namespace memopt::swap::testing {

// Forward and backward of so many layers, each with a weight and an output of some units.
inline Problem layers(std::uint32_t count, std::uint64_t unit) {
  Problem problem;
  double now = 0;
  const auto operation = [&](Kind kind, std::uint32_t block, double length) {
    problem.operations.push_back({kind, block, now});
    now += length;
  };
  const auto block = [&](std::uint64_t bytes, bool persistent) {
    problem.blocks.push_back({.id = problem.blocks.size(), .bytes = bytes, .persistent = persistent});
    return static_cast<std::uint32_t>(problem.blocks.size() - 1);
  };
  std::vector<std::uint32_t> weights, outputs;
  for (std::uint32_t k = 0; k < count; ++k) weights.push_back(block((1 + k % 3) * unit + k, true));
  for (std::uint32_t k = 0; k < count; ++k) {
    outputs.push_back(block((2 + k % 4) * unit + 7 * k, false));
    operation(Kind::kMalloc, outputs[k], 1);
    operation(Kind::kRead, weights[k], 40);
    if (k > 0) operation(Kind::kRead, outputs[k - 1], 1);
    operation(Kind::kWrite, outputs[k], 60);
  }
  for (std::uint32_t k = count; k-- > 0;) {
    operation(Kind::kRead, weights[k], 40);
    operation(Kind::kRead, outputs[k], 100);
    operation(Kind::kWrite, weights[k], 2);
    operation(Kind::kFree, outputs[k], 1);
  }
  problem.period = now;
  problem.machine = {static_cast<double>(unit) / 40, static_cast<double>(unit) / 45, 5, 3};
  problem.chunk = unit;
  return problem;
}

// Forward and backward of a network whose outputs shrink from layer to layer, as of images: three of 25 MiB first, a
// few of hardly any last, with a gradient beside each. Weights are pages of other blocks, in whole chunks.
inline Problem shrinking_layers(bool early) {
  constexpr double kMib = 1 << 20;
  constexpr std::size_t kLayers = 13, kOutputs = 3;
  Problem problem;
  problem.align = 512;
  double now = 0;
  const auto operation = [&](Kind kind, std::uint32_t block, double length) {
    problem.operations.push_back({kind, block, now});
    now += length;
  };
  const auto block = [&](double mib, bool persistent) {
    problem.blocks.push_back({.id = problem.blocks.size(),
                              .bytes = static_cast<std::uint64_t>(mib * kMib),
                              .persistent = persistent,
                              .whole_chunks = persistent});
    return static_cast<std::uint32_t>(problem.blocks.size() - 1);
  };
  std::vector<double> sizes;
  for (double size = 25; sizes.size() < kLayers; size /= (sizes.size() % 2 == 0) == early && size > 1.6 ? 2 : 1) {
    sizes.push_back(size);
  }
  std::vector<std::uint32_t> weights, outputs;
  for (std::size_t k = 0; k < kLayers; ++k) weights.push_back(block(k < 4 ? 2 : 14, true));
  for (std::size_t k = 0; k < kLayers * kOutputs; ++k) {
    const double size = sizes[k / kOutputs];
    outputs.push_back(block(size, false));
    operation(Kind::kMalloc, outputs[k], 0);
    if (k % kOutputs == 0) operation(Kind::kRead, weights[k / kOutputs], 1e5);
    if (k > 0) operation(Kind::kRead, outputs[k - 1], 0);
    operation(Kind::kWrite, outputs[k], 3e4 * size);
  }
  std::uint32_t before = kNoBlock;
  for (std::size_t k = kLayers * kOutputs; k-- > 0;) {
    const double size = sizes[k / kOutputs];
    const std::uint32_t gradient = block(size, false);
    operation(Kind::kMalloc, gradient, 0);
    operation(Kind::kRead, outputs[k], 0);
    if (before != kNoBlock) operation(Kind::kRead, before, 0);
    operation(Kind::kWrite, gradient, 5e4 * size);
    if (before != kNoBlock) operation(Kind::kFree, before, 0);
    operation(Kind::kFree, outputs[k], 0);
    if (k % kOutputs == 0) operation(Kind::kWrite, weights[k / kOutputs], 1e5);
    before = gradient;
  }
  operation(Kind::kFree, before, 0);
  problem.period = now;
  problem.machine = {12, 12, 47000, 9700};
  return problem;
}

// As many of the iteration, one behind the other, as one: the blocks that persist are the same in all of them.
inline Problem repeated(const Problem& step, std::uint32_t times) {
  Problem problem = step;
  const auto count = static_cast<std::uint32_t>(step.blocks.size());
  for (std::uint32_t k = 1; k < times; ++k) {
    for (const Block& block : step.blocks) {
      problem.blocks.push_back(block);
      problem.blocks.back().id = problem.blocks.size() - 1;
      if (!block.persistent) continue;
      // Not another one: this only has its number.
      problem.blocks.back().bytes = 0;
    }
    for (Operation operation : step.operations) {
      operation.time += step.period * k;
      const bool shared = operation.block != kNoBlock && step.blocks[operation.block].persistent;
      if (operation.block != kNoBlock && !shared) operation.block += k * count;
      problem.operations.push_back(operation);
    }
  }
  problem.period = step.period * times;
  return problem;
}

}  // namespace memopt::swap::testing
