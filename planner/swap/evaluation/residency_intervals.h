// Residency intervals: when each item is on the device, copies included, on the circle of one iteration.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/swap/evaluation/copy_times.h"
#include "planner/swap/evaluation/eviction_candidates.h"
#include "planner/swap/simulation/clock.h"

namespace memopt::swap {

struct PointInterval {
  Point begin = 0, end = 0;

  friend bool operator==(const PointInterval&, const PointInterval&) = default;
};

struct ItemResidency {
  std::vector<PointInterval> intervals;  // ascending, without common points
  std::uint32_t places = 1;              // of more than one, each is taken all the time
  bool swapped = false;

  friend bool operator==(const ItemResidency&, const ItemResidency&) = default;
};

inline bool conflict(const ItemResidency& a, const ItemResidency& b) {
  for (const PointInterval& x : a.intervals) {
    for (const PointInterval& y : b.intervals) {
      if (x.begin < y.end && y.begin < x.end) return true;
    }
  }
  return false;
}

// On the device in between two evictions, on the line of its instance.
struct PointStay {
  std::uint32_t brought_by = kBorn;  // the eviction behind which it is back
  PointInterval when;

  static constexpr std::uint32_t kBorn = ~std::uint32_t{0};
};

class ResidencyIntervals {
 public:
  ResidencyIntervals(const Problem& problem, const Liveness& liveness, const EvictionCandidates& candidates,
                     const Clock& clock)
      : problem_(problem), liveness_(liveness), candidates_(candidates), clock_(clock) {}

  // Of an item, with the evictions chosen at the times found. False if it would be away while it is accessed.
  bool find(std::uint32_t item, const Choice& choice, const CopyTimes& times, ItemResidency& residency) const;
  // The same, as what lies in between evictions, in order; those of a persistent item begin behind its first one.
  std::vector<PointStay> stays(std::uint32_t item, const Choice& choice, const CopyTimes& times) const;
  // On the circle. Intervals that have points in common: it is longer than that.
  std::vector<PointInterval> on_circle(const PointInterval& when) const;
  // Of an item that is never away: all its life.
  ItemResidency whole(std::uint32_t item) const;

 private:
  void put(Point begin, Point end, ItemResidency& residency) const;
  void close(Point first, Point last, ItemResidency& residency) const;

  const Problem& problem_;
  const Liveness& liveness_;
  const EvictionCandidates& candidates_;
  const Clock& clock_;
};

}  // namespace memopt::swap
