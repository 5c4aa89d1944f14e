// When the operations of all simulated iterations began and ended: after Simulator::record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/swap/model/model.h"
#include "planner/swap/simulation/simulator.h"

namespace memopt::swap {

// Positions are counted from the first iteration on. O(n k) for n operations and k iterations.
class RecordedClock {
 public:
  RecordedClock(const Problem& problem, const Simulator& simulator, std::uint64_t iterations);

  bool has(std::int64_t position) const { return position >= 0 && position < iterations_ * n_; }
  double begin(std::int64_t position) const { return begin_[static_cast<std::size_t>(position)]; }
  double end(std::int64_t position) const { return end_[static_cast<std::size_t>(position)]; }
  // By position, not falling.
  const std::vector<double>& ends() const { return end_; }

 private:
  std::int64_t n_, iterations_;
  std::vector<double> begin_, end_;
};

}  // namespace memopt::swap
