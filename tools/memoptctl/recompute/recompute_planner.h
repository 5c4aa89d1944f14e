// Plans of one iteration by each strategy of `plan --recompute`, and what is known of limits.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/recompute/combined/combine.h"
#include "planner/recompute/model/graph.h"
#include "planner/recompute/model/plan.h"
#include "planner/recompute/online/dtr.h"
#include "planner/recompute/published/chen.h"
#include "planner/recompute/search/search.h"
#include "tools/memoptctl/common/interruption.h"
#include "tools/memoptctl/recompute/checkmate_process.h"
#include "tools/memoptctl/recompute/learned_strategy.h"
#include "tools/memoptctl/recompute/recompute_bound.h"
#include "tools/memoptctl/swap/swap_problem.h"

namespace memopt::tools {

// A strategy that takes longer itself ends with the best until then.
inline constexpr std::chrono::seconds kLongest{60};
// Columns of Checkmate's program, above which a minute is not enough for anything.
inline constexpr std::uint64_t kMostWhole = 60000, kMostRelaxed = 100000;

struct Strategy {
  std::string name;
  std::optional<recompute::Heuristic> heuristic = {};
  std::optional<recompute::Chen> chen = {};
  std::optional<recompute::Means> means = {};  // of our own; none: nothing is swapped
  bool checkmate = false, rounded = false;
  std::optional<Learned> learned = {};  // asked for by name only

  bool searches() const { return !heuristic && !chen && !checkmate && !learned; }  // our own
  // At an option's value.
  bool looks_at(const std::string& option) const;
};

// Throws std::invalid_argument for options that none of the strategies looks at.
void refuse_unseen(const SwapPlanOptions& options, const std::vector<Strategy>& strategies);

// What a plan takes: the footprint of its places, or its load where it has none.
std::uint64_t bytes_of(const recompute::Combined& plan);

// All but those that are asked for by name only. With swaps, our own is there three times: both together, and each
// alone.
std::vector<Strategy> all_strategies(bool swaps);
// Throws std::invalid_argument that names the option, and std::runtime_error where the build has it not.
Strategy strategy_of(const char* option, const std::string& name, bool swaps);

// Options and input must outlive it. Not thread-safe.
class Planner {
 public:
  Planner(const SwapPlanOptions& options, const SwapProblem& input);

  const recompute::Graph& graph() const { return graph_; }
  const LearnedPlanner& learned() const { return learned_; }

  // Of plans without swaps.
  RecomputeBound bound(std::uint64_t limit) const;
  // Null: there may be a plan.
  const char* why_there_is_none(std::uint64_t limit) const;

  // With places, if the options ask for them: of strategies that plan by load alone for the load whose layout is within
  // the limit. Also of strategies that swap nothing. Throws std::runtime_error where a plan does not hold.
  std::optional<recompute::Combined> plan(const Strategy& strategy, std::uint64_t limit) const;
  // Of the last plan by Checkmate.
  const recompute::CheckmateAnswer& checkmate_answer() const { return checkmate_; }

  struct Least {
    std::uint64_t limit = 0;  // within which it finds one
    recompute::Combined
        plan;  // may need less than a limit within which none was found: a search is not told how it ends
  };
  // About the least limit within which it finds a plan, above one within which it found none: by halves. Nothing: it
  // finds none within the peak load either.
  std::optional<Least> least_limit(const Strategy& strategy, std::uint64_t too_low) const;

 private:
  std::optional<recompute::Combined> plan(const Strategy& strategy, std::uint64_t limit, double seconds) const;
  std::optional<recompute::Combined> plan_by_load(const Strategy& strategy, std::uint64_t limit, double seconds) const;
  std::optional<recompute::Combined> plan_with_places(const Strategy& strategy, std::uint64_t limit,
                                                      double seconds) const;
  recompute::SearchLimits search_limits(double seconds) const;
  std::optional<recompute::Steps> published(const Strategy& strategy, std::uint64_t limit) const;

  const SwapPlanOptions& options_;
  const swap::Problem& problem_;
  const swap::Liveness& liveness_;
  const recompute::Graph graph_;
  mutable recompute::CheckmateAnswer checkmate_;
  mutable LearnedPlanner learned_;  // keeps what was learned
  const std::atomic<bool>& cancelled_ = end_at_interrupt();
};

// Percent of the iteration.
double part(double ns, const swap::Problem& problem);

}  // namespace memopt::tools
