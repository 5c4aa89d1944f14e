#include "planner/layout/skyline.h"

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

std::vector<Obstacle> placed(const Problem& problem, const Timeline& timeline, std::span<const std::uint64_t> places) {
  std::vector<Obstacle> result;
  for (std::uint32_t i = 0; i < places.size(); ++i) {
    if (places[i] == kAnywhere) continue;
    const Buffer& buffer = problem.buffers[i];
    for (const Span& span : timeline.of(buffer)) result.push_back({span, places[i], places[i] + buffer.bytes});
  }
  return result;
}

std::uint64_t rounded_up(std::uint64_t offset, std::uint64_t alignment) {
  const std::uint64_t over = alignment == 1 ? 0 : offset % alignment;
  return over == 0 ? offset : offset + (alignment - over);
}

}  // namespace

Skyline::Skyline(const Problem& problem, const Timeline& timeline, std::span<const std::uint64_t> places)
    : problem_(problem),
      timeline_(timeline),
      circle_(timeline.circle),
      places_(places_of(problem, places)),
      candidates_(not_placed(places_), timeline.arcs),
      obstacles_(placed(problem, timeline, places_), timeline.count) {
  load_.assign(timeline.count + 1, 0);
  for (std::uint32_t i = 0; i < places_.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    if (places_[i] != kAnywhere) {
      least_height_ = std::max(least_height_, places_[i] + buffer.bytes);
    } else {
      for (const Span& span : timeline.of(buffer)) {
        load_[span.lo] += buffer.bytes;
        load_[span.hi] -= buffer.bytes;
      }
    }
  }
  for (std::uint32_t s = 0; s < timeline.count; ++s) load_[s + 1] += load_[s];
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
    const std::uint32_t index = next_turn();
    const Segment segment = segments_[index];
    const std::uint32_t obstacle = obstacle_above(segment);
    std::uint64_t ceiling = kNever;
    if (obstacle != Obstacles::kNone) {
      ceiling = obstacles_[obstacle].bottom;
      if (ceiling <= segment.height) {
        // The line stood below the obstacle until now, and is the lowest: it is as wide as the obstacle at least.
        const Obstacle& met = obstacles_[obstacle];
        obstacles_.pass(obstacle);
        raise(index, met.span, met.top);
        if (!allowance.spend(steps)) return false;
        continue;
      }
    }
    const std::uint32_t position = best_candidate(segment, ceiling, steps);
    if (position == Candidates::kNone) {
      if (!lift(index, ceiling, below)) return false;
    } else {
      const std::uint32_t buffer = candidates_.buffer(position);
      const std::uint64_t offset = rounded_up(segment.height, problem_.buffers[buffer].alignment);
      const std::uint64_t top = offset + problem_.buffers[buffer].bytes;
      if (top >= below) {
        too_high_ = timeline_.arcs[buffer].lo;
        return false;
      }
      height = std::max(height, top);
      offsets_[buffer] = offset;
      candidates_.remove(position);
      put(buffer, index, top);
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
  if (bounded_) rest_.fill(load_);
  segments_.clear();
  unused_.clear();
  turns_.clear();
  lowest_.clear();
  const std::uint32_t neighbour = circle_ ? 0 : kNone;
  segments_.push_back({0, 0, timeline_.count, neighbour, neighbour, 0});
  changed(0);
}

std::uint32_t Skyline::next_turn() {
  while (!lowest_.empty()) {
    const Turn turn = lowest_.back();
    if (segments_[turn.segment].version == turn.version) return turn.segment;
    lowest_.pop_back();
  }
  for (;;) {
    const Turn turn = turns_.front();
    if (segments_[turn.segment].version == turn.version) return turn.segment;
    std::pop_heap(turns_.begin(), turns_.end());
    turns_.pop_back();
  }
}

std::uint32_t Skyline::obstacle_above(const Segment& segment) const {
  if (obstacles_.empty()) return Obstacles::kNone;
  const std::uint32_t end = segment.lo + segment.length;
  if (end <= timeline_.count) return obstacles_.lowest(segment.lo, end);
  return std::min(obstacles_.lowest(segment.lo, timeline_.count), obstacles_.lowest(0, end - timeline_.count));
}

bool Skyline::fits_below_obstacles(std::uint32_t buffer, std::uint64_t top) const {
  for (const Span& span : timeline_.of(problem_.buffers[buffer])) {
    if (obstacles_.lowest_bottom(span.lo, span.hi) < top) return false;
  }
  return true;
}

std::uint32_t Skyline::best_candidate(const Segment& segment, std::uint64_t ceiling, std::uint64_t& steps) {
  const auto search = [&](auto&& accept) {
    std::uint32_t priority = 0;
    if (whole_circle(segment)) return candidates_.best(0, 2 * timeline_.count, priority, steps, accept);
    const std::uint32_t end = segment.lo + segment.length;
    std::uint32_t position = candidates_.best(segment.lo, end, priority, steps, accept);
    if (end > timeline_.count) {
      const std::uint32_t other = candidates_.best(0, end - timeline_.count, priority, steps, accept);
      if (other != Candidates::kNone) position = other;
    }
    return position;
  };
  if (ceiling == kNever) return search([](std::uint32_t) { return true; });
  return search([&](std::uint32_t position) {
    const std::uint32_t buffer = candidates_.buffer(position);
    const Buffer& its = problem_.buffers[buffer];
    const std::uint64_t top = rounded_up(segment.height, its.alignment) + its.bytes;
    if (top <= ceiling) return true;
    ++steps;
    return fits_below_obstacles(buffer, top);
  });
}

void Skyline::put(std::uint32_t buffer, std::uint32_t segment, std::uint64_t top) {
  const auto spans = timeline_.of(problem_.buffers[buffer]);
  // In the order of the arc, which begins with the begin of a span.
  std::size_t first = 0;
  while (spans[first].lo != timeline_.arcs[buffer].lo) ++first;
  for (std::size_t k = 0; k < spans.size(); ++k) {
    segment = raise(segment, spans[(first + k) % spans.size()], top);
  }
  if (!bounded_) return;
  for (const Span& span : spans) rest_.subtract(span.lo, span.hi, problem_.buffers[buffer].bytes);
}

std::uint32_t Skyline::raise(std::uint32_t segment, Span span, std::uint64_t height) {
  Segment before = segments_[segment];
  if (whole_circle(before) && before.next == segment) before.lo = span.lo;  // a circle begins anywhere
  const std::uint32_t from = span.lo - before.lo + (span.lo < before.lo ? timeline_.count : 0);
  const std::uint32_t behind = before.length - from - span.length();
  std::uint32_t raised = segment;
  segments_[segment].lo = before.lo;
  if (from > 0) {
    segments_[segment].length = from;
    raised = make_segment();
    insert_behind(segment, raised);
  }
  segments_[raised].lo = span.lo;
  segments_[raised].length = span.length();
  segments_[raised].height = height;
  std::uint32_t rest = kNone;
  if (behind > 0) {
    rest = make_segment();
    insert_behind(raised, rest);
    segments_[rest].lo = span.hi == timeline_.count && circle_ ? 0 : span.hi;
    segments_[rest].length = behind;
    segments_[rest].height = before.height;
    stays_lowest(rest);
  }
  if (from > 0) stays_lowest(segment);  // on top: the earlier comes first
  changed(raised);
  join_equal(raised);
  return rest;
}

bool Skyline::lift(std::uint32_t segment, std::uint64_t ceiling, std::uint64_t below) {
  Segment& its = segments_[segment];
  std::uint64_t target = ceiling;
  if (its.previous != kNone && its.previous != segment) target = std::min(target, segments_[its.previous].height);
  if (its.next != kNone && its.next != segment) target = std::min(target, segments_[its.next].height);
  if (bounded_ && !rest_fits(its, target, below)) return false;
  its.height = target;
  changed(segment);
  join_equal(segment);
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

void Skyline::changed(std::uint32_t segment) {
  Segment& its = segments_[segment];
  ++its.version;
  turns_.push_back({its.height, its.lo, segment, its.version});
  std::push_heap(turns_.begin(), turns_.end());
}

void Skyline::stays_lowest(std::uint32_t segment) {
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

// With neighbours of the same height, so that lines are as long as they can be.
void Skyline::join_equal(std::uint32_t segment) {
  const std::uint32_t previous = segments_[segment].previous;
  if (previous != kNone && previous != segment && segments_[previous].height == segments_[segment].height) {
    join(previous, segment);
    segment = previous;
  }
  const std::uint32_t next = segments_[segment].next;
  if (next != kNone && next != segment && segments_[next].height == segments_[segment].height) join(segment, next);
}

void Skyline::join(std::uint32_t left, std::uint32_t right) {
  const std::uint32_t next = segments_[right].next;
  segments_[left].length += segments_[right].length;
  segments_[left].next = next;
  if (next != kNone) segments_[next].previous = left;
  ++segments_[right].version;
  unused_.push_back(right);
  changed(left);
}

bool Skyline::rest_fits(const Segment& segment, std::uint64_t height, std::uint64_t below) {
  const std::uint32_t end = segment.lo + segment.length;
  if (end <= timeline_.count) return rest_fits(segment.lo, end, height, below);
  return rest_fits(segment.lo, timeline_.count, height, below) && rest_fits(0, end - timeline_.count, height, below);
}

bool Skyline::rest_fits(std::uint32_t lo, std::uint32_t hi, std::uint64_t height, std::uint64_t below) {
  const std::uint64_t rest = rest_.maximum(lo, hi);
  if (rest == 0 || (height < below && rest < below - height)) return true;
  too_high_ = rest_.where(lo, hi, rest);
  return false;
}

std::vector<std::uint32_t> Skyline::left_over() const {
  std::vector<std::uint32_t> result;
  for (std::uint32_t i = 0; i < offsets_.size(); ++i) {
    if (offsets_[i] != kAnywhere) continue;
    for (const Span& span : timeline_.of(problem_.buffers[i])) {
      if (span.lo <= too_high_ && too_high_ < span.hi) result.push_back(i);
    }
  }
  return result;
}

}  // namespace memopt::layout
