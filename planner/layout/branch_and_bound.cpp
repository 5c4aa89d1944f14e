#include "planner/layout/branch_and_bound.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "planner/layout/sections.h"
#include "planner/layout/turns.h"
#include "planner/layout/validation.h"

namespace memopt::layout {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostMembers = std::size_t{1} << 26;  // 256 MiB of Sections
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

// Looks for the least height between a bound that is proven and one that is reached, with an effort that grows.
class Minimum {
 public:
  Minimum(const Problem& problem, const Sections& sections, const Limits& limits, const OnBetter& on_better,
          const Pruning& pruning)
      : problem_(problem), sections_(sections), budget_(limits), on_better_(on_better), pruning_(pruning) {
    const std::uint64_t bound = load_bound(problem);
    outcome_.solver = kName;
    outcome_.lower_bound = bound;
    low_ = static_cast<std::int64_t>((bound + sections.unit - 1) / sections.unit);
    std::uint64_t most = std::numeric_limits<std::int64_t>::max() / 8;
    if (problem.capacity) most = std::min(most, *problem.capacity / sections.unit);
    high_ = static_cast<std::int64_t>(most) + 1;
  }

  Outcome find() {
    // Most problems can be solved at the bound, or with little more.
    for (std::uint64_t effort = 1; low_ < high_ && !budget_.over(); effort *= 2) {
      const std::uint64_t work = kLeastWork * effort;
      try_capacity(low_, work);
      // The least that can be solved with this effort, if more effort never did harm.
      std::int64_t unsolved = low_ - 1;
      for (std::int64_t step = std::max<std::int64_t>(1, low_ / 256); !outcome_found() && low_ < high_; step *= 2) {
        if (budget_.over()) break;
        unsolved = std::min(low_ + step, high_ - 1);
        try_capacity(unsolved, work);
        if (unsolved == high_ - 1) break;
      }
      unsolved = low_;
      while (outcome_found() && unsolved + 1 < high_ && low_ < high_ && !budget_.over()) {
        const std::int64_t middle = unsolved + (high_ - unsolved) / 2;
        if (!try_capacity(middle, work)) unsolved = middle;
      }
    }
    outcome_.optimal = outcome_found() && outcome_.solution.height <= outcome_.lower_bound;
    outcome_.infeasible = !outcome_found() && low_ >= high_ && problem_.capacity.has_value();
    return outcome_;
  }

 private:
  static constexpr std::uint64_t kLeastWork = 200'000;

  bool outcome_found() const { return outcome_.found(problem_.buffers.size()); }

  // Whether it was decided; `low_` or `high_` then moves.
  bool try_capacity(std::int64_t capacity, std::uint64_t work) {
    if (capacity < low_ || capacity >= high_) return true;
    const Verdict verdict = search(sections_, capacity, budget_.share(work), pruning_);
    budget_.spend(verdict.work);
    if (verdict.progress == Progress::kUnfinished) return false;
    if (verdict.progress == Progress::kRefuted) {
      low_ = capacity + 1;
      outcome_.lower_bound = std::max(outcome_.lower_bound, static_cast<std::uint64_t>(low_) * sections_.unit);
      return true;
    }
    Outcome better = outcome_;
    better.solution = solution_of(problem_, sections_, verdict.offsets);
    better.optimal = better.solution.height <= outcome_.lower_bound;
    high_ = static_cast<std::int64_t>((better.solution.height + sections_.unit - 1) / sections_.unit);
    outcome_ = std::move(better);
    if (on_better_) on_better_(outcome_);
    return true;
  }

  const Problem& problem_;
  const Sections& sections_;
  Budget budget_;
  const OnBetter& on_better_;
  const Pruning pruning_;
  std::int64_t low_ = 0;   // units; nothing is lower
  std::int64_t high_ = 0;  // units; reached, or one more than allowed
  Outcome outcome_;
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
  const Verdict verdict = search(*sections, static_cast<std::int64_t>(units), limits, pruning);
  if (verdict.progress == Progress::kRefuted) {
    outcome.infeasible = true;
    outcome.lower_bound = std::max(outcome.lower_bound, (units + 1) * sections->unit);
  } else if (verdict.progress == Progress::kSolved) {
    outcome.solution = solution_of(problem, *sections, verdict.offsets);
    outcome.optimal = outcome.solution.height == outcome.lower_bound;
  }
  return outcome;
}

Outcome fit_least(const Problem& problem, const Limits& limits, const OnBetter& on_better, const Pruning& pruning) {
  const auto sections = Sections::of(problem, kMostMembers);
  if (!sections) {
    Outcome outcome;
    outcome.solver = kName;
    outcome.lower_bound = load_bound(problem);
    return outcome;
  }
  return Minimum(problem, *sections, limits, on_better, pruning).find();
}

}  // namespace memopt::layout
