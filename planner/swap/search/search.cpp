#include "planner/swap/search/search.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "planner/layout/solve.h"
#include "planner/swap/search/annealing.h"
#include "planner/swap/search/finish.h"
#include "planner/swap/slab.h"
#include "planner/swap/timeline.h"
#include "planner/swap/verify.h"

namespace memopt::swap {
namespace {

using Seconds = std::chrono::duration<double>;

// Of the peak load: where annealing begins and ends.
constexpr double kHot = 0.007;
constexpr double kCold = 0.0005;
constexpr std::uint64_t kAttemptsPerItem = 400;  // of one annealing that is long enough
constexpr double kRefining = 0.25;               // part of the budget that starts from the best of the rest
constexpr double kLongEnough = 2.5;              // anneals: with less, nothing is left for refining
constexpr double kRound = 15;  // seconds: several times from the beginning is better than once for longer
constexpr std::size_t kShortAbsences = 64;
constexpr std::chrono::milliseconds kLayoutTime{100};  // of the small blocks
constexpr std::uint64_t kLayoutWork = 20000;

struct DelayPhase {
  double from, to;  // parts of the budget
  double price;     // of a nanosecond, in what an engine copies in it
  double heat;      // of the first temperature
};
constexpr DelayPhase kDelayPhases[] = {
    {0.25, 0.45, 0.03, 1}, {0.45, 0.6, 0.1, 0.5}, {0.6, 0.75, 0.2, 0.3}, {0.75, 0.88, 0.4, 0.2}, {0.88, 1, 0.8, 0.15}};

class Budget {
 public:
  Budget(double seconds, std::uint64_t attempts) : begin_(Clock::now()), seconds_(seconds), attempts_(attempts) {}

  double seconds() const { return seconds_; }
  double elapsed() const { return Seconds(Clock::now() - begin_).count(); }
  std::uint64_t attempts() const { return attempts_; }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_;
  double seconds_;
  std::uint64_t attempts_;
};

struct Found {
  Choice choice;
  Worth worth;
};

class Search {
 public:
  Search(const Problem& problem, const Lives& lives, Objective objective, const SearchLimits& limits)
      : problem_(problem),
        lives_(lives),
        limits_(limits),
        budget_(Seconds(limits.time).count(), limits.attempts),
        candidates_(find_candidates(problem, lives, limits_of(problem, objective))),
        goal_(objective == Objective::kTime ? problem.limit.value_or(0) : 0),
        delays_(objective == Objective::kTime) {
    result_.candidates = candidates_.absences.size();
    layout_.time = kLayoutTime;
    layout_.seed = limits.seed;
    if (limits.time == std::chrono::nanoseconds::max()) {
      layout_.time = std::chrono::nanoseconds::max();
      layout_.work = kLayoutWork;
    }
  }

  SearchPlan run() {
    if (problem_.layout) offer_unswapped();
    const bool timed = limits_.time != std::chrono::nanoseconds::max();
    const double rounds =
        delays_ && timed ? std::clamp(std::floor(Seconds(limits_.time).count() / kRound), 1.0, 64.0) : 1;
    for (double k = 0; k < rounds && !(k > 0 && result_.feasible && result_.added_ns == 0); ++k) {
      budget_ = Budget(Seconds(limits_.time).count() / rounds, limits_.attempts);
      round(static_cast<std::uint64_t>(k));
    }
    return std::move(result_);
  }

 private:
  // From the beginning, with other random numbers.
  void round(std::uint64_t number) {
    goal_ = delays_ ? problem_.limit.value_or(0) : 0;
    annealers_.clear();
    const unsigned threads = std::max(1U, limits_.threads);
    for (unsigned t = 0; t < threads; ++t) {
      const std::uint64_t seed = (limits_.seed * 1000003 + number) * 1000003 + t;
      annealers_.push_back(std::make_unique<Annealing>(problem_, lives_, candidates_, seed));
    }
    const Choice start = annealers_.front()->start();
    // Without waits first, then with them.
    phase(0, delays_ ? kDelayPhases[0].from : 1 - refining(), false, start, true, 0, 1);
    if (delays_) {
      // Waits are cheap until the limit is met, and dearer then.
      for (const auto& [from, to, price, heat] : kDelayPhases) {
        if (reached()) break;
        make_room_for_the_rest();
        phase(from, to, true, best().choice, false, best().worth.above_goal > 0 ? kDelayPhases[0].price : price,
              best().worth.above_goal > 0 ? 1 : heat);
      }
    } else if (refining() > 0) {
      phase(1 - refining(), 1, false, best().choice, false, 0, 0.25);
    }
    conclude();
  }

  static CandidateLimits limits_of(const Problem& problem, Objective objective) {
    CandidateLimits limits;
    if (objective == Objective::kTime) limits.short_absences = kShortAbsences;
    if (problem.layout) return limits;
    limits.items = ~std::size_t{0};
    limits.rest = 0;
    return limits;
  }

  std::uint64_t anneal_attempts() const {
    return kAttemptsPerItem * std::max<std::size_t>(candidates_.items.size(), 50);
  }

  double refining() const {
    const auto attempts = static_cast<double>(limits_.attempts) / static_cast<double>(anneal_attempts());
    return budget_.seconds() > 4 && attempts > kLongEnough ? kRefining : 0;
  }

  // The plan without swaps, by the layout planner: what any other has to be better than.
  void offer_unswapped() {
    const Slab slab = make_slab(problem_, lives_, {});
    const layout::Outcome outcome = layout::solve_by_heuristics(slab.problem, layout_);
    if (!outcome.found(slab.problem.buffers.size())) return;
    offer({{}, swap::places_of(problem_, {}, slab, outcome.solution)}, 0);
  }

  // The worth by a goal that was another is none.
  void forget_worths() {
    for (const auto& annealing : annealers_) annealing->forget();
  }

  bool reached() const {
    return std::any_of(found_.begin(), found_.end(),
                       [](const Found& one) { return one.worth.above_goal == 0 && one.worth.added_ns == 0; });
  }

  const Found& best() const {
    return *std::min_element(found_.begin(), found_.end(),
                             [](const Found& a, const Found& b) { return a.worth < b.worth; });
  }

  // The blocks that take no part in the search may need some bytes above the others.
  void make_room_for_the_rest() {
    const auto decisions =
        problem_.layout ? finish(problem_, lives_, candidates_, best().choice, layout_) : std::nullopt;
    if (!decisions) return;
    const std::uint64_t more = footprint_of(problem_, *decisions) - best().worth.height;
    goal_ = *problem_.limit - std::min(*problem_.limit, std::max(more, *problem_.limit - goal_));
    forget_worths();
  }

  // All threads anneal for the parts [from, to) of the budget: again and again from `start`, or once and gently.
  void phase(double from, double to, bool delays, const Choice& start, bool hot, double price, double heat) {
    const double end = budget_.seconds() * to;
    const auto attempts = [&](double part) {
      if (budget_.attempts() == ~std::uint64_t{0}) return part > 0 ? budget_.attempts() : std::uint64_t{0};
      return static_cast<std::uint64_t>(static_cast<double>(budget_.attempts()) * part);
    };
    const std::uint64_t share = attempts(to) - (attempts(from) == ~std::uint64_t{0} ? 0 : attempts(from));
    const auto work = [&](Annealing& annealing) {
      const std::uint64_t before = annealing.attempts();
      const auto left = [&] {
        const std::uint64_t used = annealing.attempts() - before;
        return used < share ? share - used : 0;
      };
      do {
        const double begin = budget_.elapsed();
        if (begin >= end) return;
        Annealing::Course course;
        const auto peak = static_cast<double>(lives_.peak);
        // With few items, each is a large part.
        const double hottest =
            std::max(kHot, 0.5 / static_cast<double>(std::max<std::size_t>(candidates_.items.size(), 1)));
        course.attempts = std::min(left(), hot ? anneal_attempts() : 4 * anneal_attempts());
        course.hot = peak * hottest * heat;
        course.cold = peak * kCold;
        course.goal = goal_;
        course.delays = delays;
        course.delay_price = price;
        const std::uint64_t tried = annealing.attempts();
        annealing.run(start, course, [&] { return (budget_.elapsed() - begin) / (end - begin); });
        if (annealing.attempts() == tried) return;  // there is nothing to try
      } while (left() > 0 && !(annealing.worth().above_goal == 0 && annealing.worth().added_ns == 0));
    };
    std::vector<std::thread> others;
    for (std::size_t t = 1; t < annealers_.size(); ++t) others.emplace_back(work, std::ref(*annealers_[t]));
    work(*annealers_.front());
    for (std::thread& other : others) other.join();
    found_.clear();
    for (const auto& annealing : annealers_) found_.push_back({annealing->best(), annealing->worth()});
  }

  void conclude() {
    std::sort(found_.begin(), found_.end(), [](const Found& a, const Found& b) { return a.worth < b.worth; });
    for (const Found& one : found_) {
      if (one.choice.order.empty()) continue;
      auto decisions = finish(problem_, lives_, candidates_, one.choice, layout_);
      if (decisions) offer(std::move(*decisions), one.worth.height);
    }
    for (const auto& annealing : annealers_) result_.attempts += annealing->attempts();
  }

  // Takes the decisions if they hold and are better.
  void offer(Decisions decisions, std::uint64_t height) {
    Problem timed;
    const Problem* problem = &problem_;
    if (!problem_.layout) {
      timed = problem_;
      timed.limit = std::max(height, problem_.limit.value_or(0));
      problem = &timed;
    }
    const Timing timing = Timeline(*problem, lives_).evaluate(decisions);
    if (timing.fault != Fault::kNone || timing.early_swap_ins > 0) return;
    if (!delays_ && timing.added_ns > kUnnoticed * problem_.period) return;
    const std::uint64_t footprint = problem_.layout ? footprint_of(problem_, decisions) : height;
    const bool feasible = footprint <= problem_.limit.value_or(kNever);
    if (has_ && !better(feasible, footprint, timing.added_ns)) return;
    has_ = true;
    result_.feasible = feasible;
    result_.decisions = std::move(decisions);
    result_.footprint = footprint;
    result_.added_ns = timing.added_ns;
  }

  bool better(bool feasible, std::uint64_t footprint, double added_ns) const {
    if (feasible != result_.feasible) return feasible;
    if (!feasible || !delays_) return footprint < result_.footprint;
    return added_ns != result_.added_ns ? added_ns < result_.added_ns : footprint < result_.footprint;
  }

  const Problem& problem_;
  const Lives& lives_;
  const SearchLimits& limits_;
  Budget budget_;
  Candidates candidates_;
  std::uint64_t goal_;
  bool delays_;
  layout::Limits layout_;
  std::vector<std::unique_ptr<Annealing>> annealers_;
  std::vector<Found> found_;
  SearchPlan result_;
  bool has_ = false;
};

}  // namespace

SearchPlan search(const Problem& problem, const Lives& lives, Objective objective, const SearchLimits& limits) {
  return Search(problem, lives, objective, limits).run();
}

}  // namespace memopt::swap
