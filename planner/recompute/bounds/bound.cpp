#include "planner/recompute/bounds/bound.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace memopt::recompute {
namespace {

using swap::Kind;

constexpr double kRoundedDown = 1 - 1e-12;  // sums are rounded

class Bound {
 public:
  Bound(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph, std::uint64_t budget)
      : problem_(problem),
        graph_(graph),
        budget_(budget),
        alive_(problem.blocks.size()),
        place_(problem.blocks.size()),
        touched_(problem.blocks.size(), kNone),
        bytes_(graph.launches.size()) {
    for (std::uint32_t b = 0; b < problem.blocks.size(); ++b) {
      alive_[b] = swap::instances_at_begin(problem, liveness, b);
      load_ += alive_[b] * problem.blocks[b].bytes;
    }
  }

  double run(const std::function<bool()>& ends) {
    if (load_ > budget_) return std::numeric_limits<double>::infinity();
    for (std::uint32_t i = 0; i < problem_.operations.size(); ++i) {
      const swap::Operation& operation = problem_.operations[i];
      const std::uint32_t b = operation.block;
      if (operation.kind == Kind::kMalloc) {
        ++alive_[b];
        load_ += problem_.blocks[b].bytes;
        if (graph_.can_be_made(b)) enter(b);
      } else if (operation.kind == Kind::kFree) {
        --alive_[b];
        load_ -= problem_.blocks[b].bytes;
        if (graph_.can_be_made(b)) leave(b);
      } else if (graph_.begins(i)) {
        if (load_ > budget_ && ends && ends()) break;
        if (load_ > budget_) least_ = std::max(least_, at(graph_.launch_at[i]));
      }
    }
    return least_ * kRoundedDown;
  }

 private:
  void enter(std::uint32_t b) {
    place_[b] = static_cast<std::uint32_t>(there_.size());
    there_.push_back(b);
  }
  void leave(std::uint32_t b) {
    there_[place_[b]] = there_.back();
    place_[there_.back()] = place_[b];
    there_.pop_back();
  }

  double at(std::uint32_t l) {
    const Launch& launch = graph_.launches[l];
    for (const std::vector<Use>* uses : {&launch.reads, &launch.writes}) {
      for (const Use& use : *uses) touched_[use.block] = l;
    }
    std::uint64_t excess = load_ - budget_, unused = 0;
    makers_.clear();
    for (const std::uint32_t b : there_) {
      const std::uint32_t maker = graph_.makers[b].front();
      if (touched_[b] == l || maker >= l) continue;
      const std::uint64_t bytes = problem_.blocks[b].bytes;
      if (graph_.last_use[b] < launch.end) {
        unused += bytes;
        continue;
      }
      if (bytes_[maker] == 0) makers_.push_back(maker);
      bytes_[maker] += bytes;
    }
    by_price_.clear();
    for (const std::uint32_t maker : makers_)
      by_price_.emplace_back(graph_.launches[maker].ns / static_cast<double>(bytes_[maker]), maker);
    std::sort(by_price_.begin(), by_price_.end());
    excess -= std::min(excess, unused);
    double ns = 0;
    for (const auto& [price, maker] : by_price_) {
      const std::uint64_t bytes = std::min(excess, bytes_[maker]);
      ns += price * static_cast<double>(bytes);
      excess -= bytes;
    }
    for (const std::uint32_t maker : makers_) bytes_[maker] = 0;
    return excess == 0 ? ns : std::numeric_limits<double>::infinity();
  }

  const swap::Problem& problem_;
  const Graph& graph_;
  const std::uint64_t budget_;
  std::vector<std::uint64_t> alive_;  // instances
  std::vector<std::uint32_t> there_;  // that can be made again, and live
  std::vector<std::uint32_t> place_;  // in there_
  std::vector<std::uint32_t> touched_;
  std::vector<std::uint64_t> bytes_;  // by first maker; 0 between launches
  std::vector<std::uint32_t> makers_;
  std::vector<std::pair<double, std::uint32_t>> by_price_;
  std::uint64_t load_ = 0;
  double least_ = 0;
};

}  // namespace

double least_added_ns(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph,
                      std::uint64_t budget, const std::function<bool()>& ends) {
  return Bound(problem, liveness, graph, budget).run(ends);
}

}  // namespace memopt::recompute
