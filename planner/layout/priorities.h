// Internal to the room: which buffers come first.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/layout/problem.h"
#include "planner/layout/timeline.h"

namespace memopt::layout {

// Of a buffer, in powers of two: bytes^bytes * sections^length.
struct Weights {
  double bytes = 0;
  double length = 0;
};

// Larger comes first. The same on every machine: no library's logarithm.
std::vector<double> keys_of(const Problem& problem, const Timeline& timeline, Weights weights);

// The time that each is needed, as the problem counts it: Sekiyama's choice.
std::vector<double> lifetimes_of(const Problem& problem);

// Numbers from 1 up, larger for larger keys; of equal keys the buffer that begins first has the larger
// (Problem::start_order between those that begin together). O(n log n).
void rank(const Problem& problem, const Timeline& timeline, std::span<const double> keys,
          std::vector<std::uint32_t>& priorities);

// A logarithm to the base of two, good to a hundredth; monotone.
double rough_log2(std::uint64_t value);

// SplitMix64 (Steele, Lea, Flood 2014): small, and the same everywhere.
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
