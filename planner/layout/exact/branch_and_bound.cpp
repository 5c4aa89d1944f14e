#include "planner/layout/exact/branch_and_bound.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <utility>

#include "planner/layout/exact/prepared_problem.h"
#include "planner/layout/exact/restarted_search.h"
#include "planner/layout/problem/bounds.h"
#include "planner/layout/problem/validation.h"

namespace memopt::layout {
namespace {

constexpr std::size_t kMostMembers = std::size_t{1} << 25;  // 128 MiB of PreparedProblem, twice that in each tree
constexpr std::string_view kName = "branch-and-bound";

Solution solution_of(const Problem& problem, const PreparedProblem& prepared,
                     const std::vector<std::int64_t>& offsets) {
  Solution solution;
  solution.offsets.resize(problem.buffers.size());
  for (std::size_t b = 0; b < prepared.buffers(); ++b) {
    solution.offsets[prepared.original[b]] = static_cast<std::uint64_t>(offsets[b]) * prepared.unit;
  }
  for (std::size_t b = 0; b < problem.buffers.size(); ++b) {
    const Buffer& buffer = problem.buffers[b];
    if (buffer.fixed != kAnywhere) solution.offsets[b] = buffer.fixed;
    solution.height = std::max(solution.height, solution.offsets[b] + buffer.bytes);
  }
  return solution;
}

// What is left of limits, between searches.
class Budget {
 public:
  explicit Budget(const Limits& limits) : left_(limits), deadline_(limits) {}

  // At most `work` of it.
  Limits share(std::uint64_t work) const {
    Limits share = left_;
    share.work = std::min(share.work, work);
    share.time = deadline_.left();
    return share;
  }

  void spend(std::uint64_t work) { left_.work -= std::min(left_.work, work); }

  bool over() const { return left_.work == 0 || deadline_.over(); }

 private:
  Limits left_;
  Deadline deadline_;
};

}  // namespace

Outcome place_within(const Problem& problem, std::uint64_t capacity, const Limits& limits, const Pruning& pruning) {
  Outcome outcome;
  outcome.solver = kName;
  outcome.lower_bound = load_bound(problem);
  if (outcome.lower_bound > capacity) {
    outcome.infeasible = true;
    return outcome;
  }
  const auto prepared = PreparedProblem::of(problem, kMostMembers);
  if (!prepared) return outcome;
  const std::uint64_t units =
      std::min(capacity / prepared->unit, std::uint64_t{std::numeric_limits<std::int64_t>::max() / 8});
  const Verdict verdict =
      RestartedSearch(*prepared, static_cast<std::int64_t>(units), limits.seed, pruning).resume(limits);
  if (verdict.progress == Progress::kInfeasible) {
    outcome.infeasible = true;
    outcome.lower_bound = std::max(outcome.lower_bound, (units + 1) * prepared->unit);
  } else if (verdict.progress == Progress::kSolved) {
    outcome.solution = solution_of(problem, *prepared, verdict.offsets);
    outcome.optimal = outcome.solution.height == outcome.lower_bound;
  }
  return outcome;
}

// Heights in units of the prepared problem: no solution is below `low_`; `high_` is the incumbent's, or one more than
// allowed.
class HeightMinimizer::State {
 public:
  State(const Problem& problem, PreparedProblem prepared, std::uint64_t seed, const Pruning& pruning)
      : problem_(problem), prepared_(std::move(prepared)), seed_(seed), pruning_(pruning) {
    outcome_.solver = kName;
    outcome_.lower_bound = load_bound(problem);
    low_ = units(outcome_.lower_bound);
    std::uint64_t most = kMostHeight;
    if (problem.capacity) most = std::min(most, *problem.capacity / prepared_.unit);
    high_ = static_cast<std::int64_t>(most) + 1;
    stacked_ = units(stacked(problem).height) + 1;
  }

  Outcome minimize(std::uint64_t incumbent, const Limits& limits, const OnBetter& on_better) {
    if (incumbent / prepared_.unit < kMostHeight) high_ = std::min(high_, units(incumbent));
    Budget budget(limits);
    while (low_ < high_ && !budget.over()) {
      const auto [height, work] = next();
      try_height(height, work, budget, on_better);
    }
    outcome_.optimal = found() && outcome_.solution.height <= outcome_.lower_bound;
    outcome_.infeasible =
        !found() && low_ >= high_ && problem_.capacity.has_value() && outcome_.lower_bound > *problem_.capacity;
    return outcome_;
  }

  Outcome place_within(std::uint64_t capacity, const Limits& limits) {
    Budget budget(limits);
    const auto height = static_cast<std::int64_t>(std::min(capacity / prepared_.unit, kMostHeight));
    if (height >= low_) {
      high_ = std::max(high_, height + 1);
      try_height(height, limits.work, budget, {});
    }
    Outcome outcome = outcome_;
    outcome.infeasible = outcome_.lower_bound > capacity;
    return outcome;
  }

  std::uint64_t spent() const { return spent_; }

 private:
  static constexpr std::uint64_t kMostHeight = std::numeric_limits<std::int64_t>::max() / 8;
  static constexpr std::uint64_t kLeastWork = 50'000;  // enough for easy problems
  // Trees of problems with more members are not kept for every height: they take too much memory.
  static constexpr std::size_t kMostMembersToKeep = std::size_t{1} << 18;

  struct Tried {
    std::unique_ptr<RestartedSearch> search;
    std::uint64_t used = 0;  // work, in all
  };

  std::int64_t units(std::uint64_t bytes) const {
    return static_cast<std::int64_t>(bytes / prepared_.unit + (bytes % prepared_.unit != 0 ? 1 : 0));
  }
  bool found() const { return outcome_.found(problem_.buffers.size()); }
  std::uint64_t granted(std::int64_t height) const {
    const auto found = granted_.find(height);
    return found == granted_.end() ? 0 : found->second;
  }

  // The next height to try, and the work for it. Most problems can be solved at the bound, or a little above it: the
  // bound gets as much as all other heights. These are bisected, as if more room were never harder, with an effort that
  // doubles.
  std::pair<std::int64_t, std::uint64_t> next() {
    for (;; level_ *= 2) {
      const std::uint64_t due = std::max(level_, spent_ / 2);
      if (const std::uint64_t had = granted(low_); had < due) return {low_, due - had};
      std::int64_t unsolved = low_;
      const std::int64_t high = std::min(high_, std::max(stacked_, low_ + 1));
      while (unsolved + 1 < high) {
        const std::int64_t middle = unsolved + (high - unsolved) / 2;
        if (const std::uint64_t had = granted(middle); had < level_) return {middle, level_ - had};
        unsolved = middle;
      }
    }
  }

  // Moves `low_` or `high_` if the search decides.
  void try_height(std::int64_t height, std::uint64_t work, Budget& budget, const OnBetter& on_better) {
    Tried& tried = tried_[height];
    if (!tried.search) tried.search = std::make_unique<RestartedSearch>(prepared_, height, seed_, pruning_);
    const Limits share = budget.share(work);
    const Verdict verdict = tried.search->resume(share);
    const bool decided = verdict.progress != Progress::kUnfinished;
    // What was granted but is too little for a slice stays granted.
    const std::uint64_t spent = decided ? verdict.work - std::min(verdict.work, tried.used) : share.work;
    tried.used = verdict.work;
    granted_[height] += share.work;
    budget.spend(spent);
    spent_ += spent;
    if (verdict.progress == Progress::kInfeasible) {
      low_ = height + 1;
      outcome_.lower_bound = std::max(outcome_.lower_bound, static_cast<std::uint64_t>(low_) * prepared_.unit);
    } else if (verdict.progress == Progress::kSolved) {
      Solution solution = solution_of(problem_, prepared_, verdict.offsets);
      high_ = std::min(high_, units(solution.height));
      if (!found() || solution.height < outcome_.solution.height) {
        outcome_.solution = std::move(solution);
        outcome_.optimal = outcome_.solution.height <= outcome_.lower_bound;
        if (on_better) on_better(outcome_);
      }
    }
    const bool large = prepared_.members.size() > kMostMembersToKeep;
    std::erase_if(tried_, [&](const auto& each) {
      return each.first < low_ || each.first >= high_ || (large && each.first != low_);
    });
  }

  const Problem& problem_;
  const PreparedProblem prepared_;
  const std::uint64_t seed_;
  const Pruning pruning_;
  std::map<std::int64_t, Tried> tried_;  // by height; to be resumed
  std::map<std::int64_t, std::uint64_t> granted_;
  std::uint64_t level_ = kLeastWork;
  std::uint64_t spent_ = 0;
  std::int64_t low_ = 0;
  std::int64_t high_ = 0;
  std::int64_t stacked_ = 0;  // above the height of the stacked solution, which there always is
  Outcome outcome_;
};

HeightMinimizer::HeightMinimizer(const Problem& problem, std::uint64_t seed, const Pruning& pruning) {
  if (auto prepared = PreparedProblem::of(problem, kMostMembers)) {
    state_ = std::make_unique<State>(problem, *std::move(prepared), seed, pruning);
  }
}
HeightMinimizer::~HeightMinimizer() = default;

Outcome HeightMinimizer::minimize(std::uint64_t incumbent, const Limits& limits, const OnBetter& on_better) {
  return state_->minimize(incumbent, limits, on_better);
}
Outcome HeightMinimizer::place_within(std::uint64_t capacity, const Limits& limits) {
  return state_->place_within(capacity, limits);
}

std::uint64_t HeightMinimizer::spent() const { return state_->spent(); }

Outcome minimize_height(const Problem& problem, const Limits& limits, const OnBetter& on_better,
                        const Pruning& pruning) {
  HeightMinimizer search(problem, limits.seed, pruning);
  if (search.supported()) return search.minimize(~std::uint64_t{0}, limits, on_better);
  Outcome outcome;
  outcome.solver = kName;
  outcome.lower_bound = load_bound(problem);
  return outcome;
}

}  // namespace memopt::layout
