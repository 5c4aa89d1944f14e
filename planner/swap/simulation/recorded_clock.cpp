#include "planner/swap/simulation/recorded_clock.h"

namespace memopt::swap {

RecordedClock::RecordedClock(const Problem& problem, const Simulator& simulator, std::uint64_t iterations)
    : n_(static_cast<std::int64_t>(problem.operations.size())), iterations_(static_cast<std::int64_t>(iterations)) {
  begin_.reserve(iterations * problem.operations.size());
  end_.reserve(iterations * problem.operations.size());
  double stall = 0;
  auto next = simulator.stalls().begin();
  for (std::uint64_t k = 0; k < iterations; ++k) {
    for (std::size_t i = 0; i < problem.operations.size(); ++i) {
      while (next != simulator.stalls().end() && next->iteration == k && next->operation == i) stall += (next++)->ns;
      const double base = static_cast<double>(k) * problem.period + stall;
      begin_.push_back(base + problem.operations[i].time);
      end_.push_back(base + (i + 1 < problem.operations.size() ? problem.operations[i + 1].time : problem.period));
    }
  }
}

}  // namespace memopt::swap
