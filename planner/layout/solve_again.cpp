#include <algorithm>
#include <limits>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/layout/bounds.h"
#include "planner/layout/conclusion.h"
#include "planner/layout/hole_fitting.h"
#include "planner/layout/insertion.h"
#include "planner/layout/kept_places.h"
#include "planner/layout/priorities.h"
#include "planner/layout/skyline.h"
#include "planner/layout/solve.h"
#include "planner/layout/squeaky_wheel.h"
#include "planner/layout/timeline.h"
#include "planner/layout/watch.h"

namespace memopt::layout {
namespace {

constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
constexpr Weights kWeights{1, 0.5};
constexpr std::size_t kFew = 64;  // buffers; more are not inserted one by one
// Parts of the height: this much more than before, or than the bound, is not worth that all others move.
constexpr std::uint64_t kLittle = 4096;
constexpr std::uint64_t kCloseToTheBound = 1024;
// A program waits: this much more is taken at once, and whoever has time looks for less with `solve`.
constexpr std::uint64_t kAcceptable = 128;
constexpr std::uint64_t kRunsOfRepair = 2;
constexpr std::uint64_t kMostStepsOfRepair = 10'000;  // some milliseconds
constexpr std::uint64_t kRunsOfNewSolution = 4;

class Again {
 public:
  Again(const Problem& problem, std::span<const std::uint64_t> previous, const Limits& limits)
      : problem_(problem),
        limits_(limits),
        watch_(limits),
        timeline_(problem),
        bound_(lower_bound_of(problem, timeline_)),
        previous_(previous),
        kept_(kept_places(problem, timeline_, previous)),
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
    if (problem_.capacity && bound_ > *problem_.capacity) return outcome();
    for (std::uint32_t i = 0; i < places_.size(); ++i) {
      if (places_[i] == kAnywhere) displaced_.push_back(i);
    }
    std::stable_sort(displaced_.begin(), displaced_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return problem_.buffers[a].bytes > problem_.buffers[b].bytes;
    });
    if (displaced_.size() <= kFew) {
      insert();
    } else {
      into_holes();
    }
    if (!done()) repair();
    if (!done()) anew();
    return outcome();
  }

 private:
  bool done() const { return !best_.offsets.empty() && best_.height <= std::max(enough_, acceptable_); }

  void offer(Solution solution, std::string_view solver) {
    if (solution.offsets.empty() || (!best_.offsets.empty() && solution.height >= best_.height)) return;
    best_ = std::move(solution);
    solver_ = solver;
  }

  // One after the other, the largest first; others make room.
  void insert() {
    Insertion insertion(problem_, timeline_, kept_);
    Allowance allowance(watch_, limits_.work);
    for (const std::uint32_t i : displaced_) {
      const std::uint64_t before = i < previous_.size() ? previous_[i] : kAnywhere;
      if (!insertion.put(i, before, goal_, enough_, allowance)) return;
    }
    offer({insertion.offsets(), insertion.height()}, "kept");
  }

  // All that is kept stays; the others go into the smallest holes, the largest first.
  void into_holes() {
    Problem kept = problem_;
    std::vector<std::uint64_t> bytes;
    for (std::uint32_t i = 0; i < places_.size(); ++i) {
      bytes.push_back(problem_.buffers[i].bytes);
      kept.buffers[i].fixed = places_[i];
    }
    Solution solution;
    solution.offsets = fit_into_holes(kept, displaced_, bytes, Fit::kBest, limits_);
    solution.height = height_of(problem_, solution.offsets);
    offer(std::move(solution), "kept");
  }

  // Whatever lives together with what sticks out is placed anew; the others stay.
  void repair() {
    if (best_.offsets.empty()) return;
    std::vector<bool> torn(timeline_.count, false);
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const Buffer& buffer = problem_.buffers[i];
      if (best_.offsets[i] + buffer.bytes <= goal_ && places_[i] != kAnywhere) continue;
      for (const Span& span : timeline_.of(buffer)) std::fill(torn.begin() + span.lo, torn.begin() + span.hi, true);
    }
    std::vector<std::uint32_t> before(timeline_.count + 1, 0);
    for (std::uint32_t s = 0; s < timeline_.count; ++s) before[s + 1] = before[s] + torn[s];
    std::vector<std::uint64_t> places = places_;
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (problem_.buffers[i].fixed != kAnywhere) continue;
      for (const Span& span : timeline_.of(problem_.buffers[i])) {
        if (before[span.hi] > before[span.lo]) places[i] = kAnywhere;
      }
    }
    Skyline skyline(problem_, timeline_, places);
    SqueakyWheel wheel(problem_, timeline_, kWeights, limits_.seed);
    Allowance allowance(
        watch_, std::min({limits_.work, kRunsOfRepair * Skyline::steps_of_a_run(problem_), kMostStepsOfRepair}));
    wheel.turn(skyline, best_.height, goal_, allowance,
               [&](Solution solution) { offer(std::move(solution), "repair"); });
  }

  void anew() {
    Limits limits = limits_;
    limits.time = watch_.left();
    limits.work = std::min(limits_.work, kRunsOfNewSolution * Skyline::steps_of_a_run(problem_));
    Outcome outcome = solve(problem_, limits);
    bound_ = std::max(bound_, outcome.lower_bound);
    offer(std::move(outcome.solution), outcome.solver);
  }

  Outcome outcome() { return conclude(problem_, std::move(best_.offsets), bound_, solver_); }

  const Problem& problem_;
  const Limits& limits_;
  Watch watch_;
  Timeline timeline_;
  std::uint64_t bound_;
  std::span<const std::uint64_t> previous_;
  KeptPlaces kept_;
  const std::vector<std::uint64_t>& places_;
  std::vector<std::uint32_t> displaced_;
  std::uint64_t goal_;        // costs no height: as high as what is kept
  std::uint64_t enough_;      // for all to stay where they are
  std::uint64_t acceptable_;  // to be content with what was found
  Solution best_;
  std::string_view solver_;
};

}  // namespace

Outcome solve_again(const Problem& problem, std::span<const std::uint64_t> previous, const Limits& limits) {
  return Again(problem, previous, limits).run();
}

}  // namespace memopt::layout
