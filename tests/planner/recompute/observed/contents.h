// What is in the blocks while an iteration goes on: whether launches that are replayed find what they found.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "planner/recompute/model/graph.h"
#include "planner/recompute/model/plan.h"
#include "planner/swap/model/model.h"

namespace memopt::recompute::testing {

// What a launch does in truth, named or not.
struct Truth {
  std::vector<std::uint32_t> reads, writes;  // all of a block
  bool varies = false;                       // something else each time: what comes from the host, or is random
};

class Contents {
 public:
  // `truths`: by launch of the graph, each in order.
  Contents(const swap::Problem& problem, const Graph& graph, const std::vector<std::vector<Truth>>& truths)
      : problem_(problem), graph_(graph), truths_(truths) {}

  // What each launch finds in its place, by launch and truth.
  std::vector<std::vector<std::uint64_t>> found(const Steps& steps) {
    contents_.assign(problem_.blocks.size(), 0);
    version_.assign(problem_.blocks.size(), 0);
    there_.assign(problem_.blocks.size(), true);
    runs_ = 0;
    std::vector<std::vector<std::uint64_t>> result(graph_.launches.size());
    std::size_t step = 0;
    for (std::uint32_t i = 0; i <= problem_.operations.size(); ++i) {
      for (; step < steps.size() && steps[step].before == i; ++step) {
        if (steps[step].kind == Step::Kind::kDrop) {
          lose(steps[step].what);
        } else {
          replay(steps[step].what);
        }
      }
      if (i == problem_.operations.size()) break;
      const swap::Operation& operation = problem_.operations[i];
      if (operation.kind == swap::Kind::kFree) lose(operation.block);
      if (operation.kind == swap::Kind::kMalloc) there_[operation.block] = true;
      if (!graph_.begins(i)) continue;
      const std::uint32_t l = graph_.launch_at[i];
      for (const Truth& truth : truths_[l]) result[l].push_back(run(l, truth, {}, 0));
      for (const Use& write : graph_.launches[l].writes) version_[write.block] = write.version;
    }
    return result;
  }

 private:
  static std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
    a = (a ^ (b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2))) * 0xbf58476d1ce4e5b9u;
    return a ^ (a >> 29);
  }

  void lose(std::uint32_t block) {
    there_[block] = false;
    contents_[block] = mixed(17, ++runs_);
  }

  // `besides`: what of it is written elsewhere. `again`: 0 in its place, else another number each time.
  std::uint64_t run(std::uint32_t l, const Truth& truth, const std::vector<std::uint32_t>& besides,
                    std::uint64_t again) {
    const auto elsewhere = [&](std::uint32_t block) {
      return std::find(besides.begin(), besides.end(), block) != besides.end();
    };
    std::uint64_t found = l;
    for (const std::uint32_t b : truth.reads) found = mixed(found, elsewhere(b) ? beside_[b] : contents_[b]);
    std::uint64_t made = found;
    if (truth.varies) made = mixed(made, again);
    for (const std::uint32_t b : truth.writes) (elsewhere(b) ? beside_[b] : contents_[b]) = mixed(made, b + 1);
    return found;
  }

  void replay(std::uint32_t l) {
    std::vector<std::uint32_t> besides;
    beside_.clear();
    for (const Use& write : graph_.launches[l].writes) {
      const std::uint32_t b = write.block;
      switch (outcome(write, graph_.can_be_made(b), there_[b], version_[b])) {
        case Outcome::kMade:
          there_[b] = true;
          version_[b] = write.version;
          break;
        case Outcome::kChanged:
          version_[b] = write.version;
          break;
        case Outcome::kThere:
          break;
        case Outcome::kBesides:
          besides.push_back(b);
          beside_[b] = mixed(23, ++runs_);
          break;
      }
    }
    for (const Truth& truth : truths_[l]) run(l, truth, besides, ++runs_);
  }

  const swap::Problem& problem_;
  const Graph& graph_;
  const std::vector<std::vector<Truth>>& truths_;
  std::vector<std::uint64_t> contents_;
  std::vector<std::uint32_t> version_;
  std::vector<bool> there_;
  std::map<std::uint32_t, std::uint64_t> beside_;
  std::uint64_t runs_ = 0;
};

}  // namespace memopt::recompute::testing
