// Internal to the room: annealing on several threads, each with its own random numbers, for a part of a budget of time
// and attempts.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "planner/swap/search/annealing.h"

namespace memopt::swap {

// Begins when it is made. `attempts` are of each thread, and of the kind that places items; those that place nothing
// cost an eighth of one.
class Budget {
 public:
  static constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};
  static constexpr std::uint64_t kUnplacedPerAttempt = 8;

  Budget(double seconds, std::uint64_t attempts, const std::atomic<bool>* cancelled)
      : begin_(SteadyClock::now()), seconds_(seconds), attempts_(attempts), cancelled_(cancelled) {}

  double seconds() const { return seconds_; }
  // More than there can be, where it is cancelled.
  double elapsed() const {
    if (is_cancelled()) return std::numeric_limits<double>::infinity();
    return std::chrono::duration<double>(SteadyClock::now() - begin_).count();
  }
  // In [0, 1].
  double part_used() const {
    const double now = elapsed();
    return now < seconds_ ? now / seconds_ : 1;
  }
  bool is_cancelled() const { return cancelled_ != nullptr && cancelled_->load(std::memory_order_relaxed); }
  // For the parts [from, to) of it; 0 where the first is not the lower one.
  std::uint64_t attempts(double from, double to, bool placed) const;

 private:
  using SteadyClock = std::chrono::steady_clock;
  SteadyClock::time_point begin_;
  double seconds_;
  std::uint64_t attempts_;
  const std::atomic<bool>* cancelled_;
};

class ParallelAnnealing {
 public:
  struct Found {
    Choice choice;
    Worth worth;

    bool is_tried() const { return worth.above_goal != Worth{}.above_goal; }  // there was time
  };

  ParallelAnnealing(const Problem& problem, const Liveness& liveness, const EvictionCandidates& candidates,
                    Evaluator::Places places, std::uint64_t seed, unsigned threads);

  // Nothing away, the largest and longest items placed first.
  Choice start() const { return annealers_.front()->start(); }
  bool placed() const { return placed_; }

  // All anneal for the parts [from, to) of the budget: again and again from `start`, each time with so many attempts at
  // most, until the goal is reached at no added time.
  void anneal(const Budget& budget, double from, double to, const Choice& start, const Annealing::Schedule& schedule);

  // What each thread found, the best first; what it began with where there was no time.
  const std::vector<Found>& found() const { return found_; }
  const Found& best() const { return found_.front(); }
  // The worth by a goal that was another is none.
  void forget_worths();
  std::uint64_t attempts() const;

 private:
  bool placed_;
  std::vector<std::unique_ptr<Annealing>> annealers_;
  std::vector<Found> found_;
};

}  // namespace memopt::swap
