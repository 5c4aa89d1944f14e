// When operations begin and end, and points between them, on a line that begins with the
// iteration in which an instance is born.
//
// Operations of no length are told apart by points: operation i, counted over iterations, is [i, i + 1), and a point
// inside it is so far into it as its time is. A moment in which several operations begin and end has a range of points.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/swap/model/model.h"

namespace memopt::swap {

using Point = std::uint64_t;  // operations, in units of 2^-16

inline constexpr unsigned kPointBits = 16;

inline Point point_of(std::uint64_t position) { return position << kPointBits; }

// An operation begins so much later than the one before it has ended.
struct Delay {
  std::uint64_t operation = 0;
  double ns = 0;

  friend bool operator==(const Delay&, const Delay&) = default;
};

class Clock {
 public:
  explicit Clock(const Problem& problem);

  // From now on these operations wait, and no others: an iteration becomes longer by their sum. Ascending. O(n) where
  // they differ from those before.
  void delay(std::span<const Delay> delays);

  std::span<const Delay> delays() const { return delays_; }
  std::uint64_t operations() const { return begin_.size(); }
  double period() const { return period_; }
  double begin(std::uint64_t position) const { return at(begin_, position); }
  double end(std::uint64_t position) const { return at(end_, position); }
  // Of an operation in its iteration.
  double begin_in_iteration(std::uint64_t position) const { return begin_[position % operations()]; }
  double end_in_iteration(std::uint64_t position) const { return end_[position % operations()]; }

  // The first point that lies at `time` or behind it: what ends then is out of the way of operations that begin then.
  Point not_before(double time) const;
  // The last point that lies at `time` or before it.
  Point not_after(double time) const;
  // The last position in [least, below) that has ended by then; `least` if none has.
  std::uint64_t last_ended(double time, std::uint64_t least, std::uint64_t below) const;

 private:
  double at(const std::vector<double>& times, std::uint64_t position) const {
    const std::uint64_t n = times.size();
    if (position < n) return times[position];
    return static_cast<double>(position / n) * period_ + times[position % n];
  }

  const Problem& problem_;
  std::vector<Delay> delays_;
  double period_;
  std::vector<double> begin_, end_;
};

}  // namespace memopt::swap
