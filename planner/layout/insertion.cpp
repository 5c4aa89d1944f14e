#include "planner/layout/insertion.h"

#include <algorithm>

namespace memopt::layout {
namespace {

constexpr std::size_t kMostWays = 12;  // that are tried where a buffer fits nowhere
constexpr std::uint64_t kEntriesPerStep = 512;
// Entries to be looked at for what moves: for each way, and for all buffers together, each besides a multiple of n.
constexpr std::uint64_t kEntriesPerWay = 100'000;
constexpr std::uint64_t kEntries = 400'000;
constexpr std::uint64_t kLooksPerWay = 1;
constexpr std::uint64_t kLooks = 2;

std::uint64_t rounded_up(std::uint64_t offset, std::uint64_t alignment) {
  const std::uint64_t over = alignment == 1 ? 0 : offset % alignment;
  return over == 0 ? offset : offset + (alignment - over);
}

}  // namespace

Insertion::Insertion(const Problem& problem, const Timeline& timeline, const KeptPlaces& kept)
    : problem_(problem),
      timeline_(timeline),
      pushing_(static_cast<std::uint32_t>(problem.buffers.size())),
      most_seen_(kEntries + kLooks * problem.buffers.size()) {
  entries_.reserve(problem.buffers.size());
  for (const std::uint32_t buffer : kept.ascending) {
    entries_.push_back(entry_of(buffer, kept.offsets[buffer]));
    height_ = std::max(height_, top(entries_.back()));
  }
}

std::vector<std::uint64_t> Insertion::offsets() const {
  std::vector<std::uint64_t> offsets(problem_.buffers.size(), kAnywhere);
  for (const Entry& entry : entries_) offsets[entry.buffer] = entry.offset;
  return offsets;
}

Insertion::Entry Insertion::entry_of(std::uint32_t buffer, std::uint64_t offset) const {
  const auto spans = timeline_.of(problem_.buffers[buffer]);
  return {offset, offset, spans.front().lo, spans.back().hi, buffer, spans.size() > 1};
}

bool Insertion::meet(const Entry& a, const Entry& b) const {
  if (a.lo >= b.hi || b.lo >= a.hi) return false;
  if (!a.several && !b.several) return true;
  for (const Span& x : timeline_.of(problem_.buffers[a.buffer])) {
    for (const Span& y : timeline_.of(problem_.buffers[b.buffer])) {
      if (x.lo < y.hi && y.lo < x.hi) return true;
    }
  }
  return false;
}

bool Insertion::put(std::uint32_t buffer, std::uint64_t before, std::uint64_t goal, std::uint64_t enough,
                    Allowance& allowance) {
  if (!allowance.spend(1 + entries_.size() / kEntriesPerStep)) return false;
  const Entry entry = entry_of(buffer, 0);
  find_ways(entry, before, goal, enough);
  if (ways_.front().missing == 0) {
    insert(ways_.front(), entry, height_);
    return true;
  }
  const Way* best = nullptr;
  std::uint64_t least = kAnywhere;
  for (const Way& way : ways_) {
    end_of_way_ = std::min(most_seen_, seen_ + kEntriesPerWay + kLooksPerWay * entries_.size());
    const std::uint64_t height = make_room(way, entry, least, allowance);
    if (height < least) {
      least = height;
      best = &way;
      if (height <= std::max(height_, enough)) break;
    }
    take_back();
    if (allowance.over()) return false;
  }
  end_of_way_ = kAnywhere;  // it was seen that it ends
  if (moves_.empty()) make_room(*best, entry, kAnywhere, allowance);
  if (allowance.over()) {
    take_back();
    return false;
  }
  moves_.clear();
  insert(*best, entry, least);
  return true;
}

// The smallest hole of those that are large enough, alone; or the place before, the holes that come closest, and the
// top.
void Insertion::find_ways(const Entry& buffer, std::uint64_t before, std::uint64_t goal, std::uint64_t enough) {
  const std::uint64_t bytes = problem_.buffers[buffer.buffer].bytes;
  const std::uint64_t alignment = problem_.buffers[buffer.buffer].alignment;
  near_.clear();
  for (std::uint32_t i = 0; i < entries_.size(); ++i) {
    if (meet(entries_[i], buffer)) near_.push_back({i, entries_[i].offset, top(entries_[i])});
  }
  // Some may have moved past others that they do not meet: the lowest of all that stand above counts.
  std::uint64_t lowest = kAnywhere;
  for (auto it = near_.rbegin(); it != near_.rend(); ++it) lowest = it->bottom = std::min(lowest, it->bottom);

  ways_.clear();
  Way fitting{0, 0, 1, kAnywhere};
  Way as_before{0, 0, kAnywhere, 0};
  std::uint64_t floor = 0;
  const auto closer = [](const Way& a, const Way& b) { return a.missing < b.missing; };
  for (const Near& above : near_) {
    const std::uint64_t offset = rounded_up(floor, alignment);
    if (above.bottom >= offset + bytes) {
      const std::uint64_t hole = above.bottom - floor;
      if (hole < fitting.hole && offset + bytes <= goal) fitting = {above.position, offset, 0, hole};
    } else {
      const Way way{above.position, offset, offset + bytes - above.bottom, 0};
      if (above.bottom >= before && as_before.missing == kAnywhere) as_before = way;
      if (ways_.size() == kMostWays && way.missing < ways_.front().missing) {
        std::pop_heap(ways_.begin(), ways_.end(), closer);
        ways_.pop_back();
      }
      if (ways_.size() < kMostWays) {
        ways_.push_back(way);
        std::push_heap(ways_.begin(), ways_.end(), closer);
      }
    }
    floor = std::max(floor, above.top);
  }
  const Way on_top{static_cast<std::uint32_t>(entries_.size()), rounded_up(floor, alignment), 0, 0};
  if (on_top.offset + bytes <= goal && fitting.missing != 0) fitting = on_top;
  if (fitting.missing == 0) {
    ways_.assign(1, fitting);
    return;
  }
  std::sort_heap(ways_.begin(), ways_.end(), closer);
  const bool low = on_top.offset + bytes <= enough;
  ways_.insert(low ? ways_.begin() : ways_.end(), {on_top.position, on_top.offset, 1, 0});
  if (as_before.missing != kAnywhere) ways_.insert(ways_.begin(), as_before);
}

std::uint64_t Insertion::make_room(const Way& way, Entry buffer, std::uint64_t below, Allowance& allowance) {
  buffer.offset = way.offset;
  std::uint64_t height = std::max(height_, top(buffer));
  if (height >= below) return kAnywhere;
  bool possible = push(buffer, way.position, below, allowance);
  // Those that push one have smaller numbers: once it is its turn, it has come to its place.
  std::uint32_t position = pushing_.first();
  for (; position != RankSet::kNone; position = pushing_.above(position)) {
    pushing_.erase(position);
    if (!possible) continue;
    height = std::max(height, top(entries_[position]));
    possible = push(entries_[position], position + 1, below, allowance);
  }
  return possible ? height : kAnywhere;
}

// Moves what is in the way, from entry `from` on. False if something would come to lie too high, or is fixed, or if
// enough was seen.
bool Insertion::push(const Entry& by, std::uint32_t from, std::uint64_t below, Allowance& allowance) {
  const std::uint64_t its_top = top(by);
  std::uint32_t i = from;
  for (; i < entries_.size() && entries_[i].least < its_top; ++i) {
    Entry& entry = entries_[i];
    if (entry.offset >= its_top || !meet(entry, by)) continue;
    const Buffer& its = problem_.buffers[entry.buffer];
    const std::uint64_t moved = rounded_up(its_top, its.alignment);
    if (its.fixed != kAnywhere || moved + its.bytes >= below) return false;
    pushing_.insert(i);
    moves_.push_back({i, entry.offset});
    entry.offset = moved;
  }
  seen_ += i - from;
  // Above all others there is nothing to see: that is always possible.
  return (i == from || seen_ <= end_of_way_) && allowance.spend((i - from) / kEntriesPerStep);
}

void Insertion::take_back() {
  for (; !moves_.empty(); moves_.pop_back()) entries_[moves_.back().position].offset = moves_.back().before;
}

void Insertion::insert(const Way& way, Entry buffer, std::uint64_t height) {
  buffer.offset = way.offset;
  height_ = std::max(height, top(buffer));
  // As low in the order as it may stand, so that the entries' least offsets stay ascending.
  const auto at = std::min(entries_.begin() + way.position,
                           std::partition_point(entries_.begin(), entries_.end(),
                                                [&](const Entry& entry) { return entry.least < way.offset; }));
  buffer.least = at == entries_.end() ? way.offset : std::min(way.offset, at->least);
  entries_.insert(at, buffer);
}

}  // namespace memopt::layout
