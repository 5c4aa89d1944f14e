#include "planner/layout/published/occupied_space.h"

namespace memopt::layout {

OccupiedSpace::OccupiedSpace(const Problem& problem) : problem_(problem) {
  std::vector<std::uint64_t> times;
  times.reserve(2 * problem.intervals.size());
  for (const Interval& interval : problem.intervals) {
    times.push_back(interval.begin);
    times.push_back(interval.end);
  }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  const auto rank = [&](std::uint64_t time) {
    return static_cast<std::int32_t>(std::lower_bound(times.begin(), times.end(), time) - times.begin());
  };
  ranges_.reserve(problem.intervals.size());
  for (const Interval& interval : problem.intervals) ranges_.push_back({rank(interval.begin), rank(interval.end)});
  buckets_.push_back(std::make_unique<Bucket>());
}

OccupiedSpace::Bucket::Bucket() {
  begin.fill(INT32_MAX);
  end.fill(INT32_MIN);
}

void OccupiedSpace::Bucket::insert(std::size_t at, TimeRange range, std::uint64_t its_bottom, std::uint64_t its_top) {
  const auto put = [&](auto& values, auto value) {
    std::move_backward(values.begin() + at, values.begin() + size, values.begin() + size + 1);
    values[at] = value;
  };
  put(begin, range.begin);
  put(end, range.end);
  put(bottom, its_bottom);
  put(top, its_top);
  ++size;
  hull = {std::min(hull.begin, range.begin), std::max(hull.end, range.end)};
  highest = std::max(highest, its_top);
}

void OccupiedSpace::insert(TimeRange range, std::uint64_t bottom, std::uint64_t top) {
  // The last bucket that starts at or below `bottom`; the first bucket if all start above.
  auto place = std::partition_point(buckets_.begin() + 1, buckets_.end(),
                                    [&](const auto& bucket) { return bucket->bottom[0] <= bottom; }) -
               1;
  if ((*place)->size == kEntries) {
    Bucket& full = **place;
    auto upper = std::make_unique<Bucket>();
    auto lower = std::make_unique<Bucket>();
    for (std::size_t i = 0; i < kEntries; ++i) {
      Bucket& half = i < kEntries / 2 ? *lower : *upper;
      half.insert(half.size, {full.begin[i], full.end[i]}, full.bottom[i], full.top[i]);
    }
    const bool above = upper->bottom[0] <= bottom;
    *place = std::move(lower);
    place = buckets_.insert(place + 1, std::move(upper));
    if (!above) --place;
  }
  Bucket& bucket = **place;
  const auto end = bucket.bottom.begin() + static_cast<std::ptrdiff_t>(bucket.size);
  const auto at = std::upper_bound(bucket.bottom.begin(), end, bottom) - bucket.bottom.begin();
  bucket.insert(static_cast<std::size_t>(at), range, bottom, top);
}

void OccupiedSpace::take(std::size_t buffer, std::uint64_t bottom, std::uint64_t top) {
  const Buffer& it = problem_.buffers[buffer];
  for (std::uint32_t i = it.first; i < it.first + it.count; ++i) insert(ranges_[i], bottom, top);
}

}  // namespace memopt::layout
