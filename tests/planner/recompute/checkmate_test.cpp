// Checkmate's program, held against the paper's own model, tried out in full, and against the best of all plans.
#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <map>
#include <random>

#include "planner/recompute/published/checkmate_program.h"
#include "tests/planner/layout/sanitized.h"
#include "tests/planner/recompute/optimum.h"
#include "tests/planner/recompute/programs.h"
#if MEMOPT_HAS_CHECKMATE
#include "planner/recompute/published/checkmate.h"
#endif

// The solvers' presolve loses some bytes of its own.
extern "C" [[gnu::visibility("default")]] const char* __lsan_default_suppressions() { return "leak:libCoinUtils\n"; }

namespace memopt::recompute {
namespace {

using layout::kSanitized;
using testing::Iteration;
using testing::layers;
using testing::optimum;
using testing::Program;
using testing::random_program;

constexpr CheckmateForm kFull{.hazards = false, .reduced = false};
constexpr std::size_t kAny = ~std::size_t{0};

// Whatever is kept, what the rounding makes of it holds.
TEST(CheckmateRounding, OfAnyProgramHasNoFault) {
  std::mt19937_64 random(3);
  std::uint64_t replays = 0, plans = 0;
  for (int k = 0; k < (kSanitized ? 60 : 1500); ++k) {
    const Iteration iteration(random_program(random, 6 + k % 30));
    for (const bool reduced : {false, true}) {
      const std::uint64_t limit = iteration.liveness.peak * (50 + random() % 50) / 100;
      const CheckmateProgram program(iteration.problem, iteration.liveness, iteration.graph, limit, kAny,
                                     {.hazards = false, .reduced = reduced});
      std::vector<double> kept(program.linear().cost.size());
      const double part = static_cast<double>(random() % 5) / 4;
      for (double& one : kept) one = std::uniform_real_distribution<double>(0, 1)(random) < part ? 1 : 0;
      const auto cost = iteration.cost(program.round(kept));
      if (!cost) continue;
      ASSERT_EQ(cost->fault, std::nullopt) << k << ", " << reduced;
      ++plans;
      replays += cost->replays;
    }
  }
  EXPECT_GT(plans, kSanitized ? 30u : 1000u);
  EXPECT_GT(replays, plans / 10);
}

// Also while it is built, which may take longer than there is time for.
TEST(CheckmateRounding, StopsBuildingWhenItIsTold) {
  const testing::Iteration iteration(layers(30));
  int asked = 0;
  const CheckmateProgram program(iteration.problem, iteration.liveness, iteration.graph, 1200, 1000000, {},
                                 [&] { return ++asked == 5; });
  EXPECT_TRUE(program.is_stopped());
  EXPECT_FALSE(program.is_too_large());
  EXPECT_EQ(asked, 5);
  EXPECT_EQ(program.stages(), 5u);
}

TEST(CheckmateRounding, TooManyColumns) {
  const Iteration iteration(layers(30));
  const CheckmateProgram program(iteration.problem, iteration.liveness, iteration.graph, iteration.liveness.peak / 2,
                                 100);
  EXPECT_TRUE(program.is_too_large());
}

#if MEMOPT_HAS_CHECKMATE

// Each launch makes one block of those before it, which the program frees behind its last use, or at the end.
struct Dag {
  struct Node {
    std::uint64_t bytes = 0;
    double ns = 0;
    unsigned reads = 0;     // a bit for each node
    std::size_t freed = 0;  // behind this node
  };
  std::vector<Node> nodes;

  swap::Problem problem() const {
    Program program;
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      std::vector<std::uint32_t> reads;
      for (std::uint32_t j = 0; j < k; ++j) {
        if ((nodes[k].reads >> j & 1) != 0) reads.push_back(j);
      }
      EXPECT_EQ(program.make(nodes[k].bytes, nodes[k].ns, reads), k);
      for (std::uint32_t j = 0; j <= k; ++j) {
        if (nodes[j].freed == k) program.release(j);
      }
    }
    return program.problem();
  }
};

Dag random_dag(std::mt19937_64& random, std::size_t count) {
  Dag dag;
  for (std::size_t k = 0; k < count; ++k) {
    Dag::Node node{10 * (1 + random() % 9), static_cast<double>(1 + random() % 20), 0, k};
    for (std::size_t j = 0; j < k; ++j) {
      // As back-propagation does, the second half reads what the first made.
      const bool mirrored = k >= count / 2 && j == count - 1 - k;
      if (j + 1 == k || mirrored || random() % 5 == 0) node.reads |= 1U << j;
    }
    dag.nodes.push_back(node);
  }
  for (std::size_t j = 0; j < count; ++j) {
    for (std::size_t k = j + 1; k < count; ++k) {
      if ((dag.nodes[k].reads >> j & 1) != 0) dag.nodes[j].freed = k;
    }
    if (random() % 5 == 0) dag.nodes[j].freed = count - 1;
  }
  return dag;
}

// The least of all R and S of the paper's model: sets of nodes as bits, stage by stage, and memory node by node. Of it
// alone: what the program frees is not kept over that.
class Exhaustion {
 public:
  Exhaustion(const Dag& dag, std::uint64_t budget) : nodes_(dag.nodes), budget_(budget) {}

  std::optional<double> run() const {
    std::map<unsigned, double> states = {{0U, 0.0}};  // what is kept into the stage
    for (unsigned t = 0; t < nodes_.size(); ++t) {
      std::map<unsigned, double> next;
      for (const auto& [kept, ns] : states) {
        for (unsigned made = 0; made < 1U << t; ++made) {
          if ((made & kept) == 0) add(t, kept, made | 1U << t, ns, next);
        }
      }
      states = std::move(next);
    }
    std::optional<double> least;
    for (const auto& [kept, ns] : states) least = std::min(least.value_or(ns), ns);
    return least;
  }

 private:
  void add(unsigned t, unsigned kept, unsigned made, double ns, std::map<unsigned, double>& next) const {
    const unsigned there = kept | made;
    for (unsigned k = 0; k <= t; ++k) {
      if ((made >> k & 1) == 0) continue;
      if ((nodes_[k].reads & ~there) != 0) return;
      if (k < t) ns += nodes_[k].ns;
    }
    unsigned freed = 0;
    for (unsigned k = 0; k <= t; ++k) freed |= nodes_[k].freed == t ? 1U << k : 0U;
    const unsigned keepable = there & ~freed;
    for (unsigned on = keepable;; on = (on - 1) & keepable) {
      if (peak(t, kept, made, on) <= budget_) {
        const auto [at, fresh] = next.emplace(on, ns);
        if (!fresh) at->second = std::min(at->second, ns);
      }
      if (on == 0) return;
    }
  }

  std::uint64_t peak(unsigned t, unsigned kept, unsigned made, unsigned on) const {
    unsigned memory = kept;
    std::uint64_t most = sum(memory);
    for (unsigned k = 0; k <= t; ++k) {
      if ((made >> k & 1) == 0) continue;
      memory |= 1U << k;
      most = std::max(most, sum(memory));
      for (unsigned i = 0; i <= k; ++i) {
        if (i != k && (nodes_[k].reads >> i & 1) == 0) continue;
        bool used = (on >> i & 1) != 0;
        for (unsigned j = k + 1; j <= t; ++j) used = used || ((made >> j & 1) != 0 && (nodes_[j].reads >> i & 1) != 0);
        if (!used) memory &= ~(1U << i);
      }
    }
    return most;
  }

  std::uint64_t sum(unsigned set) const {
    std::uint64_t bytes = 0;
    for (; set != 0; set &= set - 1) bytes += nodes_[static_cast<std::size_t>(std::countr_zero(set))].bytes;
    return bytes;
  }

  const std::vector<Dag::Node>& nodes_;
  const std::uint64_t budget_;
};

CheckmateResult by_checkmate(const Iteration& iteration, std::uint64_t limit, CheckmateForm form = {}) {
  return checkmate(iteration.problem, iteration.liveness, iteration.graph, limit, {}, form);
}

CheckmateResult by_rounding(const Iteration& iteration, std::uint64_t limit, CheckmateForm form = {}) {
  return checkmate_rounded(iteration.problem, iteration.liveness, iteration.graph, limit, {}, form);
}

TEST(Checkmate, NothingIsDroppedWhereThereIsRoom) {
  const Iteration iteration(layers(10));
  for (const auto& result : {by_checkmate(iteration, 1200), by_rounding(iteration, 1200)}) {
    ASSERT_TRUE(result.steps);
    EXPECT_TRUE(result.steps->empty());
  }
}

TEST(Checkmate, WithinTooLittleThereIsNone) {
  const Iteration iteration(layers(6));
  for (const std::uint64_t limit : {0, 100, 200, 299}) {
    for (const bool reduced : {false, true}) {
      const CheckmateForm form{.hazards = false, .reduced = reduced};
      EXPECT_FALSE(by_checkmate(iteration, limit, form).steps) << limit;
      EXPECT_TRUE(by_checkmate(iteration, limit, form).solved) << limit;
      EXPECT_FALSE(by_rounding(iteration, limit, form).steps) << limit;
    }
  }
  CheckmateLimits limits;
  limits.most_columns = 20;
  const auto large = checkmate(iteration.problem, iteration.liveness, iteration.graph, 400, limits, kFull);
  EXPECT_TRUE(large.too_large);
  EXPECT_FALSE(large.steps || large.solved);
}

// A chain needs nothing twice in a stage, and nothing out of order.
TEST(Checkmate, IsTheBestThereIsOfChains) {
  for (int n = 2; n <= (kSanitized ? 3 : 5); ++n) {
    const Iteration iteration(layers(n));
    for (std::uint64_t limit = 200; limit < iteration.liveness.peak; limit += 100) {
      const auto best = optimum(iteration.problem, iteration.liveness, limit);
      for (const bool reduced : {false, true}) {
        const CheckmateResult result = by_checkmate(iteration, limit, {.hazards = false, .reduced = reduced});
        EXPECT_TRUE(result.solved);
        ASSERT_EQ(result.steps.has_value(), best.has_value()) << n << ", " << limit << ", " << reduced;
        if (!best) continue;
        const auto cost = iteration.cost(result.steps);
        EXPECT_LE(cost->peak, limit);
        EXPECT_NEAR(cost->added_ns, *best, 1e-6) << n << ", " << limit << ", " << reduced;
      }
    }
  }
}

TEST(Checkmate, IsTheBestOfItsOwnModel) {
  std::mt19937_64 random(5);
  int plans = 0, replaying = 0, best = 0, reduced_best = 0;
  for (int k = 0; k < (kSanitized ? 4 : 30); ++k) {
    const Dag dag = random_dag(random, 6 + static_cast<std::size_t>(k % 2));
    const Iteration iteration(dag.problem());
    for (const std::uint64_t percent : {70, 80, 90}) {
      const std::uint64_t limit = iteration.liveness.peak * percent / 100;
      const std::string what = std::to_string(k) + ", " + std::to_string(percent);
      const auto expected = Exhaustion(dag, limit).run();
      const CheckmateResult result = by_checkmate(iteration, limit, kFull);
      EXPECT_TRUE(result.solved) << what;
      ASSERT_EQ(result.steps.has_value(), expected.has_value()) << what;
      const CheckmateResult hazards = by_checkmate(iteration, limit, {.hazards = true, .reduced = false});
      ASSERT_EQ(hazards.steps.has_value(), expected.has_value()) << what;
      const CheckmateResult reduced = by_checkmate(iteration, limit);
      if (!expected) {
        EXPECT_FALSE(reduced.steps) << what;
        continue;
      }
      ++plans;
      replaying += *expected > 0 ? 1 : 0;
      const double ns = iteration.cost(result.steps)->added_ns;
      // What a plan does not use is not replayed, so that it may add less than the model says.
      EXPECT_LE(ns, *expected + 1e-6) << what;
      EXPECT_NEAR(*result.bound_ns, *expected, 1e-3) << what;
      EXPECT_NEAR(*hazards.bound_ns, *expected, 1e-3) << what;
      const auto of_all = optimum(iteration.problem, iteration.liveness, limit);
      ASSERT_TRUE(of_all) << what;
      EXPECT_GE(ns, *of_all - 1e-6) << what;
      best += ns <= *of_all + 1e-6 ? 1 : 0;
      if (reduced.steps) {
        const double its = iteration.cost(reduced.steps)->added_ns;
        EXPECT_GE(its, *of_all - 1e-6) << what;
        reduced_best += its <= ns + 1e-6 ? 1 : 0;
      }
      const CheckmateResult rounded = by_rounding(iteration, limit, kFull);
      ASSERT_TRUE(rounded.bound_ns) << what;
      EXPECT_LE(*rounded.bound_ns, *result.bound_ns + 1e-3) << what;
      if (rounded.steps) {
        EXPECT_GE(iteration.cost(rounded.steps)->added_ns, ns - 1e-6) << what;
      }
    }
  }
  std::printf("%d plans, %d of which replay; %d are the best there is; %d of the reduced program as good\n", plans,
              replaying, best, reduced_best);
  EXPECT_GT(replaying, kSanitized ? 2 : 20);
  EXPECT_GE(best, plans * 3 / 4);
  EXPECT_GE(reduced_best, plans * 9 / 10);
}

// With several outputs, changes in place, and all else that programs do, the solver's plan is one.
TEST(Checkmate, PlansOfSmallProgramsAgainstAllThereAre) {
  int plans = 0, replaying = 0;
  const int programs = kSanitized ? 3 : 12;
  testing::for_small_programs(programs, [&](const Iteration& iteration, std::uint64_t limit, const std::string& of) {
    const auto best = optimum(iteration.problem, iteration.liveness, limit);
    for (const CheckmateForm form : {kFull, CheckmateForm{}}) {
      const std::string what = of + (form.reduced ? "" : ", full");
      const CheckmateResult result = by_checkmate(iteration, limit, form);
      EXPECT_TRUE(result.solved) << what;
      // An optimum of the program fits.
      EXPECT_EQ(result.steps.has_value(), result.bound_ns.has_value()) << what;
      for (const CheckmateResult& one : {result, by_rounding(iteration, limit, form)}) {
        const auto cost = iteration.cost(one.steps);
        if (!cost) continue;
        testing::expect_above_optimum(*cost, limit, best, what);
        ASSERT_FALSE(HasFailure());
        ++plans;
        replaying += cost->replays > 0 ? 1 : 0;
      }
    }
  });
  std::printf("%d plans, %d of which replay\n", plans, replaying);
  EXPECT_GT(replaying, kSanitized ? 0 : 10);
}

TEST(Checkmate, EndsWhenItIsTold) {
  const Iteration iteration(layers(kSanitized ? 30 : 60));
  for (const auto plan : {checkmate, checkmate_rounded}) {
    // A solver that runs, and does not stop to ask: how long it takes is the machine's.
    CheckmateLimits limits;
    int asked = 0;
    limits.ends = [&asked] { return ++asked > 3; };
    const CheckmateResult result =
        plan(iteration.problem, iteration.liveness, iteration.graph, iteration.liveness.peak / 4, limits, {});
    EXPECT_FALSE(result.too_large);
    // A plan there is, and the best one it did not find in that time.
    EXPECT_FALSE(result.solved);
    EXPECT_GT(asked, 3);
    EXPECT_LT(asked, 200);  // until it has come to its end
  }
}

#else

TEST(Checkmate, NeedsItsSolvers) { GTEST_SKIP() << "CBC or CLP was not there when this was configured"; }

#endif

}  // namespace
}  // namespace memopt::recompute
