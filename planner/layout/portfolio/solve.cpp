#include "planner/layout/portfolio/solve.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "planner/layout/exact/branch_and_bound.h"
#include "planner/layout/local_search/ejection_search.h"
#include "planner/layout/portfolio/portfolio.h"
#include "planner/layout/portfolio/warm_start.h"
#include "planner/layout/problem/bounds.h"
#include "planner/layout/problem/large_buffers.h"
#include "planner/layout/problem/repeats.h"
#include "planner/layout/problem/sections.h"
#include "planner/layout/published/greedy_fit.h"
#include "planner/layout/published/online_best_fit.h"
#include "planner/layout/published/smart_pool.h"
#include "planner/layout/skyline/priorities.h"
#include "planner/layout/skyline/skyline.h"
#include "planner/layout/skyline/squeaky_wheel.h"

namespace memopt::layout {
namespace {

constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

// They fail on different problems. The first makes the first plan.
constexpr Weights kWeights[] = {{1, 0.5}, {0.5, 1}, {1, 1}, {0, 1}, {1, 0}, {1, 0.25}};
constexpr std::size_t kWheels = 8;

// With more buffers a step of it takes too long.
constexpr std::size_t kMostForEjection = 10'000;

// What a wheel may spend in the first round, in runs over all buffers; half as much again in each further round.
constexpr std::uint64_t kFirstRuns = 4;
constexpr std::size_t kFirstWheels = 2;  // in the first round; one more in each further round
constexpr std::uint64_t kMostStepsPerRound = 4'000'000;

// With more buffers SmartPool takes longer than skylines, and is run later.
constexpr std::size_t kMostForSmartPoolFirst = 2000;

// With more buffers exact search finds nothing that a wheel does not find sooner.
constexpr std::size_t kMostForExactSearch = 4000;
constexpr std::uint64_t kFirstNodes = 100'000;
constexpr std::uint64_t kStepsOfANode = 3;
constexpr std::size_t kSmall =
    600;  // buffers; up to here it runs first; above, its nodes are expensive and it gets fewer

// Of the time and of the work: for one repetition of what repeats; then, of the rest, for what is left beside it.
constexpr int kPartForRepeat = 2;

// With fewer buffers all are large. Of the load: what small ones may need. Of the time and of the work: for the large
// ones alone, and no more than so many runs over them, behind which little is found.
constexpr std::size_t kFewestForLarge = 500;
constexpr double kSmallOnes = 0.05;
constexpr int kPartForLarge = 2;
constexpr std::uint64_t kRunsOfLarge = 2000;

class Solving {
 public:
  Solving(const Problem& problem, const Limits& limits, const OnBetter& on_better, bool exact)
      : problem_(problem),
        sections_(problem),
        portfolio_(limits, lower_bound_of(problem, sections_), problem.capacity, on_better),
        seed_(limits.seed),
        cancelled_(limits.cancelled),
        may_be_exact_(exact),
        skylines_(portfolio_.threads()) {}

  Outcome run() {
    if (problem_.capacity && portfolio_.incumbent().lower_bound > *problem_.capacity) return portfolio_.outcome();
    solve_repeat();
    run_heuristics();
    // Where not even one skyline could be finished, if need be somewhat later than asked: it takes a fraction of that.
    if (portfolio_.incumbent().solution.offsets.empty()) fit_online();
    improve();
    return portfolio_.outcome();
  }

 private:
  // A thread's own, made when it is first needed.
  Skyline& skyline(unsigned thread) {
    if (!skylines_[thread]) skylines_[thread] = std::make_unique<Skyline>(problem_, sections_);
    return *skylines_[thread];
  }

  // What repeats is solved once, in far less time than as often as it comes. The rest has to find room beside it.
  void solve_repeat() {
    const std::optional<Repeat> repeat = find_repeat(problem_, sections_);
    if (!repeat) return;
    const Repetition one = one_of(problem_, sections_, *repeat);
    Limits limits;
    limits.time = portfolio_.deadline().left() / kPartForRepeat;
    limits.work = std::clamp<std::uint64_t>(portfolio_.work_left() / kPartForRepeat, 1, kMostStepsPerRound);
    limits.cancelled = cancelled_;
    limits.threads = portfolio_.threads();
    limits.seed = seed_;
    Solving solving(one.problem, limits, {}, may_be_exact_);
    const Outcome outcome = solving.run();
    portfolio_.spend(limits.work - solving.portfolio_.work_left());
    if (!outcome.found(one.problem.buffers.size())) return;
    limits.work = std::max(limits.work, Skyline::steps_of_a_run(problem_));
    std::vector<std::uint64_t> places = places_in_all(problem_, *repeat, one, outcome.solution.offsets);
    const auto offer = [&] {
      limits.time = portfolio_.deadline().left() / kPartForRepeat;
      Solution solution = complete(problem_, sections_, portfolio_.incumbent().lower_bound, places, limits);
      if (!solution.offsets.empty()) portfolio_.update_incumbent(std::move(solution), "repetition");
    };
    offer();
    if (portfolio_.over()) return;
    guess_others(problem_, sections_, *repeat, one, outcome.solution.offsets, places);
    offer();
  }

  // The large ones first, the small ones in the holes that these leave.
  void solve_large() {
    if (portfolio_.over() || problem_.buffers.size() < kFewestForLarge) return;
    const std::optional<LargeBuffers> large = large_buffers(problem_, sections_, kSmallOnes);
    if (!large) return;
    Limits limits;
    limits.time = portfolio_.deadline().left() / kPartForLarge;
    // SmartPool, where it is still to come behind the first wheels, keeps what it needs.
    std::uint64_t others = 0;
    if (problem_.buffers.size() > kMostForSmartPoolFirst)
      others = steps_of_smart_pool() + kFirstWheels * kFirstRuns * Skyline::steps_of_a_run(problem_);
    const std::uint64_t left = portfolio_.work_left() - std::min(portfolio_.work_left(), others);
    if (left == 0) return;
    limits.work =
        std::clamp<std::uint64_t>(left / kPartForLarge, 1, kRunsOfLarge * Skyline::steps_of_a_run(large->problem));
    limits.cancelled = cancelled_;
    limits.threads = portfolio_.threads();
    limits.seed = seed_;
    Solving solving(large->problem, limits, {}, false);
    const Outcome outcome = solving.run();
    portfolio_.spend(limits.work - solving.portfolio_.work_left());
    if (!outcome.found(large->problem.buffers.size())) return;
    std::vector<std::uint64_t> places(problem_.buffers.size(), kAnywhere);
    for (std::size_t k = 0; k < large->numbers.size(); ++k) places[large->numbers[k]] = outcome.solution.offsets[k];
    limits.time = portfolio_.deadline().left();
    limits.work = Skyline::steps_of_a_run(problem_);
    Solution solution = complete(problem_, sections_, portfolio_.incumbent().lower_bound, places, limits);
    if (!solution.offsets.empty()) portfolio_.update_incumbent(std::move(solution), "large-first");
  }

  // One run with each key, and the published heuristics.
  void run_heuristics() {
    std::vector<Portfolio::Job> jobs;
    const auto add = [&](std::string_view name, auto keys) {
      jobs.push_back([this, name, keys](Portfolio::JobContext& context) {
        std::vector<std::uint32_t> priorities;
        rank(problem_, sections_, keys(), priorities);
        if (!context.allowance.spend(0)) return;  // with many buffers this took long, and so does making a skyline
        Solution solution;
        if (skyline(context.thread).run(priorities, kNever, context.allowance, solution)) {
          context.found(std::move(solution), name);
        }
      });
    };
    for (const Weights& weights : kWeights) {
      add("skyline", [this, weights] { return keys_of(problem_, sections_, weights); });
    }
    add("offset-lines", [this] { return lifetimes_of(problem_); });
    if (problem_.buffers.size() <= kMostForSmartPoolFirst) {
      for (auto& job : smart_pool()) jobs.push_back(std::move(job));
    }
    // As many as the work allows, but at least one: there is always a plan, except where time is up.
    const std::uint64_t affordable = portfolio_.work_left() / Skyline::steps_of_a_run(problem_);
    jobs.resize(std::clamp<std::uint64_t>(affordable, 1, jobs.size()));
    portfolio_.round(jobs, Portfolio::kUnlimited);
  }

  void fit_online() {
    Outcome outcome = online_best_fit(problem_, {});
    if (!outcome.solution.offsets.empty()) portfolio_.update_incumbent(std::move(outcome.solution), kFirstLayout);
  }

  // So that the result is never worse than the published one. Quadratic, but with a small constant.
  std::vector<Portfolio::Job> smart_pool() {
    std::vector<Portfolio::Job> jobs;
    const auto add = [&](Fit fit, std::string_view name) {
      jobs.push_back([this, fit, name](Portfolio::JobContext& context) {
        Solution solution;
        solution.offsets = smart_pool_offsets(problem_, fit, {}, [&](std::size_t placed) {
          return !context.allowance.spend(steps_between_stops(placed));
        });
        solution.height = height_of(problem_, solution.offsets);
        if (!solution.offsets.empty()) context.found(std::move(solution), name);
      });
    };
    add(Fit::kBest, "smartpool-best-fit");
    add(Fit::kFirst, "smartpool-first-fit");
    return jobs;
  }

  // Of both fits: they spend steps every kPlacementsBetweenStops buffers.
  std::uint64_t steps_of_smart_pool() const {
    const std::uint64_t stops = problem_.buffers.size() / kPlacementsBetweenStops;
    return 2 * stops * (steps_between_stops(problem_.buffers.size() / 2) + kPlacementsBetweenStops);
  }

  void make_wheels() {
    wheels_.reserve(kWheels);
    for (std::size_t i = 0; i < kWheels; ++i) {
      wheels_.emplace_back(problem_, sections_, kWeights[i % std::size(kWeights)], seed_ * kWheels + i);
      wheel_jobs_.push_back([this, &wheel = wheels_.back()](Portfolio::JobContext& context) {
        wheel.improve(skyline(context.thread), context.best, portfolio_.goal(), context.allowance,
                      [&](Solution solution) { context.found(std::move(solution), "squeaky-wheel"); });
      });
    }
  }

  // All but the last continue from the portfolio's incumbent. The last has an incumbent of its own, which starts from
  // offset lines.
  void make_ejections() {
    if (problem_.buffers.size() > kMostForEjection) return;
    for (std::size_t i = 0; i < std::size(kEjectionRules); ++i) {
      ejections_.push_back(EjectionSearch::make(problem_, sections_, kEjectionRules[i], seed_ * kWheels + i));
      ejection_jobs_.push_back([this, i](Portfolio::JobContext& context) {
        const bool alone = i + 1 == std::size(kEjectionRules);
        if (alone && own_incumbent_.offsets.empty()) {
          std::vector<std::uint32_t> priorities;
          rank(problem_, sections_, lifetimes_of(problem_), priorities);
          if (!skyline(context.thread).run(priorities, kNever, context.allowance, own_incumbent_)) return;
        }
        ejections_[i]->improve(alone ? Solution(own_incumbent_) : portfolio_.incumbent().solution, portfolio_.goal(),
                               context.allowance, [&](Solution solution) {
                                 if (alone) own_incumbent_ = solution;
                                 context.found(std::move(solution), "ejection-search");
                               });
      });
    }
  }

  // Rounds of exact search, wheels and ejection search, each longer than the last.
  void improve() {
    make_wheels();
    make_ejections();
    std::uint64_t runs = kFirstRuns;
    const std::uint64_t first_nodes = kFirstNodes * kSmall / std::max(kSmall, problem_.buffers.size());
    std::uint64_t nodes = first_nodes;
    for (std::size_t active_wheels = kFirstWheels; !portfolio_.over(); ++active_wheels) {
      const bool small = problem_.buffers.size() <= kSmall;
      // What a first round finds soon without it is not delayed by it; with many buffers that is not soon.
      const bool is_soon = problem_.buffers.size() <= kMostForSmartPoolFirst;
      if (active_wheels == kFirstWheels + (is_soon ? 1 : 0)) solve_large();
      if (portfolio_.over()) return;
      if (active_wheels == kFirstWheels + 1 && problem_.buffers.size() > kMostForSmartPoolFirst &&
          portfolio_.work_left() >= steps_of_smart_pool()) {
        portfolio_.round(smart_pool(), Portfolio::kUnlimited);
      }
      if (may_be_exact_ &&
          (small || (active_wheels > kFirstWheels && problem_.buffers.size() <= kMostForExactSearch))) {
        search_exactly(nodes);
        nodes *= 2;
      }
      if (portfolio_.over()) return;
      // About as long as exact search had: a node is worth some steps. Whether a capacity suffices is more often
      // settled by exact search.
      const std::uint64_t share = small ? nodes * kStepsOfANode / kWheels / (problem_.capacity ? 8 : 2) : 0;
      const std::uint64_t steps =
          std::min(std::max(runs * Skyline::steps_of_a_run(problem_), share), kMostStepsPerRound);
      std::vector<Portfolio::Job> jobs = wheel_jobs_;
      jobs.resize(std::clamp<std::uint64_t>(portfolio_.work_left() / steps, 1,
                                            small ? jobs.size() : std::min(active_wheels, jobs.size())));
      portfolio_.round(jobs, steps);
      // Where SmartPool is run later, it comes before these.
      const bool due = problem_.buffers.size() <= kMostForSmartPoolFirst || active_wheels > kFirstWheels;
      if (due && !ejection_jobs_.empty() && !portfolio_.over()) portfolio_.round(ejection_jobs_, 4 * steps);
      if (steps < kMostStepsPerRound) runs += runs / 2;
    }
  }

  void search_exactly(std::uint64_t nodes) {
    if (!exact_) exact_ = std::make_unique<HeightMinimizer>(problem_, seed_);
    if (!exact_->supported()) return;
    Limits limits;
    limits.time = portfolio_.deadline().left();
    limits.work = std::min(nodes, portfolio_.work_left());
    limits.cancelled = cancelled_;
    limits.threads = portfolio_.threads();
    const std::uint64_t before = exact_->spent();
    Outcome outcome = problem_.capacity ? exact_->place_within(*problem_.capacity, limits)
                                        : exact_->minimize(portfolio_.height(), limits);
    portfolio_.spend(exact_->spent() - before);
    portfolio_.raise_lower_bound(outcome.lower_bound);
    if (outcome.found(problem_.buffers.size()))
      portfolio_.update_incumbent(std::move(outcome.solution), outcome.solver);
  }

  const Problem& problem_;
  Sections sections_;
  Portfolio portfolio_;
  std::uint64_t seed_;
  const std::atomic<bool>* cancelled_;
  bool may_be_exact_;
  std::vector<std::unique_ptr<Skyline>> skylines_;  // of each thread
  std::vector<SqueakyWheel> wheels_;
  std::unique_ptr<HeightMinimizer> exact_;
  std::vector<Portfolio::Job> wheel_jobs_;
  std::vector<std::unique_ptr<EjectionSearch>> ejections_;
  Solution own_incumbent_;  // of the last of these
  std::vector<Portfolio::Job> ejection_jobs_;
};

}  // namespace

std::uint64_t bound_of(const Problem& problem) { return lower_bound_of(problem, Sections(problem)); }

Outcome solve(const Problem& problem, const Limits& limits, const OnBetter& on_better) {
  return Solving(problem, limits, on_better, true).run();
}

Outcome solve_by_heuristics(const Problem& problem, const Limits& limits, const OnBetter& on_better) {
  return Solving(problem, limits, on_better, false).run();
}

}  // namespace memopt::layout
