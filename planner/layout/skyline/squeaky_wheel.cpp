#include "planner/layout/skyline/squeaky_wheel.h"

#include <algorithm>

namespace memopt::layout {
namespace {

// Only a few settings were compared, on MiniMalloc's hard instances, a quarter of a second each: no clear difference.
constexpr double kFirstGapFraction = 0.3;
constexpr double kGapFractionGain = 1.5;
constexpr double kGapFractionLoss = 0.7;
constexpr unsigned kPatience = 50;  // failures before a smaller step is tried
constexpr double kBlame = 1;        // doubles the key at most

}  // namespace

SqueakyWheel::SqueakyWheel(const Problem& problem, const Sections& sections, Weights weights, std::uint64_t seed)
    : problem_(problem), sections_(sections), random_(seed), weights_(weights), gap_fraction_(kFirstGapFraction) {}

bool SqueakyWheel::attempt(Skyline& skyline, std::uint64_t best, std::uint64_t goal, Allowance& allowance,
                           Solution& solution) {
  if (keys_.empty()) keys_ = keys_of(problem_, sections_, weights_);
  const auto step = static_cast<std::uint64_t>(static_cast<double>(best - goal) * gap_fraction_);
  const std::uint64_t target = std::max(goal, best - std::max<std::uint64_t>(1, step));
  rank(problem_, sections_, keys_, priorities_);
  allowance.spend(1 + keys_.size() / 16);
  if (skyline.run(priorities_, target + 1, allowance, solution)) {
    failures_ = 0;
    gap_fraction_ = std::min(1.0, gap_fraction_ * kGapFractionGain);
    return true;
  }
  if (allowance.over()) return false;
  for (const std::uint32_t buffer : skyline.blamed()) keys_[buffer] += kBlame * random_.fraction();
  if (++failures_ == kPatience) {
    failures_ = 0;
    gap_fraction_ *= kGapFractionLoss;
  }
  return false;
}

}  // namespace memopt::layout
