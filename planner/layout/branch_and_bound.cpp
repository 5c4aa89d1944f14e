#include "planner/layout/branch_and_bound.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <memory>
#include <utility>

#include "planner/layout/sections.h"
#include "planner/layout/stacked.h"
#include "planner/layout/turns.h"
#include "planner/layout/validation.h"

namespace memopt::layout {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostMembers = std::size_t{1} << 25;  // 128 MiB of Sections, twice that in each tree
constexpr std::string_view kName = "branch-and-bound";

Solution solution_of(const Problem& problem, const Sections& sections, const std::vector<std::int64_t>& offsets) {
  Solution solution;
  solution.offsets.resize(problem.buffers.size());
  for (std::size_t b = 0; b < sections.buffers(); ++b) {
    solution.offsets[sections.original[b]] = static_cast<std::uint64_t>(offsets[b]) * sections.unit;
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
  explicit Budget(const Limits& limits) : left_(limits), begun_(Clock::now()) {}

  // At most `work` of it.
  Limits share(std::uint64_t work) const {
    Limits share = left_;
    share.work = std::min(share.work, work);
    if (share.time != std::chrono::nanoseconds::max()) share.time -= Clock::now() - begun_;
    return share;
  }

  void spend(std::uint64_t work) { left_.work -= std::min(left_.work, work); }

  bool over() const {
    if (left_.cancelled != nullptr && left_.cancelled->load(std::memory_order_relaxed)) return true;
    return left_.work == 0 || (left_.time != std::chrono::nanoseconds::max() && Clock::now() - begun_ >= left_.time);
  }

 private:
  Limits left_;
  Clock::time_point begun_;
};

}  // namespace

Outcome fit_into(const Problem& problem, std::uint64_t capacity, const Limits& limits, const Pruning& pruning) {
  Outcome outcome;
  outcome.solver = kName;
  outcome.lower_bound = load_bound(problem);
  if (outcome.lower_bound > capacity) {
    outcome.infeasible = true;
    return outcome;
  }
  const auto sections = Sections::of(problem, kMostMembers);
  if (!sections) return outcome;
  const std::uint64_t units =
      std::min(capacity / sections->unit, std::uint64_t{std::numeric_limits<std::int64_t>::max() / 8});
  const Verdict verdict = Turns(*sections, static_cast<std::int64_t>(units), limits.seed, pruning).go_on(limits);
  if (verdict.progress == Progress::kRefuted) {
    outcome.infeasible = true;
    outcome.lower_bound = std::max(outcome.lower_bound, (units + 1) * sections->unit);
  } else if (verdict.progress == Progress::kSolved) {
    outcome.solution = solution_of(problem, *sections, verdict.offsets);
    outcome.optimal = outcome.solution.height == outcome.lower_bound;
  }
  return outcome;
}

// Heights in units of Sections: nothing below `low`, and `high` is reached or one more than allowed.
class LeastFit::State {
 public:
  State(const Problem& problem, Sections sections, std::uint64_t seed, const Pruning& pruning)
      : problem_(problem), sections_(std::move(sections)), seed_(seed), pruning_(pruning) {
    outcome_.solver = kName;
    outcome_.lower_bound = load_bound(problem);
    low_ = units(outcome_.lower_bound);
    std::uint64_t most = kMostHeight;
    if (problem.capacity) most = std::min(most, *problem.capacity / sections_.unit);
    high_ = static_cast<std::int64_t>(most) + 1;
    // One on top of the other there is always room.
    enough_ = units(stacked(problem).height) + 1;
  }

  Outcome go_on(std::uint64_t reached, const Limits& limits, const OnBetter& on_better) {
    if (reached / sections_.unit < kMostHeight) high_ = std::min(high_, units(reached));
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

  Outcome fit(std::uint64_t capacity, const Limits& limits) {
    Budget budget(limits);
    const auto height = static_cast<std::int64_t>(std::min(capacity / sections_.unit, kMostHeight));
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
  static constexpr std::uint64_t kLeastWork = 50'000;  // enough for the easy ones
  // Trees of problems with more members are not kept for every height: they take too much memory.
  static constexpr std::size_t kMostMembersToKeep = std::size_t{1} << 18;

  struct Tried {
    std::unique_ptr<Turns> turns;
    std::uint64_t used = 0;  // work, in all
  };

  std::int64_t units(std::uint64_t bytes) const {
    return static_cast<std::int64_t>(bytes / sections_.unit + (bytes % sections_.unit != 0 ? 1 : 0));
  }
  bool found() const { return outcome_.found(problem_.buffers.size()); }
  std::uint64_t granted(std::int64_t height) const {
    const auto found = granted_.find(height);
    return found == granted_.end() ? 0 : found->second;
  }

  // Most problems can be solved at the bound, or with little more: it gets as much as all the rest. The rest is
  // bisected, as if more room never did harm, with an effort that doubles.
  std::pair<std::int64_t, std::uint64_t> next() {
    for (;; level_ *= 2) {
      const std::uint64_t due = std::max(level_, spent_ / 2);
      if (const std::uint64_t had = granted(low_); had < due) return {low_, due - had};
      std::int64_t unsolved = low_;
      const std::int64_t high = std::min(high_, std::max(enough_, low_ + 1));
      while (unsolved + 1 < high) {
        const std::int64_t middle = unsolved + (high - unsolved) / 2;
        if (const std::uint64_t had = granted(middle); had < level_) return {middle, level_ - had};
        unsolved = middle;
      }
    }
  }

  // `low_` or `high_` moves if that decides it.
  void try_height(std::int64_t height, std::uint64_t work, Budget& budget, const OnBetter& on_better) {
    Tried& tried = tried_[height];
    if (!tried.turns) tried.turns = std::make_unique<Turns>(sections_, height, seed_, pruning_);
    const Limits share = budget.share(work);
    const Verdict verdict = tried.turns->go_on(share);
    const bool decided = verdict.progress != Progress::kUnfinished;
    // What was granted but is too little for a turn stays granted.
    const std::uint64_t spent = decided ? verdict.work - std::min(verdict.work, tried.used) : share.work;
    tried.used = verdict.work;
    granted_[height] += share.work;
    budget.spend(spent);
    spent_ += spent;
    if (verdict.progress == Progress::kRefuted) {
      low_ = height + 1;
      outcome_.lower_bound = std::max(outcome_.lower_bound, static_cast<std::uint64_t>(low_) * sections_.unit);
    } else if (verdict.progress == Progress::kSolved) {
      Solution solution = solution_of(problem_, sections_, verdict.offsets);
      high_ = std::min(high_, units(solution.height));
      if (!found() || solution.height < outcome_.solution.height) {
        outcome_.solution = std::move(solution);
        outcome_.optimal = outcome_.solution.height <= outcome_.lower_bound;
        if (on_better) on_better(outcome_);
      }
    }
    const bool large = sections_.members.size() > kMostMembersToKeep;
    std::erase_if(tried_, [&](const auto& each) {
      return each.first < low_ || each.first >= high_ || (large && each.first != low_);
    });
  }

  const Problem& problem_;
  const Sections sections_;
  const std::uint64_t seed_;
  const Pruning pruning_;
  std::map<std::int64_t, Tried> tried_;  // heights, to be gone on with
  std::map<std::int64_t, std::uint64_t> granted_;
  std::uint64_t level_ = kLeastWork;
  std::uint64_t spent_ = 0;
  std::int64_t low_ = 0;
  std::int64_t high_ = 0;
  std::int64_t enough_ = 0;
  Outcome outcome_;
};

LeastFit::LeastFit(const Problem& problem, std::uint64_t seed, const Pruning& pruning) {
  if (auto sections = Sections::of(problem, kMostMembers)) {
    state_ = std::make_unique<State>(problem, *std::move(sections), seed, pruning);
  }
}
LeastFit::~LeastFit() = default;

Outcome LeastFit::go_on(std::uint64_t reached, const Limits& limits, const OnBetter& on_better) {
  return state_->go_on(reached, limits, on_better);
}
Outcome LeastFit::fit(std::uint64_t capacity, const Limits& limits) { return state_->fit(capacity, limits); }

std::uint64_t LeastFit::spent() const { return state_->spent(); }

Outcome fit_least(const Problem& problem, const Limits& limits, const OnBetter& on_better, const Pruning& pruning) {
  LeastFit search(problem, limits.seed, pruning);
  if (search.possible()) return search.go_on(~std::uint64_t{0}, limits, on_better);
  Outcome outcome;
  outcome.solver = kName;
  outcome.lower_bound = load_bound(problem);
  return outcome;
}

}  // namespace memopt::layout
