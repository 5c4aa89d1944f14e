#include "planner/swap/evaluation/residency_intervals.h"

#include <algorithm>

namespace memopt::swap {

void ResidencyIntervals::put(Point begin, Point end, ItemResidency& residency) const {
  const Point circle = point_of(liveness_.operations);
  const Point length = end - begin;
  if (length >= circle) {
    // Longer than the circle: in its own way, as close() will find.
    residency.intervals.push_back({0, circle});
    if (length > circle) residency.intervals.push_back({begin % circle, begin % circle + 1});
    return;
  }
  begin %= circle;
  if (begin + length <= circle) {
    residency.intervals.push_back({begin, begin + length});
  } else {
    residency.intervals.push_back({begin, circle});
    residency.intervals.push_back({0, begin + length - circle});
  }
}

// Where two instances would be on their own bytes, each gets its place.
void ResidencyIntervals::close(Point first, Point last, ItemResidency& residency) const {
  const Point circle = point_of(liveness_.operations);
  std::sort(residency.intervals.begin(), residency.intervals.end(), [](const PointInterval& a, const PointInterval& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  residency.places = 1;
  for (std::size_t k = 1; k < residency.intervals.size(); ++k) {
    if (residency.intervals[k].begin >= residency.intervals[k - 1].end) continue;
    residency.places = static_cast<std::uint32_t>((last - first - 1) / circle + 1);
    residency.intervals.assign(1, {0, circle});
    return;
  }
}

bool ResidencyIntervals::find(std::uint32_t item, const Choice& choice, const CopyTimes& times,
                              ItemResidency& residency) const {
  const Item& it = candidates_.items[item];
  residency.intervals.clear();
  residency.places = 1;
  residency.swapped = true;
  const std::uint32_t begin = it.first_eviction, end = begin + it.evictions;
  if (problem_.blocks[it.block].persistent) {
    const auto next_of = [&](std::uint32_t a) {
      while (a < end && choice.evicted[a] == 0) ++a;
      return a;
    };
    const std::uint32_t first = next_of(begin);
    for (std::uint32_t a = first; a < end;) {
      const std::uint32_t next = next_of(a + 1);
      // It goes out again before it is back: of a block without accesses, several evictions are tried.
      const std::uint64_t leaves =
          next < end ? candidates_.evictions[next].leaves : candidates_.evictions[first].leaves + liveness_.operations;
      if (candidates_.evictions[a].needed > leaves) return false;
      const double out = next < end ? times.out_end(next) : times.out_end(first) + clock_.period();
      const Point from = clock_.not_after(times.in_begin(a)), to = clock_.not_before(out);
      if (to <= from) return false;
      put(from, to, residency);
      a = next;
    }
    close(0, 1, residency);
    return residency.places == 1 && residency.intervals.size() <= 2 * static_cast<std::size_t>(it.evictions);
  }
  const Lifetime& lifetime = liveness_.of[it.block];
  const Point first = point_of(lifetime.start);
  Point from = first, last = point_of(lifetime.freed + 1);
  bool away = false;
  for (std::uint32_t a = begin; a < end && !away; ++a) {
    if (choice.evicted[a] == 0) continue;
    const Point to = clock_.not_before(times.out_end(a));
    if (to <= from) return false;
    put(from, to, residency);
    away = !candidates_.evictions[a].returns();
    if (away) {
      last = to;
    } else {
      from = clock_.not_after(times.in_begin(a));
    }
  }
  if (!away) put(from, last, residency);
  close(first, last, residency);
  return true;
}

std::vector<PointStay> ResidencyIntervals::stays(std::uint32_t item, const Choice& choice,
                                                 const CopyTimes& times) const {
  const Item& it = candidates_.items[item];
  std::vector<std::uint32_t> used;
  for (std::uint32_t a = it.first_eviction; a < it.first_eviction + it.evictions; ++a) {
    if (choice.evicted[a] != 0) used.push_back(a);
  }
  std::vector<PointStay> result;
  if (problem_.blocks[it.block].persistent) {
    for (std::size_t k = 0; k < used.size(); ++k) {
      const bool last = k + 1 == used.size();
      const double out = last ? times.out_end(used[0]) + clock_.period() : times.out_end(used[k + 1]);
      result.push_back({used[k], {clock_.not_after(times.in_begin(used[k])), clock_.not_before(out)}});
    }
    return result;
  }
  const Lifetime& lifetime = liveness_.of[it.block];
  PointStay now{PointStay::kBorn, {point_of(lifetime.start), 0}};
  for (const std::uint32_t a : used) {
    now.when.end = clock_.not_before(times.out_end(a));
    result.push_back(now);
    if (!candidates_.evictions[a].returns()) return result;
    now = {a, {clock_.not_after(times.in_begin(a)), 0}};
  }
  now.when.end = point_of(lifetime.freed + 1);
  result.push_back(now);
  return result;
}

std::vector<PointInterval> ResidencyIntervals::on_circle(const PointInterval& when) const {
  ItemResidency residency;
  put(when.begin, when.end, residency);
  return residency.intervals;
}

ItemResidency ResidencyIntervals::whole(std::uint32_t item) const {
  const Item& it = candidates_.items[item];
  ItemResidency residency;
  if (problem_.blocks[it.block].persistent) {
    residency.intervals.push_back({0, point_of(liveness_.operations)});
    return residency;
  }
  const Lifetime& lifetime = liveness_.of[it.block];
  put(point_of(lifetime.start), point_of(lifetime.freed + 1), residency);
  close(point_of(lifetime.start), point_of(lifetime.freed + 1), residency);
  return residency;
}

}  // namespace memopt::swap
