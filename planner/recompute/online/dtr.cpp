#include "planner/recompute/online/dtr.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace memopt::recompute {
namespace {

constexpr double kLeastNs = 1;  // of a time that others are divided by

class Dtr : public Policy {
 public:
  Dtr(const swap::Problem& problem, const Graph& graph, Heuristic heuristic)
      : problem_(problem),
        heuristic_(heuristic),
        family_(find_family(graph)),
        cost_(problem.blocks.size()),
        away_(problem.blocks.size()),
        used_(problem.blocks.size()),
        seen_(problem.blocks.size()),
        class_(problem.blocks.size()),
        class_ns_(problem.blocks.size()) {
    std::iota(class_.begin(), class_.end(), std::uint32_t{0});
    for (std::uint32_t b = 0; b < cost_.size(); ++b) cost_[b] = make_ns(graph, b);
  }

  double value(std::uint32_t block, double now, std::uint32_t /*operation*/) override {
    const double m = static_cast<double>(problem_.blocks[block].bytes);
    const double s = std::max(kLeastNs, now - used_[block]);
    switch (heuristic_) {
      case Heuristic::kDtr:
        return (cost(block) + walk(block, family_.parents) + walk(block, family_.children)) / (m * s);
      case Heuristic::kDtrEq:
        return (cost(block) + neighbouring_classes(block)) / (m * s);
      case Heuristic::kDtrLocal:
        return cost(block) / (m * s);
      case Heuristic::kLru:
        return 1 / s;
      case Heuristic::kSize:
        return 1 / m;
      case Heuristic::kMsps:
        return (cost(block) + walk(block, family_.parents)) / m;
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
    away_[block] = 1;
    if (heuristic_ != Heuristic::kDtrEq) return;
    class_ns_[root(block)] += cost(block);
    for (const auto* neighbours : {&family_.parents[block], &family_.children[block]}) {
      for (const std::uint32_t other : *neighbours) {
        if (away_[other] != 0) unite(block, other);
      }
    }
  }

  void made(std::uint32_t block) override {
    if (std::exchange(away_[block], 0) == 0 || heuristic_ != Heuristic::kDtrEq) return;
    // A class is not split, as the paper has it: the block's cost leaves it, and the block is on its own again.
    double& ns = class_ns_[root(block)];
    ns = std::max(0.0, ns - cost(block));  // sums are rounded
    class_.push_back(static_cast<std::uint32_t>(class_.size()));
    class_ns_.push_back(0);
    own_.resize(std::max<std::size_t>(own_.size(), problem_.blocks.size()), kNone);
    own_[block] = class_.back();
  }

  void used(std::uint32_t block, double now) override { used_[block] = now; }

 private:
  double cost(std::uint32_t block) const { return cost_[block]; }

  // Of what is away and reached through nothing that is there.
  double walk(std::uint32_t block, const std::vector<std::vector<std::uint32_t>>& next) {
    ++walks_;
    double sum = 0;
    stack_.assign(1, block);
    while (!stack_.empty()) {
      const std::uint32_t one = stack_.back();
      stack_.pop_back();
      for (const std::uint32_t other : next[one]) {
        if (away_[other] == 0 || seen_[other] == walks_) continue;
        seen_[other] = walks_;
        sum += cost(other);
        stack_.push_back(other);
      }
    }
    return sum;
  }

  std::uint32_t root(std::uint32_t block) {
    std::uint32_t at = block < own_.size() && own_[block] != kNone ? own_[block] : block;
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
        if (away_[other] == 0) continue;
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
  std::vector<double> cost_;
  std::vector<std::uint8_t> away_;  // dropped, or freed
  std::vector<double> used_;
  std::uint64_t walks_ = 0;
  std::vector<std::uint64_t> seen_;  // in the walk of this number
  std::vector<std::uint32_t> stack_, roots_;
  // Classes of what is away: a forest. A block that came back has a new leaf.
  std::vector<std::uint32_t> class_, own_;
  std::vector<double> class_ns_;
};

}  // namespace

Family find_family(const Graph& graph) {
  Family family;
  const std::size_t blocks = graph.makers.size();
  family.parents.resize(blocks);
  family.children.resize(blocks);
  for (std::uint32_t b = 0; b < blocks; ++b) {
    std::vector<std::uint32_t>& parents = family.parents[b];
    for (const std::uint32_t l : graph.makers[b]) {
      for (const Use& read : graph.launches[l].reads) {
        if (read.block == b || !graph.can_be_made(read.block)) continue;
        if (std::find(parents.begin(), parents.end(), read.block) == parents.end()) parents.push_back(read.block);
      }
    }
    for (const std::uint32_t parent : parents) family.children[parent].push_back(b);
  }
  return family;
}

double make_ns(const Graph& graph, std::uint32_t block) {
  double ns = 0;
  for (const std::uint32_t l : graph.makers[block]) ns += graph.launches[l].ns;
  return ns;
}

std::unique_ptr<Policy> make_dtr(const swap::Problem& problem, const Graph& graph, Heuristic heuristic) {
  return std::make_unique<Dtr>(problem, graph, heuristic);
}

}  // namespace memopt::recompute
