#include "planner/layout/occupied_space.h"

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
  spans_.reserve(problem.intervals.size());
  for (const Interval& interval : problem.intervals) spans_.push_back({rank(interval.begin), rank(interval.end)});
  blocks_.push_back(std::make_unique<Block>());
}

OccupiedSpace::Block::Block() {
  begin.fill(INT32_MAX);
  end.fill(INT32_MIN);
}

void OccupiedSpace::Block::insert(std::size_t at, Span span, std::uint64_t its_bottom, std::uint64_t its_top) {
  const auto put = [&](auto& values, auto value) {
    std::move_backward(values.begin() + at, values.begin() + size, values.begin() + size + 1);
    values[at] = value;
  };
  put(begin, span.begin);
  put(end, span.end);
  put(bottom, its_bottom);
  put(top, its_top);
  ++size;
  hull = {std::min(hull.begin, span.begin), std::max(hull.end, span.end)};
  highest = std::max(highest, its_top);
}

void OccupiedSpace::insert(Span span, std::uint64_t bottom, std::uint64_t top) {
  // The last block that begins at or below; the first block takes what is below all.
  auto place = std::partition_point(blocks_.begin() + 1, blocks_.end(),
                                    [&](const auto& block) { return block->bottom[0] <= bottom; }) -
               1;
  if ((*place)->size == kEntries) {
    Block& full = **place;
    auto upper = std::make_unique<Block>();
    auto lower = std::make_unique<Block>();
    for (std::size_t i = 0; i < kEntries; ++i) {
      Block& half = i < kEntries / 2 ? *lower : *upper;
      half.insert(half.size, {full.begin[i], full.end[i]}, full.bottom[i], full.top[i]);
    }
    const bool above = upper->bottom[0] <= bottom;
    *place = std::move(lower);
    place = blocks_.insert(place + 1, std::move(upper));
    if (!above) --place;
  }
  Block& block = **place;
  const auto end = block.bottom.begin() + static_cast<std::ptrdiff_t>(block.size);
  const auto at = std::upper_bound(block.bottom.begin(), end, bottom) - block.bottom.begin();
  block.insert(static_cast<std::size_t>(at), span, bottom, top);
}

void OccupiedSpace::take(std::size_t buffer, std::uint64_t bottom, std::uint64_t top) {
  const Buffer& it = problem_.buffers[buffer];
  for (std::uint32_t i = it.first; i < it.first + it.count; ++i) insert(spans_[i], bottom, top);
}

}  // namespace memopt::layout
