// Internal to planner/layout: random numbers that are the same on every machine.
#pragma once

#include <cstdint>

namespace memopt::layout {

// SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  double fraction() { return static_cast<double>(next() >> 11) * 0x1p-53; }  // in [0, 1)

 private:
  std::uint64_t state_;
};

}  // namespace memopt::layout
