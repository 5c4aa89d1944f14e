#include "planner/swap/simulation/clock.h"

#include <algorithm>
#include <cmath>

namespace memopt::swap {
namespace {

constexpr double kUnits = 1 << kPointBits;

}  // namespace

Clock::Clock(const Problem& problem) : problem_(problem), delays_(1) { delay({}); }

void Clock::delay(std::span<const Delay> delays) {
  if (std::equal(delays.begin(), delays.end(), delays_.begin(), delays_.end())) return;
  delays_.assign(delays.begin(), delays.end());
  const std::size_t n = problem_.operations.size();
  begin_.resize(n);
  end_.resize(n);
  double late = 0;
  auto next = delays_.begin();
  for (std::size_t i = 0; i < n; ++i) {
    for (; next != delays_.end() && next->operation == i; ++next) late += next->ns;
    begin_[i] = problem_.operations[i].time + late;
    end_[i] = (i + 1 < n ? problem_.operations[i + 1].time : problem_.period) + late;
  }
  period_ = problem_.period + late;
}

Point Clock::not_before(double time) const {
  const double iteration = std::floor(time / period_);
  const double rest = time - iteration * period_;
  const auto next = std::lower_bound(begin_.begin(), begin_.end(), rest) - begin_.begin();
  const auto base = static_cast<std::uint64_t>(iteration) * operations();
  const auto i = static_cast<std::size_t>(next);
  if (i < begin_.size() && begin_[i] == rest) return point_of(base + i);
  if (i == 0) return point_of(base);
  const double length = end_[i - 1] - begin_[i - 1];
  // Behind its end: it is over, and the next waits.
  if (rest >= end_[i - 1]) return point_of(base + i);
  return point_of(base + i - 1) + static_cast<Point>(std::ceil((rest - begin_[i - 1]) / length * kUnits));
}

Point Clock::not_after(double time) const {
  const double iteration = std::floor(time / period_);
  const double rest = time - iteration * period_;
  const auto next = std::upper_bound(begin_.begin(), begin_.end(), rest) - begin_.begin();
  const auto base = static_cast<std::uint64_t>(iteration) * operations();
  if (next == 0) return point_of(base);
  const auto i = static_cast<std::size_t>(next) - 1;
  if (rest >= end_[i]) return point_of(base + i + 1);
  const double length = end_[i] - begin_[i];
  return point_of(base + i) + static_cast<Point>((rest - begin_[i]) / length * kUnits);
}

std::uint64_t Clock::last_ended(double time, std::uint64_t least, std::uint64_t below) const {
  std::uint64_t low = least, high = below;
  while (low + 1 < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    (end(middle) <= time ? low : high) = middle;
  }
  return low;
}

}  // namespace memopt::swap
