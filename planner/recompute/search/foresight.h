// A policy that knows the iteration: like DTR's, but what counts is when a block is used next, not when it was last.
// With weights to search over.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/recompute/model/graph.h"
#include "planner/recompute/online/family.h"
#include "planner/recompute/online/memory.h"

namespace memopt::recompute {

// A block's value is weight * (c + ancestors * a + descendants * d)^cost / (m^bytes * u^next), where c is the time of
// its makers, a and d that of its evicted ancestors and descendants, m its bytes, and u the time to its next use; of
// what the program does not use any more it is `unused` times that, at the end of the iteration.
struct Weights {
  double ancestors = 1, descendants = 1;
  double cost = 1, bytes = 1, next = 1;
  double unused = 0.01;
  std::vector<float> blocks;  // logarithms, by block; empty: all 0
};

// What all runs over one iteration have in common.
struct Foreseen {
  Foreseen(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph);

  Family family;
  // By block: the operations that use it, ascending; side by side.
  std::vector<std::uint32_t> uses, first_use;
};

class Foresight : public Policy {
 public:
  Foresight(const swap::Problem& problem, const Foreseen& foreseen);

  // Before each run.
  void begin(const Weights& weights);

  double value(std::uint32_t block, double now, std::uint32_t operation) override;
  double at_least(std::uint32_t block, double now, std::uint32_t operation) override;
  void dropped(std::uint32_t block) override { away_.set(block, true); }
  void made(std::uint32_t block) override { away_.set(block, false); }
  void used(std::uint32_t /*block*/, double /*now*/) override {}

 private:
  double weighed(std::uint32_t block, double cost, std::uint32_t operation);

  const swap::Problem& problem_;
  const Foreseen& foreseen_;
  const Weights* weights_ = nullptr;
  std::vector<double> bytes_;  // to the power that they have
  Away away_;
  std::vector<std::uint32_t> next_;  // by block: into uses
};

}  // namespace memopt::recompute
