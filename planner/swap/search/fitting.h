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
#include "planner/swap/search/stays.h"

namespace memopt::swap {

class Fitting {
 public:
  static constexpr double kInfinite = std::numeric_limits<double>::infinity();
  static constexpr std::uint32_t kGround = ~std::uint32_t{0};

  // How bytes and time are weighed against each other, in bytes.
  struct Prices {
    double goal = 0;        // a height below it is worth nothing
    double above_goal = 1;  // of a byte of height above the goal
    double crowd = 1;       // of a byte of the mean load (a power mean, which is close to the peak) above the goal
    double delay = 0;       // of a nanosecond
  };

  // All must outlive it.
  Fitting(const Problem& problem, const Lives& lives, const Candidates& candidates);

  void set(const Prices& prices) { prices_ = prices; }

  // The cost; infinite if it is above `most` or the choice can't be carried out. Absences for which there is no time
  // are taken out of the choice. Followed by keep(), or by another call, which forgets it.
  double attempt(Choice& choice, double most);
  void keep();

  // Of the last attempt() that was not infinite.
  std::uint64_t height() const { return height_; }

  // Of what was kept, by item.
  std::uint64_t top(std::uint32_t item) const { return tops_[item]; }
  std::uint32_t rank(std::uint32_t item) const { return rank_[item]; }    // in the order of placement
  std::uint32_t below(std::uint32_t item) const { return below_[item]; }  // the item it stands on, or kGround
  const Stay& stay(std::uint32_t item) const { return stays_[item]; }
  std::vector<std::uint64_t> places(std::uint32_t item) const;
  const CopyTimes& times() const { return times_; }
  const Clock& clock() const { return clock_; }

 private:
  // By offset; those of an item with several places are all there.
  struct Shelf {
    std::vector<std::uint64_t> from, to;
    std::vector<std::uint32_t> item;

    void clear();
    void insert(std::uint64_t begin, std::uint64_t end, std::uint32_t of);
  };
  struct Change {
    std::uint32_t item = 0;
    Stay before;
    std::vector<std::uint64_t> met_before;  // empty: not exchanged yet
  };

  bool find_changes(const Choice& choice);
  void find_met(std::uint32_t item);
  void exchange(std::uint32_t item, std::uint64_t* row);
  void undo();
  std::size_t find_affected(const Choice& choice);
  double crowd();
  double place(const Choice& choice, double rest, double most);
  std::uint64_t lowest(std::uint32_t item, std::uint64_t bytes, std::uint64_t alignment, std::uint32_t& below) const;
  double pile(double rest, double most);
  double cost_of(std::uint64_t height) const;

  const Problem& problem_;
  const Lives& lives_;
  const Candidates& candidates_;
  Clock clock_;
  CopyTimes times_;
  Stays maker_;
  Prices prices_;

  std::vector<std::uint64_t> bytes_, chunks_;  // by item; in whole chunks
  std::size_t words_;
  std::vector<std::uint64_t> could_meet_, meets_, met_;  // bits, a row for each item
  std::vector<Stay> whole_, stays_;                      // by item
  Stay stay_;
  std::vector<Change> changes_;
  std::size_t changed_ = 0;  // of changes_
  bool open_ = false;        // an attempt that is neither kept nor forgotten

  std::vector<std::uint32_t> order_, rank_, new_rank_;
  Shelf shelf_, new_shelf_;
  std::vector<std::uint64_t> tops_, new_tops_;
  std::vector<std::uint32_t> below_, new_below_;
  std::vector<std::uint64_t> bottoms_, new_bottoms_;  // the first place of each item
  // Bits: items that are not what or where they were; items that have ceased to meet one.
  std::vector<std::uint64_t> affected_, freed_;
  std::vector<double> bins_;
  std::vector<std::pair<Point, std::int64_t>> events_;
  std::uint64_t height_ = 0;
};

}  // namespace memopt::swap
