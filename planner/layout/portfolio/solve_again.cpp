#include <algorithm>
#include <limits>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/layout/local_search/insertion.h"
#include "planner/layout/local_search/kept_places.h"
#include "planner/layout/portfolio/solve.h"
#include "planner/layout/portfolio/warm_start.h"
#include "planner/layout/problem/bounds.h"
#include "planner/layout/problem/sections.h"
#include "planner/layout/published/greedy_fit.h"
#include "planner/layout/skyline/priorities.h"
#include "planner/layout/skyline/skyline.h"
#include "planner/layout/skyline/squeaky_wheel.h"

namespace memopt::layout {
namespace {

constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
constexpr Weights kWeights{1, 0.5};
constexpr std::size_t kFew = 64;  // buffers; more are not inserted one by one
// Parts of the height: this much more than before, or than the bound, does not justify that all others move.
constexpr std::uint64_t kLittle = 4096;
constexpr std::uint64_t kCloseToTheBound = 1024;
// The program waits: this much more is accepted at once. A caller with time looks for a lower height with `solve`.
constexpr std::uint64_t kAcceptable = 128;
constexpr std::uint64_t kRunsOfRepair = 2;
constexpr std::uint64_t kMostStepsOfRepair = 10'000;  // some milliseconds
constexpr std::uint64_t kRunsOfNewSolution = 4;

class WarmStart {
 public:
  WarmStart(const Problem& problem, const Sections& sections, std::uint64_t bound,
            std::span<const std::uint64_t> previous, const Limits& limits)
      : problem_(problem),
        limits_(limits),
        deadline_(limits),
        sections_(sections),
        bound_(bound),
        previous_(previous),
        kept_(kept_places(problem, sections_, previous)),
        places_(kept_.offsets) {
    goal_ = bound_;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (places_[i] != kAnywhere) goal_ = std::max(goal_, places_[i] + problem_.buffers[i].bytes);
    }
    if (problem_.capacity) goal_ = std::max(bound_, std::min(goal_, *problem_.capacity));
    enough_ = std::max(goal_ + goal_ / kLittle, bound_ + bound_ / kCloseToTheBound);
    acceptable_ = goal_ + goal_ / kAcceptable;
    if (problem_.capacity) {
      enough_ = std::max(goal_, std::min(enough_, *problem_.capacity));
      acceptable_ = std::max(goal_, std::min(acceptable_, *problem_.capacity));
    }
  }

  Outcome run() {
    complete();
    if (!done()) from_scratch();
    return outcome();
  }

  Solution kept() {
    complete();
    if (problem_.capacity && incumbent_.height > *problem_.capacity) return {};
    return std::move(incumbent_);
  }

 private:
  void complete() {
    if (problem_.capacity && bound_ > *problem_.capacity) return;
    for (std::uint32_t i = 0; i < places_.size(); ++i) {
      if (places_[i] == kAnywhere) unplaced_.push_back(i);
    }
    std::stable_sort(unplaced_.begin(), unplaced_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return problem_.buffers[a].bytes > problem_.buffers[b].bytes;
    });
    if (unplaced_.size() <= kFew) {
      insert();
    } else {
      into_holes();
    }
    if (!done()) repair();
  }

  bool done() const { return !incumbent_.offsets.empty() && incumbent_.height <= std::max(enough_, acceptable_); }

  void update_incumbent(Solution solution, std::string_view solver) {
    if (solution.offsets.empty() || (!incumbent_.offsets.empty() && solution.height >= incumbent_.height)) return;
    incumbent_ = std::move(solution);
    solver_ = solver;
  }

  // One after the other, the largest first; others move up to make room.
  void insert() {
    Insertion insertion(problem_, sections_, kept_);
    Allowance allowance(deadline_, limits_.work);
    for (const std::uint32_t i : unplaced_) {
      const std::uint64_t before = i < previous_.size() ? previous_[i] : kAnywhere;
      if (!insertion.insert(i, before, goal_, enough_, allowance)) return;
    }
    update_incumbent({insertion.offsets(), insertion.height()}, "kept");
  }

  // All that is kept stays; the others go into the smallest holes that are large enough, the largest first.
  void into_holes() {
    Problem kept = problem_;
    std::vector<std::uint64_t> bytes;
    for (std::uint32_t i = 0; i < places_.size(); ++i) {
      bytes.push_back(problem_.buffers[i].bytes);
      kept.buffers[i].fixed = places_[i];
    }
    Solution solution;
    Allowance allowance(deadline_, limits_.work);
    const std::size_t others = places_.size() - unplaced_.size();
    solution.offsets = place_greedily(kept, unplaced_, bytes, Fit::kBest, limits_, [&](std::size_t placed) {
      return !allowance.spend(steps_between_stops(others + placed));
    });
    solution.height = height_of(problem_, solution.offsets);
    update_incumbent(std::move(solution), "kept");
  }

  // The buffers that end above the goal and their neighbours are placed again; the others stay.
  void repair() {
    if (incumbent_.offsets.empty()) return;
    std::vector<bool> affected(sections_.count, false);
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const Buffer& buffer = problem_.buffers[i];
      if (incumbent_.offsets[i] + buffer.bytes <= goal_ && places_[i] != kAnywhere) continue;
      for (const SectionRange& range : sections_.of(buffer))
        std::fill(affected.begin() + range.lo, affected.begin() + range.hi, true);
    }
    std::vector<std::uint32_t> before(sections_.count + 1, 0);
    for (std::uint32_t s = 0; s < sections_.count; ++s) before[s + 1] = before[s] + affected[s];
    std::vector<std::uint64_t> places = places_;
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (problem_.buffers[i].fixed != kAnywhere) continue;
      for (const SectionRange& range : sections_.of(problem_.buffers[i])) {
        if (before[range.hi] > before[range.lo]) places[i] = kAnywhere;
      }
    }
    Skyline skyline(problem_, sections_, places);
    SqueakyWheel wheel(problem_, sections_, kWeights, limits_.seed);
    Allowance allowance(
        deadline_, std::min({limits_.work, kRunsOfRepair * Skyline::steps_of_a_run(problem_), kMostStepsOfRepair}));
    wheel.improve(skyline, incumbent_.height, goal_, allowance,
                  [&](Solution solution) { update_incumbent(std::move(solution), "repair"); });
  }

  void from_scratch() {
    Limits limits = limits_;
    limits.time = deadline_.left();
    limits.work = std::min(limits_.work, kRunsOfNewSolution * Skyline::steps_of_a_run(problem_));
    Outcome outcome = solve(problem_, limits);
    bound_ = std::max(bound_, outcome.lower_bound);
    update_incumbent(std::move(outcome.solution), outcome.solver);
  }

  Outcome outcome() { return outcome_of(problem_, std::move(incumbent_.offsets), bound_, solver_); }

  const Problem& problem_;
  const Limits& limits_;
  Deadline deadline_;
  const Sections& sections_;
  std::uint64_t bound_;
  std::span<const std::uint64_t> previous_;
  KeptPlaces kept_;
  const std::vector<std::uint64_t>& places_;
  std::vector<std::uint32_t> unplaced_;
  std::uint64_t goal_;        // costs no height: that of what is kept
  std::uint64_t enough_;      // up to here all others stay where they are
  std::uint64_t acceptable_;  // up to here the search ends
  Solution incumbent_;
  std::string_view solver_;
};

}  // namespace

Solution complete(const Problem& problem, const Sections& sections, std::uint64_t bound,
                  std::span<const std::uint64_t> previous, const Limits& limits) {
  return WarmStart(problem, sections, bound, previous, limits).kept();
}

Outcome solve_again(const Problem& problem, std::span<const std::uint64_t> previous, const Limits& limits) {
  const Sections sections(problem);
  return WarmStart(problem, sections, lower_bound_of(problem, sections), previous, limits).run();
}

}  // namespace memopt::layout
