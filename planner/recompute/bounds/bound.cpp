#include "planner/recompute/bounds/bound.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace memopt::recompute {
namespace {

using swap::Kind;

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
    const std::uint64_t n = problem.operations.size();
    for (std::uint32_t b = 0; b < problem.blocks.size(); ++b) {
      alive_[b] = problem.blocks[b].persistent ? 1 : liveness.of[b].freed / n;
      load_ += alive_[b] * problem.blocks[b].bytes;
    }
  }

  double run() {
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
      } else if (graph_.launch_at[i] != kNone && graph_.launches[graph_.launch_at[i]].first == i) {
        if (load_ > budget_) least_ = std::max(least_, at(graph_.launch_at[i]));
      }
    }
    return least_;
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
    const auto cheaper = [&](std::uint32_t x, std::uint32_t y) {
      return graph_.launches[x].ns * static_cast<double>(bytes_[y]) <
             graph_.launches[y].ns * static_cast<double>(bytes_[x]);
    };
    std::sort(makers_.begin(), makers_.end(), cheaper);
    excess -= std::min(excess, unused);
    double ns = 0;
    for (const std::uint32_t maker : makers_) {
      const std::uint64_t bytes = std::min(excess, bytes_[maker]);
      ns += graph_.launches[maker].ns * static_cast<double>(bytes) / static_cast<double>(bytes_[maker]);
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
  std::uint64_t load_ = 0;
  double least_ = 0;
};

}  // namespace

double least_added_ns(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph,
                      std::uint64_t budget) {
  return Bound(problem, liveness, graph, budget).run();
}

}  // namespace memopt::recompute
