// Internal to planner/layout: in which order the heuristics take buffers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/layout/problem/problem.h"
#include "planner/layout/problem/sections.h"

namespace memopt::layout {

// Of a buffer, in powers of two: bytes^bytes * sections^length.
struct Weights {
  double bytes = 0;
  double length = 0;
};

// The larger the key, the earlier. The same on every machine, since no library's logarithm is used.
std::vector<double> keys_of(const Problem& problem, const Sections& sections, Weights weights);

// The lifetime of each buffer in the problem's times: the key of Sekiyama et al. 2018.
std::vector<double> lifetimes_of(const Problem& problem);

// Priorities from 1 up, larger for larger keys; of equal keys the buffer that begins first has the larger priority
// (by Problem::start_order if they begin together). O(n log n).
void rank(const Problem& problem, const Sections& sections, std::span<const double> keys,
          std::vector<std::uint32_t>& priorities);

// The logarithm to base 2, with an error below a hundredth; monotone.
double rough_log2(std::uint64_t value);

}  // namespace memopt::layout
