// Internal to the room: when each item is on the device, copies included, as stretches of the circle of one iteration.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/swap/clock.h"
#include "planner/swap/search/absences.h"
#include "planner/swap/search/copy_times.h"

namespace memopt::swap {

struct Stretch {
  Point begin = 0, end = 0;

  friend bool operator==(const Stretch&, const Stretch&) = default;
};

struct Stay {
  std::vector<Stretch> when;  // ascending, without common points
  std::uint32_t places = 1;   // of more than one, each is taken all the time
  bool swapped = false;

  friend bool operator==(const Stay&, const Stay&) = default;
};

inline bool meet(const Stay& a, const Stay& b) {
  for (const Stretch& x : a.when) {
    for (const Stretch& y : b.when) {
      if (x.begin < y.end && y.begin < x.end) return true;
    }
  }
  return false;
}

class Stays {
 public:
  Stays(const Problem& problem, const Lives& lives, const Candidates& candidates, const Clock& clock)
      : problem_(problem), lives_(lives), candidates_(candidates), clock_(clock) {}

  // Of an item, with the absences chosen at the times found. False if it would be away while it is accessed.
  bool find(std::uint32_t item, const Choice& choice, const CopyTimes& times, Stay& stay) const;
  // Of an item that is never away: all its life.
  Stay whole(std::uint32_t item) const;

 private:
  void put(Point begin, Point end, Stay& stay) const;
  void close(Point first, Point last, Stay& stay) const;

  const Problem& problem_;
  const Lives& lives_;
  const Candidates& candidates_;
  const Clock& clock_;
};

}  // namespace memopt::swap
