#include "planner/layout/skyline/skyline.h"

#include <algorithm>

namespace memopt::layout {
namespace {

std::vector<std::uint64_t> places_of(const Problem& problem, std::span<const std::uint64_t> places) {
  std::vector<std::uint64_t> result(places.begin(), places.end());
  if (result.empty()) result.assign(problem.buffers.size(), kAnywhere);
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (problem.buffers[i].fixed != kAnywhere) result[i] = problem.buffers[i].fixed;
  }
  return result;
}

std::vector<std::uint32_t> not_placed(std::span<const std::uint64_t> places) {
  std::vector<std::uint32_t> result;
  for (std::uint32_t i = 0; i < places.size(); ++i) {
    if (places[i] == kAnywhere) result.push_back(i);
  }
  return result;
}

std::vector<Obstacle> placed(const Problem& problem, const Sections& sections, std::span<const std::uint64_t> places) {
  std::vector<Obstacle> result;
  for (std::uint32_t i = 0; i < places.size(); ++i) {
    if (places[i] == kAnywhere) continue;
    const Buffer& buffer = problem.buffers[i];
    for (const SectionRange& range : sections.of(buffer))
      result.push_back({range, places[i], places[i] + buffer.bytes});
  }
  return result;
}

}  // namespace

Skyline::Skyline(const Problem& problem, const Sections& sections, std::span<const std::uint64_t> places)
    : problem_(problem),
      sections_(sections),
      circular_(sections.circular),
      places_(places_of(problem, places)),
      candidates_(not_placed(places_), sections.arcs),
      obstacles_(placed(problem, sections, places_), sections.count) {
  load_.assign(sections.count + 1, 0);
  for (std::uint32_t i = 0; i < places_.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    if (places_[i] != kAnywhere) {
      least_height_ = std::max(least_height_, places_[i] + buffer.bytes);
    } else {
      for (const SectionRange& range : sections.of(buffer)) {
        load_[range.lo] += buffer.bytes;
        load_[range.hi] -= buffer.bytes;
      }
    }
  }
  for (std::uint32_t s = 0; s < sections.count; ++s) load_[s + 1] += load_[s];
}

bool Skyline::run(std::span<const std::uint32_t> priorities, std::uint64_t below, Allowance& allowance,
                  Solution& solution) {
  solution.offsets.clear();
  if (least_height_ >= below) return false;
  start(priorities, below);
  offsets_ = places_;
  std::uint64_t height = least_height_;
  for (std::size_t left = candidates_.size(); left > 0;) {
    std::uint64_t steps = 1;
    const std::uint32_t index = lowest_segment();
    const Segment segment = segments_[index];
    const std::uint32_t obstacle = obstacle_above(segment);
    std::uint64_t ceiling = kNever;
    if (obstacle != Obstacles::kNone) {
      ceiling = obstacles_[obstacle].bottom;
      if (ceiling <= segment.height) {
        // The line was below the obstacle until now, and is the lowest: it is at least as wide as the obstacle.
        const Obstacle& met = obstacles_[obstacle];
        obstacles_.pass(obstacle);
        raise(index, met.range, met.top);
        if (!allowance.spend(steps)) return false;
        continue;
      }
    }
    const std::uint32_t position = best_candidate(segment, ceiling, steps);
    if (position == Candidates::kNone) {
      if (!lift(index, ceiling, below)) return false;
    } else {
      const std::uint32_t buffer = candidates_.buffer(position);
      const std::uint64_t offset = align_up(segment.height, problem_.buffers[buffer].alignment);
      const std::uint64_t top = offset + problem_.buffers[buffer].bytes;
      if (top >= below) {
        overfull_ = sections_.arcs[buffer].lo;
        return false;
      }
      height = std::max(height, top);
      offsets_[buffer] = offset;
      candidates_.remove(position);
      place(buffer, index, top);
      --left;
    }
    if (!allowance.spend(steps)) return false;
  }
  solution.offsets = offsets_;
  solution.height = height;
  return true;
}

void Skyline::start(std::span<const std::uint32_t> priorities, std::uint64_t below) {
  candidates_.refill(priorities);
  obstacles_.reset();
  bounded_ = below != kNever;
  if (bounded_) unplaced_.fill(load_);
  segments_.clear();
  unused_.clear();
  queue_.clear();
  lowest_.clear();
  const std::uint32_t neighbour = circular_ ? 0 : kNone;
  segments_.push_back({0, 0, sections_.count, neighbour, neighbour, 0});
  push(0);
}

std::uint32_t Skyline::lowest_segment() {
  while (!lowest_.empty()) {
    const Entry entry = lowest_.back();
    if (segments_[entry.segment].version == entry.version) return entry.segment;
    lowest_.pop_back();
  }
  return queue_.front([&](const Entry& entry) { return segments_[entry.segment].version == entry.version; }).segment;
}

std::uint32_t Skyline::obstacle_above(const Segment& segment) const {
  if (obstacles_.empty()) return Obstacles::kNone;
  const std::uint32_t end = segment.lo + segment.length;
  if (end <= sections_.count) return obstacles_.lowest(segment.lo, end);
  return std::min(obstacles_.lowest(segment.lo, sections_.count), obstacles_.lowest(0, end - sections_.count));
}

bool Skyline::fits_below_obstacles(std::uint32_t buffer, std::uint64_t top) const {
  for (const SectionRange& range : sections_.of(problem_.buffers[buffer])) {
    if (obstacles_.lowest_bottom(range.lo, range.hi) < top) return false;
  }
  return true;
}

std::uint32_t Skyline::best_candidate(const Segment& segment, std::uint64_t ceiling, std::uint64_t& steps) {
  const auto search = [&](auto&& accept) {
    std::uint32_t priority = 0;
    if (whole_cycle(segment)) return candidates_.best(0, 2 * sections_.count, priority, steps, accept);
    const std::uint32_t end = segment.lo + segment.length;
    std::uint32_t position = candidates_.best(segment.lo, end, priority, steps, accept);
    if (end > sections_.count) {
      const std::uint32_t other = candidates_.best(0, end - sections_.count, priority, steps, accept);
      if (other != Candidates::kNone) position = other;
    }
    return position;
  };
  if (ceiling == kNever) return search([](std::uint32_t) { return true; });
  return search([&](std::uint32_t position) {
    const std::uint32_t buffer = candidates_.buffer(position);
    const Buffer& its = problem_.buffers[buffer];
    const std::uint64_t top = align_up(segment.height, its.alignment) + its.bytes;
    if (top <= ceiling) return true;
    ++steps;
    return fits_below_obstacles(buffer, top);
  });
}

void Skyline::place(std::uint32_t buffer, std::uint32_t segment, std::uint64_t top) {
  const auto ranges = sections_.of(problem_.buffers[buffer]);
  // In the order of the arc, which begins with the begin of a range.
  std::size_t first = 0;
  while (ranges[first].lo != sections_.arcs[buffer].lo) ++first;
  for (std::size_t k = 0; k < ranges.size(); ++k) {
    segment = raise(segment, ranges[(first + k) % ranges.size()], top);
  }
  if (!bounded_) return;
  for (const SectionRange& range : ranges) unplaced_.subtract(range.lo, range.hi, problem_.buffers[buffer].bytes);
}

std::uint32_t Skyline::raise(std::uint32_t segment, SectionRange range, std::uint64_t height) {
  Segment before = segments_[segment];
  if (whole_cycle(before) && before.next == segment) before.lo = range.lo;  // circular time begins anywhere
  const std::uint32_t from = range.lo - before.lo + (range.lo < before.lo ? sections_.count : 0);
  const std::uint32_t behind = before.length - from - range.length();
  std::uint32_t raised = segment;
  segments_[segment].lo = before.lo;
  if (from > 0) {
    segments_[segment].length = from;
    raised = make_segment();
    insert_behind(segment, raised);
  }
  segments_[raised].lo = range.lo;
  segments_[raised].length = range.length();
  segments_[raised].height = height;
  std::uint32_t rest = kNone;
  if (behind > 0) {
    rest = make_segment();
    insert_behind(raised, rest);
    segments_[rest].lo = range.hi == sections_.count && circular_ ? 0 : range.hi;
    segments_[rest].length = behind;
    segments_[rest].height = before.height;
    push_lowest(rest);
  }
  if (from > 0) push_lowest(segment);  // on top of the stack: the earlier comes first
  push(join_equal(raised));
  return rest;
}

bool Skyline::lift(std::uint32_t segment, std::uint64_t ceiling, std::uint64_t below) {
  Segment& its = segments_[segment];
  std::uint64_t target = ceiling;
  if (its.previous != kNone && its.previous != segment) target = std::min(target, segments_[its.previous].height);
  if (its.next != kNone && its.next != segment) target = std::min(target, segments_[its.next].height);
  if (bounded_ && !unplaced_fits(its, target, below)) return false;
  its.height = target;
  push(join_equal(segment));
  return true;
}

std::uint32_t Skyline::make_segment() {
  if (!unused_.empty()) {
    const std::uint32_t segment = unused_.back();
    unused_.pop_back();
    return segment;
  }
  segments_.push_back({});
  return static_cast<std::uint32_t>(segments_.size() - 1);
}

void Skyline::push(std::uint32_t segment) {
  Segment& its = segments_[segment];
  ++its.version;
  queue_.push({its.height, its.lo, segment, its.version});
}

void Skyline::push_lowest(std::uint32_t segment) {
  Segment& its = segments_[segment];
  ++its.version;
  lowest_.push_back({its.height, its.lo, segment, its.version});
}

void Skyline::insert_behind(std::uint32_t segment, std::uint32_t added) {
  const std::uint32_t next = segments_[segment].next;
  segments_[added].previous = segment;
  segments_[added].next = next;
  segments_[segment].next = added;
  if (next != kNone) segments_[next].previous = added;
}

// Joins neighbours of the same height, so that lines are as long as they can be. The segment that is left of it.
std::uint32_t Skyline::join_equal(std::uint32_t segment) {
  const std::uint32_t previous = segments_[segment].previous;
  if (previous != kNone && previous != segment && segments_[previous].height == segments_[segment].height) {
    join(previous, segment);
    segment = previous;
  }
  const std::uint32_t next = segments_[segment].next;
  if (next != kNone && next != segment && segments_[next].height == segments_[segment].height) join(segment, next);
  return segment;
}

void Skyline::join(std::uint32_t left, std::uint32_t right) {
  const std::uint32_t next = segments_[right].next;
  segments_[left].length += segments_[right].length;
  segments_[left].next = next;
  if (next != kNone) segments_[next].previous = left;
  ++segments_[right].version;
  unused_.push_back(right);
}

bool Skyline::unplaced_fits(const Segment& segment, std::uint64_t height, std::uint64_t below) {
  const std::uint32_t end = segment.lo + segment.length;
  if (end <= sections_.count) return unplaced_fits(segment.lo, end, height, below);
  return unplaced_fits(segment.lo, sections_.count, height, below) &&
         unplaced_fits(0, end - sections_.count, height, below);
}

bool Skyline::unplaced_fits(std::uint32_t lo, std::uint32_t hi, std::uint64_t height, std::uint64_t below) {
  const std::uint64_t rest = unplaced_.maximum(lo, hi);
  if (rest == 0 || (height < below && rest < below - height)) return true;
  overfull_ = unplaced_.argmax(lo, hi, rest);
  return false;
}

std::vector<std::uint32_t> Skyline::blamed() const {
  std::vector<std::uint32_t> result;
  for (std::uint32_t i = 0; i < offsets_.size(); ++i) {
    if (offsets_[i] != kAnywhere) continue;
    for (const SectionRange& range : sections_.of(problem_.buffers[i])) {
      if (range.lo <= overfull_ && overfull_ < range.hi) result.push_back(i);
    }
  }
  return result;
}

}  // namespace memopt::layout
