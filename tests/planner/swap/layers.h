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
