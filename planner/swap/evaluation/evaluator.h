// What a choice costs. Each item goes to the lowest place that is free whenever it is on the
// device, in the choice's order; without layout, bytes are interchangeable.
//
// Built for search: a choice is tried against the last one that was kept, and only what differs is computed: the
// residency of items whose copies moved, their conflicts, and the places behind the first item that is affected. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "planner/swap/evaluation/conflicts.h"
#include "planner/swap/evaluation/copy_times.h"
#include "planner/swap/evaluation/eviction_candidates.h"
#include "planner/swap/evaluation/packing.h"
#include "planner/swap/evaluation/residency_intervals.h"
#include "planner/swap/simulation/clock.h"

namespace memopt::swap {

class Evaluator {
 public:
  static constexpr double kInfinite = std::numeric_limits<double>::infinity();
  static constexpr std::uint32_t kGround = Packing::kGround;

  // How bytes and time are weighed against each other, in bytes.
  struct Prices {
    double goal = 0;        // a height below it is worth nothing
    double above_goal = 1;  // of a byte of height above the goal
    double mean_load = 1;   // of a byte of the mean load (a power mean, which is close to the peak) above the goal
    double delay = 0;       // of a nanosecond
  };

  enum class Places {
    kFirstFit,  // the height is that of the places
    kNone,      // nothing is placed; the height is that of the load, in whole chunks if there is a layout, and roughly
  };

  // All must outlive it. A problem without layout has no places.
  Evaluator(const Problem& problem, const Liveness& liveness, const EvictionCandidates& candidates,
            Places places = Places::kFirstFit);

  void set(const Prices& prices) { prices_ = prices; }

  // The cost; infinite if it is above `most` or the choice can't be carried out. Evictions for which there is no time
  // are taken out of the choice. Followed by keep(), or by another call, which forgets it.
  double attempt(Choice& choice, double most);
  void keep();

  // Of the last attempt() that was not infinite.
  std::uint64_t height() const { return height_; }

  // Of what was kept, by item.
  std::uint64_t top(std::uint32_t item) const { return placed_ ? packing_.top(item) : tops_[item]; }
  // In the order of placement. Where nothing is placed, all stand on the ground.
  std::uint32_t rank(std::uint32_t item) const { return packing_.rank(item); }
  std::uint32_t below(std::uint32_t item) const { return placed_ ? packing_.below(item) : kGround; }
  const ItemResidency& residency(std::uint32_t item) const { return residencies_[item]; }
  const std::vector<std::uint64_t>& places(std::uint32_t item) const { return packing_.places(item); }
  const CopyTimes& times() const { return times_; }
  const Clock& clock() const { return clock_; }
  bool placed() const { return placed_; }

  // By how much the load changes at equal parts of the iteration, by what was tried last; the last one is its end.
  const std::vector<std::int64_t>& load() const { return bins_; }

 private:
  struct Change {
    std::uint32_t item = 0;
    ItemResidency before;
    ItemSet conflicts_before;  // empty: not updated yet
  };

  bool find_changes(const Choice& choice);
  void take(std::uint32_t item, const ItemResidency& residency);
  void undo();
  void count(std::uint32_t item, std::int64_t sign);
  double mean_load() const;
  double place(const Choice& choice, double rest, double most);
  double peak_load(double rest, double most);
  double peak_load_of_parts(double rest, double most);
  double cost_of_peak(std::uint64_t height, Point when, double rest, double most);
  double cost_of(std::uint64_t height) const;

  const Problem& problem_;
  const EvictionCandidates& candidates_;
  bool placed_;
  Clock clock_;
  CopyTimes times_;
  ResidencyIntervals intervals_;
  Prices prices_;
  double points_;  // of an iteration
  double peak_;    // load without swaps

  std::vector<ItemResidency> whole_, residencies_;  // by item
  std::vector<Packing::Shape> shapes_;
  Conflicts conflicts_;
  Packing packing_;
  std::vector<std::int64_t> bins_;  // what the load changes by, at equal parts of the iteration
  std::uint64_t height_ = 0;

  // What was kept.
  std::vector<Delay> delays_;
  std::vector<std::uint32_t> used_;         // evictions
  std::vector<std::uint8_t> in_use_;        // by eviction
  std::vector<double> out_end_, in_begin_;  // by eviction

  std::vector<Change> changes_;
  std::size_t changed_ = 0;  // of changes_
  bool open_ = false;        // an attempt that is neither kept nor forgotten
  std::vector<std::uint32_t> changed_items_;
  ItemSet ceased_;  // items that no longer conflict with one of these
  std::vector<std::uint32_t> looked_at_;
  ItemResidency residency_;

  // Where nothing is placed: what is there at the peak.
  std::vector<std::pair<Point, std::int64_t>> events_;
  std::vector<std::uint64_t> tops_, new_tops_;
};

}  // namespace memopt::swap
