// Internal to the room: what a choice costs. Each item goes to the lowest place that is free whenever it is on the
// device, in the choice's order; without layout, bytes are interchangeable.
//
// Built for search: a choice is tried against the last one that was kept, and only what differs is computed: the stays
// of items whose copies moved, who meets them, and the places behind the first item that is affected. Not thread-safe.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "planner/swap/clock.h"
#include "planner/swap/search/absences.h"
#include "planner/swap/search/copy_times.h"
#include "planner/swap/search/meetings.h"
#include "planner/swap/search/packing.h"
#include "planner/swap/search/stays.h"

namespace memopt::swap {

class Fitting {
 public:
  static constexpr double kInfinite = std::numeric_limits<double>::infinity();
  static constexpr std::uint32_t kGround = Packing::kGround;

  // How bytes and time are weighed against each other, in bytes.
  struct Prices {
    double goal = 0;        // a height below it is worth nothing
    double above_goal = 1;  // of a byte of height above the goal
    double crowd = 1;       // of a byte of the mean load (a power mean, which is close to the peak) above the goal
    double delay = 0;       // of a nanosecond
  };

  enum class Places {
    kFirstFit,  // the height is that of the places
    kNone,      // nothing is placed; the height is that of the load, in whole chunks if there is a layout, and roughly
  };

  // All must outlive it. A problem without layout has no places.
  Fitting(const Problem& problem, const Lives& lives, const Candidates& candidates, Places places = Places::kFirstFit);

  void set(const Prices& prices) { prices_ = prices; }

  // The cost; infinite if it is above `most` or the choice can't be carried out. Absences for which there is no time
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
  const Stay& stay(std::uint32_t item) const { return stays_[item]; }
  const std::vector<std::uint64_t>& places(std::uint32_t item) const { return packing_.places(item); }
  const CopyTimes& times() const { return times_; }
  const Clock& clock() const { return clock_; }
  bool placed() const { return placed_; }

  // By how much the load changes at equal parts of the iteration, by what was tried last; the last one is its end.
  const std::vector<std::int64_t>& load() const { return bins_; }

 private:
  struct Change {
    std::uint32_t item = 0;
    Stay before;
    ItemSet met_before;  // empty: not updated yet
  };

  bool find_changes(const Choice& choice);
  void take(std::uint32_t item, const Stay& stay);
  void undo();
  void count(std::uint32_t item, std::int64_t sign);
  double crowd() const;
  double place(const Choice& choice, double rest, double most);
  double pile(double rest, double most);
  double heap(double rest, double most);
  double peaks(std::uint64_t height, Point when, double rest, double most);
  double cost_of(std::uint64_t height) const;

  const Problem& problem_;
  const Candidates& candidates_;
  bool placed_;
  Clock clock_;
  CopyTimes times_;
  Stays maker_;
  Prices prices_;
  double points_;  // of an iteration
  double peak_;    // load without swaps

  std::vector<Stay> whole_, stays_;  // by item
  std::vector<Packing::Shape> shapes_;
  Meetings meetings_;
  Packing packing_;
  std::vector<std::int64_t> bins_;  // what the load changes by, at equal parts of the iteration
  std::uint64_t height_ = 0;

  // What the stays that were kept are of.
  std::vector<Delay> delays_;
  std::vector<std::uint32_t> used_;         // absences
  std::vector<std::uint8_t> in_use_;        // by absence
  std::vector<double> out_end_, in_begin_;  // by absence

  std::vector<Change> changes_;
  std::size_t changed_ = 0;  // of changes_
  bool open_ = false;        // an attempt that is neither kept nor forgotten
  std::vector<std::uint32_t> changed_items_;
  ItemSet freed_;  // who has ceased to meet one of these
  std::vector<std::uint32_t> looked_at_;
  Stay stay_;

  // Where nothing is placed: what is there at the peak.
  std::vector<std::pair<Point, std::int64_t>> events_;
  std::vector<std::uint64_t> tops_, new_tops_;
};

}  // namespace memopt::swap
