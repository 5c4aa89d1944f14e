#include "planner/layout/squeaky_wheel.h"

#include <algorithm>

namespace memopt::layout {
namespace {

// A few settings were compared on MiniMalloc's hard instances only, a quarter of a second each: no clear difference.
constexpr double kFirstAmbition = 0.3;
constexpr double kAmbitionGain = 1.5;
constexpr double kAmbitionLoss = 0.7;
constexpr unsigned kPatience = 50;  // failures before less is tried
constexpr double kBlame = 1;        // doubles the key at most

}  // namespace

SqueakyWheel::SqueakyWheel(const Problem& problem, const Timeline& timeline, Weights weights, std::uint64_t seed)
    : problem_(problem), timeline_(timeline), random_(seed), weights_(weights), ambition_(kFirstAmbition) {}

bool SqueakyWheel::attempt(Skyline& skyline, std::uint64_t best, std::uint64_t goal, Allowance& allowance,
                           Solution& solution) {
  if (keys_.empty()) keys_ = keys_of(problem_, timeline_, weights_);
  const auto step = static_cast<std::uint64_t>(static_cast<double>(best - goal) * ambition_);
  const std::uint64_t target = std::max(goal, best - std::max<std::uint64_t>(1, step));
  rank(problem_, timeline_, keys_, priorities_);
  allowance.spend(1 + keys_.size() / 16);
  if (skyline.run(priorities_, target + 1, allowance, solution)) {
    failures_ = 0;
    ambition_ = std::min(1.0, ambition_ * kAmbitionGain);
    return true;
  }
  if (allowance.over()) return false;
  for (const std::uint32_t buffer : skyline.left_over()) keys_[buffer] += kBlame * random_.fraction();
  if (++failures_ == kPatience) {
    failures_ = 0;
    ambition_ *= kAmbitionLoss;
  }
  return false;
}

}  // namespace memopt::layout
