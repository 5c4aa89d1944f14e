// Many buffers of which nothing repeats: begins and ends are drawn at random.
#pragma once

#include <cstdint>
#include <random>
#include <utility>

#include "planner/layout/problem/problem.h"

namespace memopt::layout {

inline Problem random_lifetimes(std::uint64_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Problem problem;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t begin = random() % (2 * count), end = random() % (2 * count);
    if (begin > end) std::swap(begin, end);
    problem.add(1 + random() % 1'000'000, Interval{begin, end + 1});
  }
  return problem;
}

}  // namespace memopt::layout
