#include "planner/swap/search/stays.h"

#include <algorithm>

namespace memopt::swap {

void Stays::put(Point begin, Point end, Stay& stay) const {
  const Point circle = point_of(lives_.operations);
  const Point length = end - begin;
  if (length >= circle) {
    // Longer than the circle: in its own way, as close() will find.
    stay.when.push_back({0, circle});
    if (length > circle) stay.when.push_back({begin % circle, begin % circle + 1});
    return;
  }
  begin %= circle;
  if (begin + length <= circle) {
    stay.when.push_back({begin, begin + length});
  } else {
    stay.when.push_back({begin, circle});
    stay.when.push_back({0, begin + length - circle});
  }
}

// Where two instances would be on their own bytes, each gets its place.
void Stays::close(Point first, Point last, Stay& stay) const {
  const Point circle = point_of(lives_.operations);
  std::sort(stay.when.begin(), stay.when.end(),
            [](const Stretch& a, const Stretch& b) { return a.begin != b.begin ? a.begin < b.begin : a.end < b.end; });
  stay.places = 1;
  for (std::size_t k = 1; k < stay.when.size(); ++k) {
    if (stay.when[k].begin >= stay.when[k - 1].end) continue;
    stay.places = static_cast<std::uint32_t>((last - first - 1) / circle + 1);
    stay.when.assign(1, {0, circle});
    return;
  }
}

bool Stays::find(std::uint32_t item, const Choice& choice, const CopyTimes& times, Stay& stay) const {
  const Item& it = candidates_.items[item];
  stay.when.clear();
  stay.places = 1;
  stay.swapped = true;
  const std::uint32_t begin = it.first_absence, end = begin + it.absences;
  if (problem_.blocks[it.block].persistent) {
    const auto next_of = [&](std::uint32_t a) {
      while (a < end && choice.away[a] == 0) ++a;
      return a;
    };
    const std::uint32_t first = next_of(begin);
    for (std::uint32_t a = first; a < end;) {
      const std::uint32_t next = next_of(a + 1);
      // It goes out again before it is back: of a block without accesses, several absences are tried.
      const std::uint64_t leaves =
          next < end ? candidates_.absences[next].leaves : candidates_.absences[first].leaves + lives_.operations;
      if (candidates_.absences[a].needed > leaves) return false;
      const double out = next < end ? times.out_end(next) : times.out_end(first) + clock_.period();
      const Point from = clock_.not_after(times.in_begin(a)), to = clock_.not_before(out);
      if (to <= from) return false;
      put(from, to, stay);
      a = next;
    }
    close(0, 1, stay);
    return stay.places == 1 && stay.when.size() <= 2 * static_cast<std::size_t>(it.absences);
  }
  const Life& life = lives_.of[it.block];
  const Point first = point_of(life.start);
  Point from = first, last = point_of(life.freed + 1);
  bool away = false;
  for (std::uint32_t a = begin; a < end && !away; ++a) {
    if (choice.away[a] == 0) continue;
    const Point to = clock_.not_before(times.out_end(a));
    if (to <= from) return false;
    put(from, to, stay);
    away = !candidates_.absences[a].returns();
    if (away) {
      last = to;
    } else {
      from = clock_.not_after(times.in_begin(a));
    }
  }
  if (!away) put(from, last, stay);
  close(first, last, stay);
  return true;
}

Stay Stays::whole(std::uint32_t item) const {
  const Item& it = candidates_.items[item];
  Stay stay;
  if (problem_.blocks[it.block].persistent) {
    stay.when.push_back({0, point_of(lives_.operations)});
    return stay;
  }
  const Life& life = lives_.of[it.block];
  put(point_of(life.start), point_of(life.freed + 1), stay);
  close(point_of(life.start), point_of(life.freed + 1), stay);
  return stay;
}

}  // namespace memopt::swap
