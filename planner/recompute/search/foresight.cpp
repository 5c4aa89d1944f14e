#include "planner/recompute/search/foresight.h"

#include <algorithm>
#include <cmath>

namespace memopt::recompute {
namespace {

constexpr double kLeastNs = 1;

}  // namespace

Foreseen::Foreseen(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph) : family(graph) {
  const std::uint64_t n = problem.operations.size();
  for (std::uint32_t b = 0; b < problem.blocks.size(); ++b) {
    first_use.push_back(static_cast<std::uint32_t>(uses.size()));
    for (const swap::Access& access : liveness.accesses_of(b))
      uses.push_back(static_cast<std::uint32_t>(access.position % n));
    std::sort(uses.begin() + first_use.back(), uses.end());
  }
  first_use.push_back(static_cast<std::uint32_t>(uses.size()));
}

Foresight::Foresight(const swap::Problem& problem, const Foreseen& foreseen)
    : problem_(problem), foreseen_(foreseen), bytes_(problem.blocks.size()), away_(foreseen.family) {}

void Foresight::begin(const Weights& weights) {
  weights_ = &weights;
  for (std::uint32_t b = 0; b < bytes_.size(); ++b) {
    bytes_[b] = std::pow(std::max(1.0, static_cast<double>(problem_.blocks[b].bytes)), weights.bytes);
    if (!weights.blocks.empty()) bytes_[b] *= std::exp(-static_cast<double>(weights.blocks[b]));
  }
  away_.clear();
  next_ = foreseen_.first_use;
}

double Foresight::value(std::uint32_t block, double /*now*/, std::uint32_t operation) {
  double cost = foreseen_.family.make_ns[block];
  if (weights_->ancestors != 0) cost += weights_->ancestors * away_.ancestors_ns(block);
  if (weights_->descendants != 0) cost += weights_->descendants * away_.descendants_ns(block);
  return weighed(block, cost, operation);
}

double Foresight::at_least(std::uint32_t block, double /*now*/, std::uint32_t operation) {
  return weighed(block, foreseen_.family.make_ns[block], operation);
}

double Foresight::weighed(std::uint32_t block, double cost, std::uint32_t operation) {
  std::uint32_t& next = next_[block];
  const std::uint32_t end = foreseen_.first_use[block + 1];
  while (next < end && foreseen_.uses[next] < operation) ++next;
  const double now = operation < problem_.operations.size() ? problem_.operations[operation].time : problem_.period;
  const double then = next < end ? problem_.operations[foreseen_.uses[next]].time : problem_.period;
  const double value =
      std::pow(cost, weights_->cost) / (bytes_[block] * std::pow(std::max(kLeastNs, then - now), weights_->next));
  return next < end ? value : weights_->unused * value;
}

}  // namespace memopt::recompute
