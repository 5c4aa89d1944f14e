// Small programs of launches, as iterations.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "planner/recompute/model/graph.h"
#include "planner/recompute/model/plan.h"
#include "planner/swap/model/liveness.h"
#include "planner/swap/model/model.h"

namespace memopt::recompute::testing {

// Nothing yet, by load.
inline swap::Problem no_operations() {
  swap::Problem problem;
  problem.machine = {1, 1, 0, 0};
  problem.layout = false;
  problem.limit = 0;
  return problem;
}

class Program {
 public:
  std::uint32_t persistent(std::uint64_t bytes) {
    const std::uint32_t b = block(bytes);
    problem_.blocks[b].persistent = true;
    return b;
  }
  std::uint32_t allocate(std::uint64_t bytes) {
    const std::uint32_t b = block(bytes);
    add(swap::Kind::kMalloc, b);
    return b;
  }
  void launch(double ns, const std::vector<std::uint32_t>& reads, const std::vector<std::uint32_t>& writes) {
    bool continues = false;
    const auto access = [&](swap::Kind kind, std::uint32_t b) {
      add(kind, b);
      problem_.operations.back().continues = continues;
      continues = true;
    };
    for (const std::uint32_t b : reads) access(swap::Kind::kRead, b);
    for (const std::uint32_t b : writes) access(swap::Kind::kWrite, b);
    if (!continues) add(swap::Kind::kNothing, swap::kNoBlock);
    now_ += ns;
  }
  // A launch that makes a new block.
  std::uint32_t make(std::uint64_t bytes, double ns, const std::vector<std::uint32_t>& reads) {
    const std::uint32_t b = allocate(bytes);
    launch(ns, reads, {b});
    return b;
  }
  void release(std::uint32_t b) { add(swap::Kind::kFree, b); }

  std::uint32_t operations() const { return static_cast<std::uint32_t>(problem_.operations.size()); }
  swap::Problem& problem() {
    problem_.period = now_;
    return problem_;
  }

 private:
  std::uint32_t block(std::uint64_t bytes) {
    problem_.blocks.push_back({.id = problem_.blocks.size(), .bytes = bytes});
    return static_cast<std::uint32_t>(problem_.blocks.size() - 1);
  }
  void add(swap::Kind kind, std::uint32_t b) {
    problem_.operations.push_back({.kind = kind, .block = b, .time = now_});
  }

  swap::Problem problem_ = no_operations();
  double now_ = 0;
};

// With what follows from it.
struct Iteration {
  explicit Iteration(swap::Problem of)
      : problem(std::move(of)), liveness(swap::find_liveness(problem)), graph(make_graph(problem, liveness)) {}

  std::optional<Cost> cost(const std::optional<Steps>& steps) const {
    if (!steps) return std::nullopt;
    return find_cost(problem, liveness, graph, *steps);
  }

  swap::Problem problem;
  swap::Liveness liveness;
  Graph graph;
};

// Of a published strategy: it holds, within the limit, and is not below the best of all plans, which there is then.
inline void expect_above_optimum(const Cost& cost, std::uint64_t limit, const std::optional<double>& best,
                                 const std::string& what) {
  EXPECT_EQ(cost.fault, std::nullopt) << what;
  EXPECT_LE(cost.peak, limit) << what;
  ASSERT_TRUE(best) << what;
  EXPECT_GE(cost.added_ns, *best - 1e-6) << what;
}

// A launch makes x and y, and an empty block; both are dropped, and x is made again while y is of a later version, so
// that y goes besides. z is made in between.
struct MadeAgainBesides {
  MadeAgainBesides() : iteration(program()) {}

  std::uint32_t x = 0, y = 0, empty = 0, z = 0;
  std::uint32_t drop = 0, replay = 0;  // operations
  Iteration iteration;
  Steps steps = {{drop, Step::Kind::kDrop, x}, {replay, Step::Kind::kReplay, 0}};

 private:
  swap::Problem program() {
    Program program;
    const auto w = program.persistent(5);
    x = program.allocate(100);
    y = program.allocate(60);
    empty = program.allocate(0);
    program.launch(10, {w}, {x, y, empty});
    program.release(empty);
    program.launch(3, {y}, {y});
    drop = program.operations();
    z = program.make(30, 2, {y});
    replay = program.operations();
    program.launch(4, {x, y}, {z});
    for (const auto b : {x, y, z}) program.release(b);
    return program.problem();
  }
};

// Layers forward, and backward: each backward launch reads the layer's input and what comes from behind. Of 10 ns and
// 100 bytes each.
inline swap::Problem layers(int count) {
  Program program;
  std::vector<std::uint32_t> made = {program.make(100, 10, {})};
  for (int k = 1; k < count; ++k) made.push_back(program.make(100, 10, {made.back()}));
  std::uint32_t gradient = program.make(100, 10, {made.back()});
  for (int k = count; k-- > 0;) {
    const std::uint32_t next = program.make(100, 10, {made[static_cast<std::size_t>(k)], gradient});
    program.release(made[static_cast<std::size_t>(k)]);
    program.release(gradient);
    gradient = next;
  }
  program.release(gradient);
  return program.problem();
}

// Anything: several inputs and outputs, changes in place, what is read early and late, and what is there all the time
// and is written anew.
inline swap::Problem random_program(std::mt19937_64& random, int launches) {
  Program program;
  std::vector<std::uint32_t> alive;
  std::vector<std::uint32_t> weights = {program.persistent(random() % 50), program.persistent(random() % 50)};
  const std::uint32_t workspace = program.persistent(random() % 50);
  const auto some = [&](std::size_t most) {
    std::vector<std::uint32_t> chosen;
    for (std::size_t k = random() % (most + 1); k > 0 && !alive.empty(); --k) {
      const std::uint32_t b = alive[random() % alive.size()];
      if (std::find(chosen.begin(), chosen.end(), b) == chosen.end()) chosen.push_back(b);
    }
    return chosen;
  };
  for (int l = 0; l < launches; ++l) {
    const auto ns = static_cast<double>(1 + random() % 20);
    std::vector<std::uint32_t> reads = some(2);
    if (random() % 3 == 0) reads.push_back(weights[random() % 2]);
    const std::uint64_t kind = random() % 8;
    if (kind == 0 && !alive.empty()) {  // in place, one or two
      std::vector<std::uint32_t> changed = {alive[random() % alive.size()]};
      if (random() % 2 == 0 && alive[0] != changed[0]) changed.push_back(alive[0]);
      for (const std::uint32_t b : changed) {
        if (std::find(reads.begin(), reads.end(), b) == reads.end()) reads.push_back(b);
      }
      program.launch(ns, reads, changed);
    } else if (kind == 1 && l > launches / 2) {
      const std::uint32_t w = weights[random() % 2];
      if (std::find(reads.begin(), reads.end(), w) == reads.end()) reads.push_back(w);
      program.launch(ns, reads, {w});
    } else if (kind == 2 && l > launches / 3 && l + 1 < launches) {
      // Both by one launch, and the second one changed behind that, for a while later.
      const std::uint32_t first = program.allocate(10 * (1 + random() % 9)),
                          second = program.allocate(10 * (1 + random() % 9));
      program.launch(ns, reads, {first, second});
      program.launch(static_cast<double>(1 + random() % 20), {second}, {second});
      alive.insert(alive.end(), {first, second});
      ++l;
    } else {
      std::vector<std::uint32_t> made;
      for (std::uint64_t k = random() % 5 == 0 ? 2 : 1; k > 0; --k)
        made.push_back(program.allocate(10 * (1 + random() % 9)));
      std::vector<std::uint32_t> writes = made;
      if (random() % 3 == 0) writes.push_back(workspace);
      if (random() % 8 == 0) reads.push_back(workspace);
      program.launch(ns, reads, writes);
      alive.insert(alive.end(), made.begin(), made.end());
    }
    while (alive.size() > 5 || (!alive.empty() && random() % 6 == 0)) {
      const std::size_t k = random() % alive.size();
      program.release(alive[k]);
      alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(k));
    }
  }
  for (const std::uint32_t b : alive) program.release(b);
  return program.problem();
}

// Calls try_limit(iteration, limit, what) for so many random programs of 8 to 11 launches, each within several limits.
template <typename TryLimit>
void for_small_programs(int count, const TryLimit& try_limit) {
  std::mt19937_64 random(7);
  for (int k = 0; k < count; ++k) {
    const Iteration iteration(random_program(random, 8 + k % 4));
    for (const std::uint64_t percent : {50, 65, 80, 90}) {
      try_limit(iteration, iteration.liveness.peak * percent / 100, std::to_string(k) + ", " + std::to_string(percent));
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

}  // namespace memopt::recompute::testing
