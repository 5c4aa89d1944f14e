#include "ranges.h"

#include <algorithm>
#include <iterator>

namespace launch_effects {

void Ranges::add(Range range) {
  if (range.begin >= range.end) return;
  auto at = ends_.upper_bound(range.begin);
  if (at != ends_.begin() && std::prev(at)->second >= range.begin) --at;
  while (at != ends_.end() && at->first <= range.end) {
    range.begin = std::min(range.begin, at->first);
    range.end = std::max(range.end, at->second);
    at = ends_.erase(at);
  }
  ends_.emplace(range.begin, range.end);
}

bool Ranges::contains(Range range) const {
  if (range.begin >= range.end) return true;
  const auto after = ends_.upper_bound(range.begin);
  return after != ends_.begin() && std::prev(after)->second >= range.end;
}

std::vector<Range> Ranges::inside(Range range) const {
  std::vector<Range> found;
  auto at = ends_.upper_bound(range.begin);
  if (at != ends_.begin()) --at;
  for (; at != ends_.end() && at->first < range.end; ++at) {
    const Range part{std::max(range.begin, at->first), std::min(range.end, at->second)};
    if (part.begin < part.end) found.push_back(part);
  }
  return found;
}

std::vector<Range> Ranges::missing(Range range) const {
  std::vector<Range> found;
  std::uint64_t from = range.begin;
  for (const Range& part : inside(range)) {
    if (from < part.begin) found.push_back({from, part.begin});
    from = part.end;
  }
  if (from < range.end) found.push_back({from, range.end});
  return found;
}

}  // namespace launch_effects
