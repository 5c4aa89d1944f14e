#include "planner/recompute/online/family.h"

#include <algorithm>
#include <utility>

namespace memopt::recompute {

Family::Family(const Graph& graph)
    : parents(graph.makers.size()), children(graph.makers.size()), make_ns(graph.makers.size()) {
  for (std::uint32_t b = 0; b < graph.makers.size(); ++b) {
    make_ns[b] = graph.make_ns(b);
    for (const std::uint32_t l : graph.makers[b]) {
      for (const Use& read : graph.launches[l].reads) {
        if (read.block == b || !graph.can_be_made(read.block)) continue;
        if (std::find(parents[b].begin(), parents[b].end(), read.block) == parents[b].end())
          parents[b].push_back(read.block);
      }
    }
    for (const std::uint32_t parent : parents[b]) children[parent].push_back(b);
  }
}

Away::Away(const Family& family) : family_(family), away_(family.make_ns.size()), seen_(family.make_ns.size()) {}

void Away::clear() { std::fill(away_.begin(), away_.end(), std::uint8_t{0}); }

bool Away::set(std::uint32_t block, bool away) {
  const std::uint8_t value = away ? 1 : 0;
  return std::exchange(away_[block], value) != value;
}

double Away::walk(std::uint32_t block, const std::vector<std::vector<std::uint32_t>>& next) {
  ++walks_;
  double sum = 0;
  stack_.assign(1, block);
  while (!stack_.empty()) {
    const std::uint32_t one = stack_.back();
    stack_.pop_back();
    for (const std::uint32_t other : next[one]) {
      if (away_[other] == 0 || seen_[other] == walks_) continue;
      seen_[other] = walks_;
      sum += family_.make_ns[other];
      stack_.push_back(other);
    }
  }
  return sum;
}

}  // namespace memopt::recompute
