#include "planner/layout/branch_and_bound.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <utility>

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

  std::uint64_t work() const { return left_.work; }

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
      : problem_(problem),
        sections_(sections),
        budget_(limits),
        on_better_(on_better),
        seed_(limits.seed),
        pruning_(pruning) {
    const std::uint64_t bound = load_bound(problem);
    outcome_.solver = kName;
    outcome_.lower_bound = bound;
    low_ = static_cast<std::int64_t>((bound + sections.unit - 1) / sections.unit);
    std::uint64_t most = std::numeric_limits<std::int64_t>::max() / 8;
    if (problem.capacity) most = std::min(most, *problem.capacity / sections.unit);
    high_ = static_cast<std::int64_t>(most) + 1;
  }

  Outcome find() {
    for (std::uint64_t work = kLeastWork; low_ < high_ && !budget_.over(); work *= 2) {
      const std::uint64_t before = spent_;
      // Most problems can be solved at the bound, or with little more; so that it is worth as much as all the rest.
      try_capacity(low_, std::max(work, spent_));
      for (std::int64_t step = std::max<std::int64_t>(1, low_ / 256); !found() && low_ < high_; step *= 2) {
        if (budget_.over()) break;
        const std::int64_t capacity = std::min(low_ + step, high_ - 1);
        try_capacity(capacity, work);
        if (capacity == high_ - 1) break;
      }
      // The least that can be solved with this much work, as if more room never did harm.
      std::int64_t unsolved = low_;
      while (found() && unsolved + 1 < high_ && !budget_.over()) {
        const std::int64_t middle = unsolved + (high_ - unsolved) / 2;
        try_capacity(middle, work);
        if (middle < high_) unsolved = std::max(middle, low_ - 1);
      }
      if (spent_ == before && budget_.work() <= work) break;  // too little is left for a turn
    }
    outcome_.optimal = found() && outcome_.solution.height <= outcome_.lower_bound;
    outcome_.infeasible = !found() && low_ >= high_ && problem_.capacity.has_value();
    return outcome_;
  }

 private:
  static constexpr std::uint64_t kLeastWork = 50'000;  // enough for the easy ones

  bool found() const { return outcome_.found(problem_.buffers.size()); }

  // `low_` or `high_` moves if that decides it.
  void try_capacity(std::int64_t capacity, std::uint64_t work) {
    if (capacity < low_ || capacity >= high_) return;
    auto& turns = tried_.try_emplace(capacity, sections_, capacity, seed_, pruning_).first->second;
    const Verdict verdict = turns.go_on(budget_.share(work));
    std::uint64_t& already = work_of_[capacity];
    budget_.spend(verdict.work - already);
    spent_ += verdict.work - std::exchange(already, verdict.work);
    if (verdict.progress == Progress::kRefuted) {
      low_ = capacity + 1;
      outcome_.lower_bound = std::max(outcome_.lower_bound, static_cast<std::uint64_t>(low_) * sections_.unit);
    } else if (verdict.progress == Progress::kSolved) {
      outcome_.solution = solution_of(problem_, sections_, verdict.offsets);
      outcome_.optimal = outcome_.solution.height <= outcome_.lower_bound;
      high_ = static_cast<std::int64_t>((outcome_.solution.height + sections_.unit - 1) / sections_.unit);
      if (on_better_) on_better_(outcome_);
    }
    std::erase_if(tried_, [&](const auto& tried) { return tried.first < low_ || tried.first >= high_; });
  }

  const Problem& problem_;
  const Sections& sections_;
  Budget budget_;
  const OnBetter& on_better_;
  const std::uint64_t seed_;
  const Pruning pruning_;
  std::map<std::int64_t, Turns> tried_;  // capacities, to be gone on with
  std::map<std::int64_t, std::uint64_t> work_of_;
  std::uint64_t spent_ = 0;
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
