#include "planner/swap/search/search.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "planner/swap/model/load.h"
#include "planner/swap/search/annealing.h"
#include "planner/swap/search/finish.h"
#include "planner/swap/search/greedy.h"
#include "planner/swap/search/incumbent.h"
#include "planner/swap/search/layouts.h"
#include "planner/swap/search/parallel_annealing.h"
#include "planner/swap/search/ruin_and_recreate.h"
#include "planner/swap/search/simulated_layouts.h"
#include "planner/swap/simulation/verify.h"

namespace memopt::swap {
namespace {

using Seconds = std::chrono::duration<double>;

std::chrono::nanoseconds nanoseconds(double seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Seconds(seconds));
}

// Part of the time, and seconds, for the greedy choice: whichever is more.
constexpr double kGreedy = 0.4, kLeastGreedy = 0.1;
// Temperatures, of the peak load. Where items are placed: the first and the last one.
constexpr double kHot = 0.007;
constexpr double kCold = 0.0005;
// Where nothing is placed, and annealing begins with what is greedy. Where there are very many evictions each is tried
// a few times at most, and what was greedy is to be kept.
constexpr double kWarm = 0.002, kWarmEnd = 0.0001;
constexpr double kMild = 7e-5, kMildEnd = 3e-6;
constexpr std::size_t kManyEvictions = 1500;
// With more, there is no time to begin with nothing.
constexpr std::size_t kFewEvictions = 400;
constexpr std::size_t kMostPlaced = 1500;         // items
constexpr double kLoose = 1.01;                   // a layout so close to the load needs no search
constexpr std::uint64_t kAttemptsPerItem = 400;   // of one annealing that is long enough
constexpr std::uint64_t kAttemptsPerRound = 100;  // for each item
// Seconds: several times from the beginning is better than once for longer.
constexpr double kRound = 3;
constexpr double kLongRound = 6;        // where there is time for several of these, each with a thorough layout
constexpr double kThorough = 0.15;      // part of a long round: for the layout of what has the least load
constexpr double kLeastThorough = 0.5;  // seconds
constexpr double kDelayedRound = 15;
constexpr double kFirstDelayedRound = 3;  // at least, where there are few evictions; each further one is twice as long
constexpr double kCoveringRound = 6;      // where it begins with a plan within the limit
constexpr double kThoroughDelayed = 0.07;
constexpr double kMostRounds = 64;
constexpr double kRuining = 0.4;  // part of all, where it begins with a covering
// Where there are few evictions, as long as nothing shows that annealing finds nothing better.
constexpr double kLittleRuining = 0.1;
constexpr std::uint64_t kAttemptsPerRuin = 32;
// Where no plan is within the limit, for the least limit that is named.
constexpr std::chrono::seconds kHopeless{2};
constexpr double kUnplaced = 0.3;   // part of a round
constexpr double kRefining = 0.25;  // part of all, where there are several rounds
constexpr std::size_t kShortEvictions = 64;

// Where operations may wait: cheap until the limit is met, and dearer then.
struct DelayPhase {
  double price;  // of a nanosecond, in what an engine copies in it
  double heat;   // of the first temperature
};
constexpr DelayPhase kUnplacedDelays[] = {{0.03, 1}, {0.1, 0.5}, {0.2, 0.25}, {0.4, 0.17}};
constexpr DelayPhase kPlacedDelays[] = {{0.15, 0.25}, {0.3, 0.2}, {0.5, 0.15}, {0.9, 0.1}};
constexpr DelayPhase kAboveLimit = {0.05, 0.5};
// Of a limit: a load that leaves room for places. Parts of a round in which the load has to come below it.
constexpr double kRoomForPlaces = 0.95;
constexpr double kRoomForLayout = 0.97, kLessRoom = 0.985, kLeastRoom = 0.9;  // where places are not searched for
constexpr double kRoomForStays = 0.99;                                        // where each stay lies by itself
// What is laid out above the limit is made smaller by loads alone, so many times, each for this part of a round.
constexpr int kMostCorrections = 2;
constexpr double kCorrection = 0.08;
// A layout may have this part of the time of the annealing before it; with few evictions less, as the search for places
// is worth more there.
constexpr double kLayoutOfPhase = 0.4, kShorter = 0.5;
constexpr double kNearlyWithin = 1.25;  // of the limit: a plan, or a load, that is worth to begin with
constexpr double kUndelayed = 0.08, kUnplacedUntil = 0.45, kFewUnplacedUntil = 0.3, kUndelayedUntil = 0.4;

// Bytes of the blocks that take no part in the search, at most: they may have to lie above the others.
std::uint64_t rest_of(const Problem& problem, const Liveness& liveness, const EvictionCandidates& candidates) {
  Load load = live_load(problem, liveness);
  for (const Item& item : candidates.items) {
    load.add_life(problem, liveness, item.block, -static_cast<std::int64_t>(problem.blocks[item.block].bytes));
  }
  return load.peak();
}

class Search {
 public:
  Search(const Problem& problem, const Liveness& liveness, Objective objective, const SearchLimits& limits,
         const OnPlan& on_plan)
      : problem_(problem),
        liveness_(liveness),
        hopeless_(objective == Objective::kTime && least_load(problem, liveness) > problem.limit.value_or(kNever)),
        limits_(hopeless_ ? shortened(limits) : limits),
        all_(Seconds(limits_.time).count() - SimulatedLayouts::seconds_at_the_end(problem, limits_), limits_.attempts,
             limits_.cancelled),
        candidates_(find_eviction_candidates(problem, liveness, limits_of(problem, objective))),
        goal_(objective == Objective::kTime ? problem.limit.value_or(0) : 0),
        delays_(objective == Objective::kTime),
        few_(candidates_.evictions.size() <= kFewEvictions),
        rest_bytes_(rest_of(problem, liveness, candidates_)),
        incumbent_(problem, liveness, objective, brief_layout(problem, limits_), on_plan),
        layouts_(problem, liveness, candidates_, limits_, incumbent_),
        simulated_(problem, liveness, limits_, layouts_, incumbent_) {}

  SearchPlan run() {
    // Where it can't be within the limit it is what is said in the end, if there is nothing else.
    const bool may_hold = !problem_.limit || liveness_.peak <= *problem_.limit;
    if (may_hold) incumbent_.unswapped();
    if (may_hold && !is_over()) simulated_.unswapped();
    if (!is_over()) begin_greedily();
    if (!incumbent_.has_plan()) incumbent_.unswapped();
    if (delays_ && !is_over() && !incumbent_.plan().feasible) begin_within_limit();
    // Where nothing can be within the limit, coverings have found about the least.
    const double rounds = hopeless_ ? 0 : this->rounds();
    const bool refines = !delays_ && rounds > 1;
    const double part = refines ? 1 - kRefining : 1;
    for (double k = 0; k < rounds && !is_over(); ++k) {
      const double left = all_.seconds() * part - all_.elapsed();
      if (timed() && left <= 0) break;
      const Budget budget(left * weight(k) / weights(k, rounds), share(part * weight(k) / weights(0, rounds)),
                          limits_.cancelled);
      const auto number = static_cast<std::uint64_t>(k);
      delays_ ? delayed_round(number, budget) : round(number, budget);
      if (grows() && k + 1 < rounds && !is_over()) simulated_.between_rounds(budget.seconds());
    }
    if (refines && best_ && !is_over()) {
      ParallelAnnealing annealing = make_annealing(best_->placed, ~std::uint64_t{0});
      const Budget budget(all_.seconds() - all_.elapsed(), share(kRefining), limits_.cancelled);
      annealing.anneal(budget, 0, 1, best_->choice, schedule(annealing, few_ ? 0.2 : 0.02));
      conclude(annealing);
    }
    if (delays_ && !incumbent_.plan().feasible && few_ && !is_over()) incumbent_.auto_swap();
    simulated_.last(all_);
    SearchPlan plan = incumbent_.plan();
    if (!problem_.layout && delays_ && plan.feasible) plan.footprint = least_limit(problem_, liveness_, plan.decisions);
    plan.candidates = candidates_.evictions.size();
    plan.attempts = attempts_;
    return plan;
  }

 private:
  struct Laid {
    Choice choice;
    bool above = false;  // the limit, as far as is known
  };

  // How delays are searched for.
  enum class DelayMode {
    kPlain,
    kFromAboveLimit,  // by its places
    kPlacesFollow,    // a search for loads, whose room is in the goal
  };

  struct Best {
    Choice choice;
    Worth worth;
    bool placed = false;
  };

  static SearchLimits shortened(SearchLimits limits) {
    // Without a time limit it is attempts that end it.
    if (limits.time != std::chrono::nanoseconds::max())
      limits.time = std::min<std::chrono::nanoseconds>(limits.time, kHopeless);
    return limits;
  }

  static CandidateLimits limits_of(const Problem& problem, Objective objective) {
    CandidateLimits limits;
    if (objective == Objective::kTime) limits.short_evictions = kShortEvictions;
    if (problem.layout) return limits;
    limits.items = ~std::size_t{0};
    limits.rest = 0;
    return limits;
  }

  bool is_over() const { return incumbent_.is_done() || all_.is_cancelled(); }
  bool timed() const { return limits_.time != std::chrono::nanoseconds::max(); }

  double rounds() const {
    double most = kMostRounds;
    if (timed()) most = std::min(most, std::floor(all_.seconds() / seconds_of_round()));
    if (limits_.attempts != Budget::kUnlimited) {
      const auto enough = static_cast<double>(kAttemptsPerRound * std::max<std::size_t>(candidates_.items.size(), 50));
      most = std::min(most, std::floor(static_cast<double>(limits_.attempts) / enough / (delays_ ? 5 : 1)));
    }
    most = std::max(1.0, most);
    // So that rounds which grow are as long together.
    return grows() ? std::floor(std::log2(most + 1)) : most;
  }

  // More time is seldom worse then: what less would have found is found, too, and longer rounds find more.
  bool grows() const { return delays_ && few_; }
  // Of a round; of the rounds [from, to) together.
  double weight(double round) const { return grows() ? std::exp2(round) : 1; }
  double weights(double from, double to) const { return grows() ? std::exp2(to) - std::exp2(from) : to - from; }

  double seconds_of_round() const {
    if (delays_ && covering_ && !few_) return kCoveringRound;
    if (grows()) return kFirstDelayedRound;
    if (delays_ || !few_) return kDelayedRound;
    return all_.seconds() < 2 * kLongRound ? kRound : kLongRound;
  }

  std::uint64_t share(double part) const {
    if (limits_.attempts == Budget::kUnlimited) return Budget::kUnlimited;
    return static_cast<std::uint64_t>(static_cast<double>(limits_.attempts) * part);
  }

  ParallelAnnealing make_annealing(bool placed, std::uint64_t number) const {
    return {problem_,
            liveness_,
            candidates_,
            placed ? Evaluator::Places::kFirstFit : Evaluator::Places::kNone,
            limits_.seed * 1000003 + number,
            limits_.threads};
  }

  // Temperatures for an annealing; `heat`: of the first one.
  Annealing::Schedule schedule(const ParallelAnnealing& annealing, double heat) const {
    const auto peak = static_cast<double>(liveness_.peak);
    const std::size_t items = candidates_.items.size();
    Annealing::Schedule schedule;
    schedule.attempts = kAttemptsPerItem * std::max<std::size_t>(items, 50);
    // With few items, each is a large part.
    schedule.hot = peak * std::max(kHot, 0.5 / static_cast<double>(std::max<std::size_t>(items, 1))) * heat;
    schedule.cold = std::min(peak * kCold, schedule.hot);
    if (!few_ && !annealing.placed()) {
      const bool many = candidates_.evictions.size() > kManyEvictions;
      schedule.hot = peak * (many ? kMild : kWarm) * heat;
      schedule.cold = peak * (many ? kMildEnd : kWarmEnd) * std::min(1.0, heat);
    }
    schedule.goal = goal_;
    return schedule;
  }

  // What takes most from the load, laid out afterwards.
  void begin_greedily() {
    const double most = std::max(kGreedy * all_.seconds(), kLeastGreedy);
    const auto ends = [&] { return all_.is_cancelled() || (timed() && all_.elapsed() > most); };
    greedy_ = greedy(problem_, liveness_, candidates_, nothing_evicted(candidates_), ends);
    if (!problem_.layout) return;
    auto decisions = finish(problem_, liveness_, candidates_, greedy_, Items::kAnywhere, layouts_.brief());
    if (decisions) incumbent_.offer(std::move(*decisions), 0);
  }

  // What fits into the limit, whatever it costs; then, what operations wait for in that is how long they are delayed.
  void begin_within_limit() {
    ruining_.emplace(problem_, liveness_, layouts_.brief(), layouts_.longer(), limits_.seed, incumbent_);
    const auto ends = [this] { return limits_.in_time ? all_.elapsed() >= all_.seconds() : all_.is_cancelled(); };
    if (!ruining_->begin(ends)) {
      ruining_.reset();
    } else if (!is_over()) {
      const double left = timed() ? std::max(kLittleRuining, kRuining - all_.part_used()) : kRuining;
      ruin(few_ && !hopeless_ ? std::min(left, kLittleRuining) : left);
    }
    const SearchPlan& plan = incumbent_.plan();
    // What is nearly within it may be brought there by a search for loads and places.
    const auto most = static_cast<std::uint64_t>(kNearlyWithin * static_cast<double>(*problem_.limit));
    if (plan.footprint > most || plan.decisions.swaps.empty()) return;
    Simulator simulator(problem_, liveness_);
    if (problem_.layout && simulator.record(plan.decisions).fault != Fault::kNone) return;
    Choice choice = nothing_evicted(candidates_);
    for (std::uint32_t a = 0; a < candidates_.evictions.size(); ++a) {
      const Eviction& eviction = candidates_.evictions[a];
      const std::uint32_t block = candidates_.items[eviction.item].block;
      const auto same = [&](const Swap& swap) {
        return swap.block == block && swap.out_after % liveness_.operations == eviction.leaves % liveness_.operations;
      };
      choice.evicted[a] = std::any_of(plan.decisions.swaps.begin(), plan.decisions.swaps.end(), same) ? 1 : 0;
    }
    for (const Stall& stall : simulator.stalls()) {
      if (stall.iteration == simulator.stalls().back().iteration) choice.delays.push_back({stall.operation, stall.ns});
    }
    std::sort(choice.delays.begin(), choice.delays.end(),
              [](const Delay& a, const Delay& b) { return a.operation < b.operation; });
    covering_ = std::move(choice);
  }

  // For so much of all, from now on.
  void ruin(double part) { ruining_->run(all_, all_.part_used() + part, share(part / kRuining) / kAttemptsPerRuin); }

  Choice beginning(const ParallelAnnealing& annealing) const {
    return few_ ? annealing.start() : best_ && !best_->placed ? best_->choice : greedy_;
  }

  // From the beginning, with other random numbers: loads first, since that is fast, then places. Where there is time,
  // those of a thorough layout of the least load are where that begins.
  void round(std::uint64_t number, const Budget& budget) {
    ParallelAnnealing unplaced = make_annealing(false, 2 * number);
    unplaced.anneal(budget, 0, kUnplaced, beginning(unplaced), schedule(unplaced, 1));
    if (!needs_places(unplaced, number)) {
      const double until = problem_.layout ? 1 - kThorough : 1;
      unplaced.anneal(budget, kUnplaced, until, unplaced.best().choice, schedule(unplaced, few_ ? 0.2 : 0.3));
      conclude(unplaced);
      if (problem_.layout) lay_out_thoroughly(unplaced.best().choice, budget, 1);
      return;
    }
    ParallelAnnealing placed = make_annealing(true, 2 * number + 1);
    const bool thorough = few_ && lay_out_thoroughly(unplaced.best().choice, budget, kUnplaced + kThorough);
    Choice from = unplaced.best().choice;
    from.order = few_ && !thorough ? placed.start().order : layouts_.order();
    placed.anneal(budget, thorough ? kUnplaced + kThorough : kUnplaced, 1, from,
                  schedule(placed, few_ && !thorough ? 0.2 : 0.05));
    conclude(placed);
  }

  // The same within the limit. Without waits first, then with them.
  void delayed_round(std::uint64_t number, const Budget& budget) {
    const std::uint64_t limit = simulated_.allowed();
    const double before = incumbent_.added_within();
    const auto room = static_cast<std::uint64_t>(kRoomForPlaces * static_cast<double>(limit));
    const std::uint64_t beside_rest = limit - std::min(limit, rest_bytes_);
    ParallelAnnealing unplaced = make_annealing(false, 2 * number);
    goal_ = problem_.layout ? room : limit;
    unplaced.anneal(budget, 0, kUndelayed, beginning(unplaced), schedule(unplaced, 1));
    if (!needs_places(unplaced, number)) {
      goal_ = limit;
      make_room_for_the_rest(unplaced, kUndelayed * budget.seconds());
      if (incumbent_.is_done()) return;
      if (covering_) goal_ = static_cast<std::uint64_t>(room_for_layout_ * static_cast<double>(limit));
      const double undelayed = incumbent_.added_within();
      // Much that is covered is for nothing, where it is nearly within the limit without any wait.
      const double most = kNearlyWithin * static_cast<double>(limit);
      const bool nearly = static_cast<double>(unplaced.best().worth.height) <= most;
      delay(unplaced, budget, kUndelayed, 1, kUnplacedDelays,
            covering_ && !nearly ? *covering_ : unplaced.best().choice);
      conclude(unplaced);
      lay_out_if_in_vain(unplaced.best(), before);
      // What was found was too large when it was laid out, or there is nothing better.
      if (incumbent_.added_within() >= undelayed) room_for_layout_ = std::max(kLeastRoom, room_for_layout_ * kLessRoom);
      return;
    }
    if (incumbent_.is_done()) return;
    std::optional<ParallelAnnealing::Found> loads;
    ParallelAnnealing placed = make_annealing(true, 2 * number + 1);
    double then = kUndelayed;
    Choice from = with_order(unplaced.best().choice, placed);
    bool above = false;
    if (unplaced.best().worth.above_goal > 0) {
      then = few_ ? kFewUnplacedUntil : kUnplacedUntil;
      unplaced.forget_worths();
      delay(unplaced, budget, kUndelayed, then, kUnplacedDelays,
            !few_ && covering_ ? *covering_ : unplaced.best().choice, DelayMode::kPlacesFollow);
      const SearchPlan& covering = incumbent_.plan();
      const Worth& worth = unplaced.best().worth;
      const bool in_vain = worth.above_goal == 0 && covering.feasible && worth.added_ns >= covering.added_ns;
      if (few_ && ruining_ && (in_vain || worth.above_goal > 0)) {
        // Above the goal there may only have been too little time.
        ruin(in_vain ? kRuining - kLittleRuining : kLittleRuining);
        ruining_.reset();
        then = std::max(then, budget.part_used());
      }
      loads = unplaced.best();
      Laid laid = lay_out_within(unplaced, placed, budget, &then);
      from = std::move(laid.choice);
      above = laid.above;
      goal_ = beside_rest;
    } else {
      goal_ = beside_rest;
      then = kUndelayedUntil;
      placed.anneal(budget, kUndelayed, then, from, schedule(placed, few_ ? 0.2 : 0.05));
      make_room_for_the_rest(placed, (kUndelayedUntil - kUndelayed) * budget.seconds());
      from = placed.best().choice;
    }
    if (!incumbent_.is_done()) {
      delay(placed, budget, then, 1, kPlacedDelays, from, above ? DelayMode::kFromAboveLimit : DelayMode::kPlain);
    }
    conclude(placed);
    if (loads) lay_out_if_in_vain(*loads, before);
  }

  // Where a round has found nothing better than `before`, the loads that it found may be worth a longer search for a
  // layout.
  void lay_out_if_in_vain(const ParallelAnnealing::Found& loads, double before) {
    if (!problem_.layout || incumbent_.added_within() < before || is_over()) return;
    // Where there was no time for the last phase, it is what that would have begun with.
    // A goal that was not met may have been lower than need be.
    if (loads.is_tried() && (loads.worth.height > *problem_.limit || loads.worth.added_ns >= before)) return;
    if (covering_ && loads.choice == *covering_) return;
    layouts_.offer_within(loads.choice, layouts_.last());
  }

  // One of the loads that were found, to search for places from: as it lies in a layout of its own. Where that is above
  // the limit, so much less is looked for, a few times. `then`: the part of the budget that is over.
  Laid lay_out_within(ParallelAnnealing& unplaced, const ParallelAnnealing& placed, const Budget& budget,
                      double* then) {
    const bool unmet = unplaced.best().worth.above_goal > 0;
    Laid laid{with_order(unmet && covering_ ? *covering_ : unplaced.best().choice, placed)};
    if (few_ && lay_out_thoroughly(laid.choice, budget, *then + kThoroughDelayed)) {
      *then += kThoroughDelayed;
      laid.choice.order = layouts_.order();
      return laid;
    }
    if (unmet) return laid;
    layout::Limits limits = layouts_.thorough();
    if (timed())
      limits.time = std::min(limits.time, nanoseconds(kCorrection * budget.seconds() * (few_ ? kShorter : 1)));
    std::uint64_t least = ~std::uint64_t{0};  // above the limit
    for (int k = 0; !is_over(); ++k) {
      auto footprint = layouts_.lay_out(unplaced.best().choice, Items::kAnywhere, limits, simulated_.allowed());
      if (!footprint) footprint = layouts_.lay_out(unplaced.best().choice, Items::kAnywhere, layouts_.brief());
      if (!footprint) break;
      const std::uint64_t above = *footprint - std::min(*footprint, simulated_.allowed());
      if (above < least) {
        least = above;
        laid.choice = unplaced.best().choice;
        laid.choice.order = layouts_.order();
      }
      if (above == 0 || k == kMostCorrections) break;
      if (timed()) *then = std::max(*then, budget.part_used());
      goal_ = std::max(goal_ - std::min(goal_, above), lower(goal_));
      unplaced.forget_worths();
      // Not hot: what was found is nearly right.
      delay(unplaced, budget, *then, *then + kCorrection, std::span(kUnplacedDelays).last<2>(), unplaced.best().choice,
            DelayMode::kPlacesFollow);
      *then += kCorrection;
      if (unplaced.best().worth.above_goal > 0) break;
    }
    laid.above = least > 0;
    return laid;
  }

  // A goal that leaves more room. How far a layout lies above the limit says little: a longer search for one may find
  // it within, and a much lower goal is seldom met.
  static std::uint64_t lower(std::uint64_t goal) {
    return static_cast<std::uint64_t>(kLessRoom * static_cast<double>(goal));
  }

  // To place items in.
  Choice with_order(Choice choice, const ParallelAnnealing& placed) const {
    choice.order = few_ ? placed.start().order : layouts_.order();
    return choice;
  }

  // By the layout planner, until so much of the budget is over. False where that is too short to be worth it.
  bool lay_out_thoroughly(const Choice& choice, const Budget& budget, double until) {
    const double seconds = budget.seconds() * until - budget.elapsed();
    if (!timed() || seconds < kLeastThorough) return false;
    layout::Limits limits = layouts_.brief();
    limits.time = nanoseconds(seconds);
    limits.threads = limits_.threads;
    return layouts_.lay_out(choice, Items::kThorough, limits).has_value();
  }

  // Whether what has the least load leaves something to gain by searching for places. Keeps the order in which it lies.
  bool needs_places(const ParallelAnnealing& annealing, std::uint64_t round) {
    if (!problem_.layout || candidates_.items.size() > kMostPlaced) return false;
    // Where stays are laid out by themselves, loads say nearly all; every second time.
    if (problem_.machine.remap_ns && round % 2 == 0) return false;
    const ParallelAnnealing::Found& best = annealing.best();
    const auto footprint = layouts_.lay_out(best.choice, Items::kAnywhere, layouts_.brief());
    // One load that lies well says little of others within a limit.
    if (delays_ || few_ || !footprint) return true;
    return static_cast<double>(*footprint) > kLoose * static_cast<double>(best.worth.height);
  }

  // One phase after the other, in the parts [from, to) of the budget.
  void delay(ParallelAnnealing& annealing, const Budget& budget, double from, double to,
             std::span<const DelayPhase> phases, Choice start, DelayMode mode = DelayMode::kPlain) {
    const double part = (to - from) / static_cast<double>(phases.size());
    double heat = 0;  // at least
    for (const DelayPhase& phase : phases) {
      const bool tried = !annealing.found().empty();
      const bool above =
          annealing.placed() && (tried ? annealing.best().worth.above_goal > 0 : mode == DelayMode::kFromAboveLimit);
      const DelayPhase& now = above ? kAboveLimit : phase;
      Annealing::Schedule next = schedule(annealing, std::max(std::exchange(heat, 0), now.heat));
      next.attempts *= 4;
      next.delays = true;
      next.delay_price = now.price;
      annealing.anneal(budget, from, from + part, start, next);
      from += part;
      start = annealing.best().choice;
      if (annealing.best().worth.above_goal == 0 && annealing.best().worth.added_ns == 0) return;
      if (mode == DelayMode::kPlacesFollow) {
        annealing.forget_worths();
      } else if (!make_room_for_the_rest(annealing, part * budget.seconds()) && covering_ && !annealing.placed()) {
        // A colder search would not come below the limit any more.
        start = *covering_;
        heat = phases.front().heat;
      }
    }
  }

  // The blocks that take no part in the search may need some bytes above the others; so may a layout. False: more than
  // the limit has. `phase`: seconds that the annealing had; a layout has a part of that.
  bool make_room_for_the_rest(ParallelAnnealing& annealing, double phase) {
    const ParallelAnnealing::Found& best = annealing.best();
    annealing.forget_worths();  // by the goal that was
    if (!best.is_tried()) return true;
    const double before = incumbent_.added_within();
    layout::Limits limits = layouts_.thorough();
    if (timed()) limits.time = std::min(limits.time, nanoseconds(kLayoutOfPhase * phase * (few_ ? kShorter : 1)));
    if (problem_.layout && !annealing.placed()) {
      if (!layouts_.offer_within(best.choice, limits)) {
        // Where not even the goal was met, a lower one would not be.
        if (best.worth.above_goal == 0) goal_ = lower(goal_);
        return false;
      }
    } else if (auto decisions =
                   finish(problem_, liveness_, candidates_, best.choice, items(annealing), layouts_.brief())) {
      if (problem_.layout) {
        const std::uint64_t footprint = footprint_of(problem_, *decisions);
        const std::uint64_t more = footprint - std::min(footprint, best.worth.height);
        const bool fits = footprint <= simulated_.allowed();
        goal_ = simulated_.allowed() -
                std::min(simulated_.allowed(), fits ? more : std::max(more, simulated_.allowed() - goal_));
        // They leave too little room for the rest.
        if (!fits) layouts_.offer_within(best.choice, limits);
      }
      offer(std::move(*decisions), best.worth.height, limits);
    }
    // Of a long search, the next round goes on from there.
    if (covering_ && !annealing.placed() && incumbent_.added_within() < before) covering_ = best.choice;
    return true;
  }

  static Items items(const ParallelAnnealing& annealing) {
    return annealing.placed() ? Items::kFirstFit : Items::kAnywhere;
  }

  void offer(Decisions decisions, std::uint64_t height, const layout::Limits& limits) {
    if (problem_.layout && delays_) {
      simulated_.offer(std::move(decisions), limits);
    } else {
      incumbent_.offer(std::move(decisions), height);
    }
  }

  void conclude(const ParallelAnnealing& annealing) {
    if (annealing.found().empty()) return;  // there was nothing to do for it
    // A layout within the limit is good enough where time is what counts.
    const auto capacity = delays_ && !annealing.placed() ? problem_.limit : std::nullopt;
    for (const ParallelAnnealing::Found& one : annealing.found()) {
      if (!one.is_tried()) continue;
      auto decisions =
          finish(problem_, liveness_, candidates_, one.choice, items(annealing), layouts_.brief(), capacity);
      if (decisions) offer(std::move(*decisions), one.worth.height, layouts_.thorough());
    }
    const ParallelAnnealing::Found& best = annealing.best();
    if (!best_ || best_->placed != annealing.placed() || best.worth < best_->worth) {
      best_ = Best{best.choice, best.worth, annealing.placed()};
    }
    attempts_ += annealing.attempts();
  }

  const Problem& problem_;
  const Liveness& liveness_;
  const bool hopeless_;  // one operation needs more than the limit
  const SearchLimits limits_;
  Budget all_;  // but for the layouts at its end
  EvictionCandidates candidates_;
  std::uint64_t goal_;
  bool delays_;
  bool few_;  // evictions
  std::uint64_t rest_bytes_;
  Incumbent incumbent_;
  Layouts layouts_;
  SimulatedLayouts simulated_;
  Choice greedy_;
  double room_for_layout_ = problem_.machine.remap_ns ? kRoomForStays : kRoomForLayout;
  std::optional<RuinAndRecreate> ruining_;
  std::optional<Choice> covering_;  // within the limit, with many waits
  std::optional<Best> best_;        // of all rounds
  std::uint64_t attempts_ = 0;
};

}  // namespace

SearchPlan search(const Problem& problem, const Liveness& liveness, Objective objective, const SearchLimits& limits,
                  const OnPlan& on_plan) {
  return Search(problem, liveness, objective, limits, on_plan).run();
}

}  // namespace memopt::swap
