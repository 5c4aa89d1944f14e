#include "planner/layout/solve.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "planner/layout/bounds.h"
#include "planner/layout/branch_and_bound.h"
#include "planner/layout/conclusion.h"
#include "planner/layout/ejection_search.h"
#include "planner/layout/hole_fitting.h"
#include "planner/layout/portfolio.h"
#include "planner/layout/priorities.h"
#include "planner/layout/skyline.h"
#include "planner/layout/smart_pool.h"
#include "planner/layout/squeaky_wheel.h"
#include "planner/layout/stacked.h"
#include "planner/layout/timeline.h"

namespace memopt::layout {
namespace {

constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

// They fail on different problems. The first is the first plan.
constexpr Weights kWeights[] = {{1, 0.5}, {0.5, 1}, {1, 1}, {0, 1}, {1, 0}, {1, 0.25}};
constexpr std::size_t kWheels = 8;

// Above that many buffers a step of it takes too long.
constexpr std::size_t kMostForEjection = 10'000;

// Of a wheel's first turn, in runs over all buffers; each turn is longer by half.
constexpr std::uint64_t kFirstTurn = 4;
constexpr std::size_t kFirstWheels = 2;  // that turn at first; one more each time
constexpr std::uint64_t kMostStepsPerTurn = 4'000'000;

// Above that many buffers holes take longer than lines, and wait for their turn.
constexpr std::size_t kMostForHolesAtOnce = 2000;
constexpr std::uint64_t kPlacedPerStep = 6;

// Above that many buffers the exact search finds nothing that a wheel does not find sooner.
constexpr std::size_t kMostForExactSearch = 4000;
constexpr std::uint64_t kFirstNodes = 100'000;
constexpr std::uint64_t kStepsOfANode = 3;
constexpr std::size_t kSmall = 600;  // up to here it goes first; above, its nodes are dear and it gets fewer

class Solving {
 public:
  Solving(const Problem& problem, const Limits& limits, const OnBetter& on_better, bool exact)
      : problem_(problem),
        timeline_(problem),
        portfolio_(limits, lower_bound_of(problem, timeline_), problem.capacity, on_better),
        seed_(limits.seed),
        cancelled_(limits.cancelled),
        may_be_exact_(exact),
        skylines_(portfolio_.threads()) {}

  Outcome run() {
    if (problem_.capacity && portfolio_.best().lower_bound > *problem_.capacity) return portfolio_.outcome();
    keys();
    // Not a result to be proud of, but there is one, when not even one skyline could be finished.
    if (portfolio_.best().solution.offsets.empty()) portfolio_.offer(stacked(problem_), "stacked");
    improve();
    return portfolio_.outcome();
  }

 private:
  // The first of a thread makes its own.
  Skyline& skyline(unsigned thread) {
    if (!skylines_[thread]) skylines_[thread] = std::make_unique<Skyline>(problem_, timeline_);
    return *skylines_[thread];
  }

  void keys() {
    std::vector<Portfolio::Job> jobs;
    const auto add = [&](std::string_view name, auto keys) {
      jobs.push_back([this, name, keys](Portfolio::Desk& desk) {
        std::vector<std::uint32_t> priorities;
        rank(problem_, timeline_, keys(), priorities);
        if (!desk.allowance.spend(0)) return;  // of many buffers this took long, and making a skyline does
        Solution solution;
        if (skyline(desk.thread).run(priorities, kNever, desk.allowance, solution)) {
          desk.found(std::move(solution), name);
        }
      });
    };
    for (const Weights& weights : kWeights) {
      add("skyline", [this, weights] { return keys_of(problem_, timeline_, weights); });
    }
    add("offset-lines", [this] { return lifetimes_of(problem_); });
    if (problem_.buffers.size() <= kMostForHolesAtOnce) {
      for (auto& job : smart_pool()) jobs.push_back(std::move(job));
    }
    // As many as the work allows, but one: there is always a plan, except where time is up.
    const std::uint64_t affordable = portfolio_.work_left() / Skyline::steps_of_a_run(problem_);
    jobs.resize(std::clamp<std::uint64_t>(affordable, 1, jobs.size()));
    portfolio_.round(jobs, Portfolio::kUnlimited);
  }

  // The published ones, so that the result is never worse. Quadratic, but with a small constant.
  std::vector<Portfolio::Job> smart_pool() {
    std::vector<Portfolio::Job> jobs;
    const auto add = [&](Fit fit, std::string_view name) {
      jobs.push_back([this, fit, name](Portfolio::Desk& desk) {
        Solution solution;
        solution.offsets = smart_pool_offsets(
            problem_, fit, {}, [&](std::size_t placed) { return !desk.allowance.spend(1 + placed / kPlacedPerStep); });
        solution.height = height_of(problem_, solution.offsets);
        if (!solution.offsets.empty()) desk.found(std::move(solution), name);
      });
    };
    add(Fit::kBest, "smartpool-best-fit");
    add(Fit::kFirst, "smartpool-first-fit");
    return jobs;
  }

  // Of both: what is placed is asked for every kPlacementsBetweenStops buffers.
  std::uint64_t steps_of_smart_pool() const {
    const std::uint64_t stops = problem_.buffers.size() / kPlacementsBetweenStops;
    return 2 * stops * (1 + problem_.buffers.size() / (2 * kPlacedPerStep) + kPlacementsBetweenStops);
  }

  void make_wheels() {
    wheels_.reserve(kWheels);
    for (std::size_t i = 0; i < kWheels; ++i) {
      wheels_.emplace_back(problem_, timeline_, kWeights[i % std::size(kWeights)], seed_ * kWheels + i);
      wheel_jobs_.push_back([this, &wheel = wheels_.back()](Portfolio::Desk& desk) {
        wheel.turn(skyline(desk.thread), desk.best, portfolio_.goal(), desk.allowance,
                   [&](Solution solution) { desk.found(std::move(solution), "squeaky-wheel"); });
      });
    }
  }

  // All but the last go on from the best there is. That one goes its own way, from offset lines.
  void make_ejections() {
    if (problem_.buffers.size() > kMostForEjection) return;
    for (std::size_t i = 0; i < std::size(kEjectionRules); ++i) {
      ejections_.push_back(EjectionSearch::make(problem_, timeline_, kEjectionRules[i], seed_ * kWheels + i));
      ejection_jobs_.push_back([this, i](Portfolio::Desk& desk) {
        const bool alone = i + 1 == std::size(kEjectionRules);
        if (alone && own_way_.offsets.empty()) {
          std::vector<std::uint32_t> priorities;
          rank(problem_, timeline_, lifetimes_of(problem_), priorities);
          if (!skyline(desk.thread).run(priorities, kNever, desk.allowance, own_way_)) return;
        }
        ejections_[i]->turn(alone ? Solution(own_way_) : portfolio_.best().solution, portfolio_.goal(), desk.allowance,
                            [&](Solution solution) {
                              if (alone) own_way_ = solution;
                              desk.found(std::move(solution), "ejection-search");
                            });
      });
    }
  }

  // Exact search and wheels in turn, each turn longer than the last.
  void improve() {
    make_wheels();
    make_ejections();
    std::uint64_t runs = kFirstTurn;
    const std::uint64_t first_nodes = kFirstNodes * kSmall / std::max(kSmall, problem_.buffers.size());
    std::uint64_t nodes = first_nodes;
    for (std::size_t turning = kFirstWheels; !portfolio_.over(); ++turning) {
      const bool small = problem_.buffers.size() <= kSmall;
      if (turning == kFirstWheels + 1 && problem_.buffers.size() > kMostForHolesAtOnce &&
          portfolio_.work_left() >= steps_of_smart_pool()) {
        portfolio_.round(smart_pool(), Portfolio::kUnlimited);
      }
      if (may_be_exact_ && (small || (turning > kFirstWheels && problem_.buffers.size() <= kMostForExactSearch))) {
        search_exactly(nodes);
        nodes *= 2;
      }
      if (portfolio_.over()) return;
      // As long as the exact search had, about: a node is worth some steps. Whether a capacity suffices is more its
      // question than theirs.
      const std::uint64_t share = small ? nodes * kStepsOfANode / kWheels / (problem_.capacity ? 8 : 2) : 0;
      const std::uint64_t steps =
          std::min(std::max(runs * Skyline::steps_of_a_run(problem_), share), kMostStepsPerTurn);
      std::vector<Portfolio::Job> jobs = wheel_jobs_;
      jobs.resize(std::clamp<std::uint64_t>(portfolio_.work_left() / steps, 1,
                                            small ? jobs.size() : std::min(turning, jobs.size())));
      portfolio_.round(jobs, steps);
      // Where SmartPool comes later, it comes before these.
      const bool its_turn = problem_.buffers.size() <= kMostForHolesAtOnce || turning > kFirstWheels;
      if (its_turn && !ejection_jobs_.empty() && !portfolio_.over()) portfolio_.round(ejection_jobs_, 4 * steps);
      if (steps < kMostStepsPerTurn) runs += runs / 2;
    }
  }

  void search_exactly(std::uint64_t nodes) {
    if (!exact_) exact_ = std::make_unique<LeastFit>(problem_, seed_);
    if (!exact_->possible()) return;
    Limits limits;
    limits.time = portfolio_.watch().left();
    limits.work = std::min(nodes, portfolio_.work_left());
    limits.cancelled = cancelled_;
    limits.threads = portfolio_.threads();
    const std::uint64_t before = exact_->spent();
    Outcome outcome =
        problem_.capacity ? exact_->fit(*problem_.capacity, limits) : exact_->go_on(portfolio_.height(), limits);
    portfolio_.spend(exact_->spent() - before);
    portfolio_.raise_lower_bound(outcome.lower_bound);
    if (outcome.found(problem_.buffers.size())) portfolio_.offer(std::move(outcome.solution), outcome.solver);
  }

  const Problem& problem_;
  Timeline timeline_;
  Portfolio portfolio_;
  std::uint64_t seed_;
  const std::atomic<bool>* cancelled_;
  bool may_be_exact_;
  std::vector<std::unique_ptr<Skyline>> skylines_;  // of each thread
  std::vector<SqueakyWheel> wheels_;
  std::unique_ptr<LeastFit> exact_;
  std::vector<Portfolio::Job> wheel_jobs_;
  std::vector<std::unique_ptr<EjectionSearch>> ejections_;
  Solution own_way_;  // of the last of these
  std::vector<Portfolio::Job> ejection_jobs_;
};

}  // namespace

Outcome solve(const Problem& problem, const Limits& limits, const OnBetter& on_better) {
  return Solving(problem, limits, on_better, true).run();
}

Outcome solve_by_heuristics(const Problem& problem, const Limits& limits, const OnBetter& on_better) {
  return Solving(problem, limits, on_better, false).run();
}

}  // namespace memopt::layout
