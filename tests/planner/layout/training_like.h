// Problems shaped like the iteration of a training program, of any size.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "planner/layout/problem/problem.h"

namespace memopt::layout {

struct TrainingShape {
  std::uint64_t buffers = 5000;  // about
  // Gradients of parameters live until the next iteration frees them at its beginning (in the order of the layers), so
  // they are needed at the end of the iteration and at its beginning.
  bool gradients_cross = true;
  // They live until those of the next iteration replace them one by one: two iterations are planned as one.
  bool two_rounds = false;
  bool blocks_of_512 = true;  // sizes are rounded up
};

// Layer by layer: activations that backward needs, scratch space, gradients of activations that live from layer to
// layer, and gradients of parameters.
inline Problem training_like(const TrainingShape& shape, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto size = [&](std::uint64_t least, std::uint64_t most) {
    // Few sizes occur often, as in a network of repeated layers.
    const std::uint64_t bytes = least + (most - least) * (random() % 16) / 16 + random() % 64 * 4;
    return shape.blocks_of_512 ? (bytes + 511) / 512 * 512 : bytes;
  };
  struct Layer {
    std::uint64_t output, normalised, scratch, weights, bias;
  };
  struct Open {
    std::uint64_t bytes, begin;
  };
  const std::uint64_t rounds = shape.two_rounds ? 2 : 1;
  const std::uint64_t layers = std::max<std::uint64_t>(1, shape.buffers / rounds / 9);
  std::vector<Layer> net;
  for (std::uint64_t i = 0; i < layers; ++i) {
    net.push_back({size(1 << 16, 1 << 22), size(1 << 16, 1 << 22), size(1 << 12, 1 << 23), size(1 << 10, 1 << 21),
                   size(256, 1 << 12)});
  }

  Problem problem;
  std::uint64_t now = 0;
  const auto scratch = [&](std::uint64_t bytes) {
    problem.add(bytes, Interval{now, now + 2});
    now += 2;
  };
  std::vector<Open> gradients;  // of parameters, by number: where they began, to be closed later
  std::vector<std::uint64_t> freed_at(2 * layers, 0);
  std::vector<std::vector<Interval>> replaced(2 * layers);
  std::vector<Interval> first_of(2 * layers);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    if (shape.gradients_cross && !shape.two_rounds) {
      for (std::uint64_t i = 0; i < 2 * layers; ++i) freed_at[i] = ++now;
    }
    std::vector<Open> kept;
    for (const Layer& layer : net) {
      kept.push_back({layer.output, now++});
      scratch(layer.scratch);
      kept.push_back({layer.normalised, now++});
    }
    Open above{net.back().output, now++};
    for (std::uint64_t i = layers; i-- > 0;) {
      const Layer& layer = net[i];
      scratch(layer.scratch);
      const Open below{i > 0 ? net[i - 1].output : layer.output, now++};
      for (const std::uint64_t which : {2 * i, 2 * i + 1}) {
        const std::uint64_t bytes = which % 2 == 0 ? layer.weights : layer.bias;
        const std::uint64_t begin = now++;
        if (shape.two_rounds) {
          // The other round's is freed when this one has been allocated.
          if (round == 0) {
            first_of[which] = {begin, 0};
            replaced[which] = {{0, begin + 1}};
          } else {
            problem.add(bytes, Interval{first_of[which].begin, begin + 1});
            replaced[which].push_back({begin, 0});
          }
        } else if (shape.gradients_cross) {
          gradients.push_back({bytes, begin});
          replaced[which] = {{0, freed_at[which]}, {begin, 0}};
        } else {
          gradients.push_back({bytes, begin});
        }
      }
      problem.add(kept[2 * i + 1].bytes, Interval{kept[2 * i + 1].begin, now++});
      problem.add(kept[2 * i].bytes, Interval{kept[2 * i].begin, now++});
      problem.add(above.bytes, Interval{above.begin, now++});
      above = below;
    }
    problem.add(above.bytes, Interval{above.begin, now++});
  }
  ++now;
  std::size_t at = 0;
  for (std::uint64_t i = layers; i-- > 0;) {
    for (const std::uint64_t which : {2 * i, 2 * i + 1}) {
      const std::uint64_t bytes = which % 2 == 0 ? net[i].weights : net[i].bias;
      if (shape.two_rounds || shape.gradients_cross) {
        replaced[which].back().end = now;
        problem.add(bytes, replaced[which]);
      } else {
        problem.add(gradients[at].bytes, Interval{gradients[at].begin, now});
        ++at;
      }
    }
  }
  return problem;
}

}  // namespace memopt::layout
