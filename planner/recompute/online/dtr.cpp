#include "planner/recompute/online/dtr.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "planner/recompute/online/family.h"

namespace memopt::recompute {
namespace {

constexpr double kLeastNs = 1;  // of a time that others are divided by

class Dtr : public Policy {
 public:
  Dtr(const swap::Problem& problem, const Graph& graph, Heuristic heuristic)
      : problem_(problem),
        heuristic_(heuristic),
        family_(graph),
        away_(family_),
        used_(problem.blocks.size()),
        class_(problem.blocks.size()),
        leaf_(problem.blocks.size()),
        class_ns_(problem.blocks.size()) {
    std::iota(class_.begin(), class_.end(), std::uint32_t{0});
    std::iota(leaf_.begin(), leaf_.end(), std::uint32_t{0});
  }

  double value(std::uint32_t block, double now, std::uint32_t /*operation*/) override {
    const double m = static_cast<double>(problem_.blocks[block].bytes);
    const double s = std::max(kLeastNs, now - used_[block]);
    switch (heuristic_) {
      case Heuristic::kDtr:
        return (cost(block) + away_.ancestors_ns(block) + away_.descendants_ns(block)) / (m * s);
      case Heuristic::kDtrEq:
        return (cost(block) + neighbouring_classes(block)) / (m * s);
      case Heuristic::kDtrLocal:
        return cost(block) / (m * s);
      case Heuristic::kLru:
        return 1 / s;
      case Heuristic::kSize:
        return 1 / m;
      case Heuristic::kMsps:
        return (cost(block) + away_.ancestors_ns(block)) / m;
    }
    return 0;
  }

  double at_least(std::uint32_t block, double now, std::uint32_t operation) override {
    const double m = static_cast<double>(problem_.blocks[block].bytes);
    switch (heuristic_) {
      case Heuristic::kDtr:
      case Heuristic::kDtrEq:
        return cost(block) / (m * std::max(kLeastNs, now - used_[block]));
      case Heuristic::kMsps:
        return cost(block) / m;
      default:
        return value(block, now, operation);
    }
  }

  void dropped(std::uint32_t block) override {
    away_.set(block, true);
    if (heuristic_ != Heuristic::kDtrEq) return;
    class_ns_[root(block)] += cost(block);
    for (const auto* neighbours : {&family_.parents[block], &family_.children[block]}) {
      for (const std::uint32_t other : *neighbours) {
        if (away_.is(other)) unite(block, other);
      }
    }
  }

  void made(std::uint32_t block) override {
    if (!away_.set(block, false) || heuristic_ != Heuristic::kDtrEq) return;
    // A class is not split, as the paper has it: the block's cost leaves it, and the block is on its own again.
    double& ns = class_ns_[root(block)];
    ns = std::max(0.0, ns - cost(block));  // sums are rounded
    class_.push_back(static_cast<std::uint32_t>(class_.size()));
    class_ns_.push_back(0);
    leaf_[block] = class_.back();
  }

  void used(std::uint32_t block, double now) override { used_[block] = now; }

 private:
  double cost(std::uint32_t block) const { return family_.make_ns[block]; }

  std::uint32_t root(std::uint32_t block) {
    std::uint32_t at = leaf_[block];
    while (class_[at] != at) at = class_[at] = class_[class_[at]];
    return at;
  }
  void unite(std::uint32_t a, std::uint32_t b) {
    const std::uint32_t x = root(a), y = root(b);
    if (x == y) return;
    class_[y] = x;
    class_ns_[x] += class_ns_[y];
  }
  double neighbouring_classes(std::uint32_t block) {
    roots_.clear();
    double sum = 0;
    for (const auto* neighbours : {&family_.parents[block], &family_.children[block]}) {
      for (const std::uint32_t other : *neighbours) {
        if (!away_.is(other)) continue;
        const std::uint32_t one = root(other);
        if (std::find(roots_.begin(), roots_.end(), one) != roots_.end()) continue;
        roots_.push_back(one);
        sum += class_ns_[one];
      }
    }
    return sum;
  }

  const swap::Problem& problem_;
  const Heuristic heuristic_;
  const Family family_;
  Away away_;
  std::vector<double> used_;
  std::vector<std::uint32_t> roots_;
  // Classes of what is away: a forest, with a leaf for each block. One that came back has a new one.
  std::vector<std::uint32_t> class_, leaf_;
  std::vector<double> class_ns_;
};

}  // namespace

std::unique_ptr<Policy> make_dtr(const swap::Problem& problem, const Graph& graph, Heuristic heuristic) {
  return std::make_unique<Dtr>(problem, graph, heuristic);
}

}  // namespace memopt::recompute
