#include "planner/layout/local_search/insertion.h"

#include <algorithm>

namespace memopt::layout {
namespace {

constexpr std::size_t kMostPoints = 12;  // that are tried where no hole is large enough
constexpr std::uint64_t kEntriesPerStep = 512;
// How many entries moves may visit: at each point, and in all, each with a multiple of n on top.
constexpr std::uint64_t kVisitsPerPoint = 100'000;
constexpr std::uint64_t kVisits = 400'000;
constexpr std::uint64_t kVisitsPerBufferAndPoint = 1;
constexpr std::uint64_t kVisitsPerBuffer = 2;

}  // namespace

Insertion::Insertion(const Problem& problem, const Sections& sections, const KeptPlaces& kept)
    : problem_(problem),
      sections_(sections),
      pending_(static_cast<std::uint32_t>(problem.buffers.size())),
      visit_limit_(kVisits + kVisitsPerBuffer * problem.buffers.size()) {
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
  const auto ranges = sections_.of(problem_.buffers[buffer]);
  return {offset, offset, ranges.front().lo, ranges.back().hi, buffer, ranges.size() > 1};
}

bool Insertion::conflict(const Entry& a, const Entry& b) const {
  if (a.lo >= b.hi || b.lo >= a.hi) return false;
  if (!a.several && !b.several) return true;
  return overlap(sections_.of(problem_.buffers[a.buffer]), sections_.of(problem_.buffers[b.buffer]));
}

bool Insertion::insert(std::uint32_t buffer, std::uint64_t before, std::uint64_t goal, std::uint64_t enough,
                       Allowance& allowance) {
  if (!allowance.spend(1 + entries_.size() / kEntriesPerStep)) return false;
  const Entry entry = entry_of(buffer, 0);
  find_points(entry, before, goal, enough);
  if (points_.front().missing == 0) {
    place_at(points_.front(), entry, height_);
    return true;
  }
  const InsertionPoint* best = nullptr;
  std::uint64_t least = kAnywhere;
  for (const InsertionPoint& point : points_) {
    point_limit_ = std::min(visit_limit_, visited_ + kVisitsPerPoint + kVisitsPerBufferAndPoint * entries_.size());
    const std::uint64_t height = make_room(point, entry, least, allowance);
    if (height < least) {
      least = height;
      best = &point;
      if (height <= std::max(height_, enough)) break;
    }
    undo();
    if (allowance.over()) return false;
  }
  point_limit_ = kAnywhere;  // the best point was tried before: it ends
  if (moves_.empty()) make_room(*best, entry, kAnywhere, allowance);
  if (allowance.over()) {
    undo();
    return false;
  }
  moves_.clear();
  place_at(*best, entry, least);
  return true;
}

// The smallest hole that is large enough, alone; or the offset before, the holes that are least too small, and the top.
void Insertion::find_points(const Entry& buffer, std::uint64_t before, std::uint64_t goal, std::uint64_t enough) {
  const std::uint64_t bytes = problem_.buffers[buffer.buffer].bytes;
  const std::uint64_t alignment = problem_.buffers[buffer.buffer].alignment;
  neighbours_.clear();
  for (std::uint32_t i = 0; i < entries_.size(); ++i) {
    if (conflict(entries_[i], buffer)) neighbours_.push_back({i, entries_[i].offset, top(entries_[i])});
  }
  // Entries may have moved past others with which they do not conflict: the lowest of all behind it in the order
  // counts.
  std::uint64_t lowest = kAnywhere;
  for (auto it = neighbours_.rbegin(); it != neighbours_.rend(); ++it)
    lowest = it->bottom = std::min(lowest, it->bottom);

  points_.clear();
  InsertionPoint fitting{0, 0, 1, kAnywhere};
  InsertionPoint as_before{0, 0, kAnywhere, 0};
  std::uint64_t floor = 0;
  const auto closer = [](const InsertionPoint& a, const InsertionPoint& b) { return a.missing < b.missing; };
  for (const Neighbour& above : neighbours_) {
    const std::uint64_t offset = align_up(floor, alignment);
    if (above.bottom >= offset + bytes) {
      const std::uint64_t hole = above.bottom - floor;
      if (hole < fitting.hole && offset + bytes <= goal) fitting = {above.position, offset, 0, hole};
    } else {
      const InsertionPoint point{above.position, offset, offset + bytes - above.bottom, 0};
      if (above.bottom >= before && as_before.missing == kAnywhere) as_before = point;
      if (points_.size() == kMostPoints && point.missing < points_.front().missing) {
        std::pop_heap(points_.begin(), points_.end(), closer);
        points_.pop_back();
      }
      if (points_.size() < kMostPoints) {
        points_.push_back(point);
        std::push_heap(points_.begin(), points_.end(), closer);
      }
    }
    floor = std::max(floor, above.top);
  }
  const InsertionPoint on_top{static_cast<std::uint32_t>(entries_.size()), align_up(floor, alignment), 0, 0};
  if (on_top.offset + bytes <= goal && fitting.missing != 0) fitting = on_top;
  if (fitting.missing == 0) {
    points_.assign(1, fitting);
    return;
  }
  std::sort_heap(points_.begin(), points_.end(), closer);
  const bool low = on_top.offset + bytes <= enough;
  points_.insert(low ? points_.begin() : points_.end(), {on_top.position, on_top.offset, 1, 0});
  if (as_before.missing != kAnywhere) points_.insert(points_.begin(), as_before);
}

std::uint64_t Insertion::make_room(const InsertionPoint& point, Entry buffer, std::uint64_t below,
                                   Allowance& allowance) {
  buffer.offset = point.offset;
  std::uint64_t height = std::max(height_, top(buffer));
  if (height >= below) return kAnywhere;
  bool possible = push(buffer, point.position, below, allowance);
  // An entry is pushed by entries with smaller positions only: when it is the first pending one, it does not move
  // again.
  std::uint32_t position = pending_.first();
  for (; position != HierarchicalBitset::kNone; position = pending_.above(position)) {
    pending_.erase(position);
    if (!possible) continue;
    height = std::max(height, top(entries_[position]));
    possible = push(entries_[position], position + 1, below, allowance);
  }
  return possible ? height : kAnywhere;
}

// Moves what is in the way, from entry `from` on. False if a buffer would end too high, or is fixed, or if too many
// entries were visited.
bool Insertion::push(const Entry& by, std::uint32_t from, std::uint64_t below, Allowance& allowance) {
  const std::uint64_t its_top = top(by);
  std::uint32_t i = from;
  for (; i < entries_.size() && entries_[i].least < its_top; ++i) {
    Entry& entry = entries_[i];
    if (entry.offset >= its_top || !conflict(entry, by)) continue;
    const Buffer& its = problem_.buffers[entry.buffer];
    const std::uint64_t moved = align_up(its_top, its.alignment);
    if (its.fixed != kAnywhere || moved + its.bytes >= below) return false;
    pending_.insert(i);
    moves_.push_back({i, entry.offset});
    entry.offset = moved;
  }
  visited_ += i - from;
  // Above all others no entry is visited: that is always possible.
  return (i == from || visited_ <= point_limit_) && allowance.spend((i - from) / kEntriesPerStep);
}

void Insertion::undo() {
  for (; !moves_.empty(); moves_.pop_back()) entries_[moves_.back().position].offset = moves_.back().before;
}

void Insertion::place_at(const InsertionPoint& point, Entry buffer, std::uint64_t height) {
  buffer.offset = point.offset;
  height_ = std::max(height, top(buffer));
  // As early in the order as possible, so that the entries' least offsets stay ascending.
  const auto at = std::min(entries_.begin() + point.position,
                           std::partition_point(entries_.begin(), entries_.end(),
                                                [&](const Entry& entry) { return entry.least < point.offset; }));
  buffer.least = at == entries_.end() ? point.offset : std::min(point.offset, at->least);
  entries_.insert(at, buffer);
}

}  // namespace memopt::layout
