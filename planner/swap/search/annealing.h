// Internal to the room: simulated annealing (Kirkpatrick, Gelatt and Vecchi, Science 220, 1983) over which blocks are
// away when, when their copies out are issued, in which order items are placed, and (where time may be added) which
// operations wait; two blocks may take each other's part. Half of the moves look at what decides the height: a stack of
// items, each standing on the next, that reaches from the top to the ground.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "planner/swap/evaluation/evaluator.h"

namespace memopt::swap {

// How good a choice is: less above the goal first, then less time, then less height.
struct Worth {
  std::uint64_t above_goal = ~std::uint64_t{0};
  double added_ns = 0;
  std::uint64_t height = 0;

  friend auto operator<=>(const Worth&, const Worth&) = default;
};

class Annealing {
 public:
  struct Schedule {
    std::uint64_t attempts = 0;
    double hot = 0, cold = 0;  // bytes: the first and the last temperature
    std::uint64_t goal = 0;    // ends when it is reached at no added time
    bool delays = false;       // operations may wait
    double delay_price = 0;    // of a nanosecond, in what an engine copies in it
  };
  // Of the time that this course has, the part that is over; 1 ends it.
  using Elapsed = std::function<double()>;

  Annealing(const Problem& problem, const Liveness& liveness, const EvictionCandidates& candidates,
            Evaluator::Places places, std::uint64_t seed);

  // Nothing away, the largest and longest items placed first.
  Choice start() const;

  void run(const Choice& from, const Schedule& schedule, const Elapsed& elapsed);

  // What was best, for instance by a goal that is not looked for any more.
  void forget() { worth_ = {}; }

  const Choice& best() const { return best_; }
  const Worth& worth() const { return worth_; }
  std::uint64_t attempts() const { return attempts_; }

 private:
  std::uint32_t number_below(std::size_t count) { return static_cast<std::uint32_t>(random_() % count); }
  double fraction() { return static_cast<double>(random_() >> 11) * 0x1p-53; }  // in [0, 1)
  bool chance(double p) { return fraction() < p; }
  std::uint32_t top_item();
  std::uint32_t item_of_stack();
  bool change(Choice& choice, bool delays);
  bool reorder(Choice& choice);
  bool toggle_in_stack(Choice& choice);
  void toggle_any(Choice& choice);
  bool pick_evicted(const Choice& choice, std::uint32_t* picked);
  std::uint64_t end_of(const Eviction& eviction) const;
  bool exchange(Choice& choice);
  bool shift(Choice& choice);
  bool change_delay(Choice& choice);
  Worth worth_of(const Choice& choice, std::uint64_t goal) const;

  const Problem& problem_;
  const Liveness& liveness_;
  const EvictionCandidates& candidates_;
  Evaluator evaluator_;
  std::mt19937_64 random_;
  Choice now_, trial_, best_;
  Worth worth_;
  std::uint64_t height_ = 0;  // of now_
  std::uint64_t attempts_ = 0;
};

}  // namespace memopt::swap
