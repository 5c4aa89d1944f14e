#include "planner/layout/exact/prepared_problem.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "planner/layout/problem/bounds.h"

namespace memopt::layout {
namespace {

struct Event {
  std::uint64_t time;
  std::uint32_t interval;
  std::uint32_t buffer;
  bool begin;
};

std::vector<Event> events_of(const Problem& problem) {
  std::vector<Event> events;
  events.reserve(2 * problem.intervals.size());
  for (std::uint32_t b = 0; b < problem.buffers.size(); ++b) {
    const Buffer& buffer = problem.buffers[b];
    for (std::uint32_t i = buffer.first; i < buffer.first + buffer.count; ++i) {
      events.push_back({problem.intervals[i].begin, i, b, true});
      events.push_back({problem.intervals[i].end, i, b, false});
    }
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    if (a.time != b.time) return a.time < b.time;
    if (a.begin != b.begin) return b.begin;  // ends first: intervals are half-open
    return a.interval < b.interval;
  });
  return events;
}

// Sorts, and joins those that touch or overlap.
void merge(std::vector<PreparedProblem::FixedRange>& ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  std::size_t kept = 0;
  for (const auto& range : ranges) {
    if (kept > 0 && range.begin <= ranges[kept - 1].end) {
      ranges[kept - 1].end = std::max(ranges[kept - 1].end, range.end);
    } else {
      ranges[kept++] = range;
    }
  }
  ranges.resize(kept);
}

}  // namespace

std::optional<PreparedProblem> PreparedProblem::of(const Problem& problem, std::size_t most_members) {
  PreparedProblem prepared;
  const std::uint64_t unit = unit_of(problem);
  prepared.unit = unit;

  // Every interval's range of sections.
  std::vector<Range> range(problem.intervals.size());
  bool begun = false;
  for (const Event& event : events_of(problem)) {
    if (event.begin) {
      begun = true;
      range[event.interval].begin = prepared.count;
    } else {
      if (std::exchange(begun, false)) ++prepared.count;
      range[event.interval].end = prepared.count;
    }
  }
  const auto count = static_cast<std::size_t>(prepared.count);

  std::vector<std::uint32_t> order;
  for (std::uint32_t b = 0; b < problem.buffers.size(); ++b) {
    if (problem.buffers[b].fixed == kAnywhere) order.push_back(b);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return range[problem.buffers[a].first].begin < range[problem.buffers[b].first].begin;
  });
  prepared.original = order;
  prepared.piece_start.push_back(0);
  for (const std::uint32_t b : order) {
    const Buffer& buffer = problem.buffers[b];
    prepared.bytes.push_back(static_cast<std::int64_t>(buffer.bytes / unit));
    const bool anywhere = unit % buffer.alignment == 0;
    prepared.aligned |= !anywhere;
    prepared.alignment.push_back(anywhere ? 1 : static_cast<std::int64_t>(buffer.alignment / unit));
    std::uint64_t lifetime = 0;
    for (std::uint32_t i = buffer.first; i < buffer.first + buffer.count; ++i) {
      prepared.pieces.push_back(range[i]);
      lifetime += problem.intervals[i].end - problem.intervals[i].begin;
    }
    prepared.lifetime.push_back(lifetime);
    prepared.hull.push_back({range[buffer.first].begin, range[buffer.first + buffer.count - 1].end});
    prepared.piece_start.push_back(prepared.pieces.size());
  }

  // Where buffers and pieces begin; which buffers live in each section.
  prepared.begins.assign(count + 1, 0);
  prepared.piece_begins.assign(count + 1, 0);
  std::vector<std::size_t> live(count + 1, 0);
  std::size_t members = 0;
  for (std::size_t b = 0; b < order.size(); ++b) {
    ++prepared.begins[static_cast<std::size_t>(prepared.hull[b].begin) + 1];
    for (const Range& piece : prepared.pieces_of(static_cast<std::int32_t>(b))) {
      ++prepared.piece_begins[static_cast<std::size_t>(piece.begin) + 1];
      members += static_cast<std::size_t>(piece.end - piece.begin);
    }
    if (members > most_members) return std::nullopt;
  }
  for (std::size_t b = 0; b < order.size(); ++b) {
    for (const Range& piece : prepared.pieces_of(static_cast<std::int32_t>(b))) {
      for (auto s = static_cast<std::size_t>(piece.begin); s < static_cast<std::size_t>(piece.end); ++s) ++live[s + 1];
    }
  }
  std::partial_sum(prepared.begins.begin(), prepared.begins.end(), prepared.begins.begin());
  std::partial_sum(prepared.piece_begins.begin(), prepared.piece_begins.end(), prepared.piece_begins.begin());
  std::partial_sum(live.begin(), live.end(), live.begin());
  prepared.member_start = live;
  prepared.members.resize(members);
  prepared.piece_owner.resize(prepared.pieces.size());
  std::vector<std::int32_t> next_piece(prepared.piece_begins);
  for (std::size_t b = 0; b < order.size(); ++b) {
    const auto owner = static_cast<std::int32_t>(b);
    for (const Range& piece : prepared.pieces_of(owner)) {
      prepared.piece_owner[static_cast<std::size_t>(next_piece[static_cast<std::size_t>(piece.begin)]++)] = owner;
      for (auto s = static_cast<std::size_t>(piece.begin); s < static_cast<std::size_t>(piece.end); ++s) {
        prepared.members[live[s]++] = owner;
      }
    }
  }

  prepared.load.assign(order.size(), 0);
  for (std::int32_t s = 0; s < prepared.count; ++s) {
    std::int64_t load = 0;
    for (const std::int32_t b : prepared.members_of(s)) load += prepared.bytes[b];
    for (const std::int32_t b : prepared.members_of(s)) prepared.load[b] = std::max(prepared.load[b], load);
  }

  // What fixed buffers occupy, by section and by buffer.
  std::vector<std::vector<FixedRange>> taken(order.size() == problem.buffers.size() ? 0 : count);
  for (const Buffer& buffer : problem.buffers) {
    if (buffer.fixed == kAnywhere) continue;
    const FixedRange bytes{static_cast<std::int64_t>(buffer.fixed / unit),
                           static_cast<std::int64_t>((buffer.fixed + buffer.bytes) / unit)};
    prepared.has_fixed = true;
    prepared.fixed_top = std::max(prepared.fixed_top, bytes.end);
    for (std::uint32_t i = buffer.first; i < buffer.first + buffer.count; ++i) {
      for (auto s = static_cast<std::size_t>(range[i].begin); s < static_cast<std::size_t>(range[i].end); ++s) {
        taken[s].push_back(bytes);
      }
    }
  }
  if (!prepared.has_fixed) return prepared;
  prepared.section_fixed_start.push_back(0);
  for (auto& ranges : taken) {
    merge(ranges);
    prepared.section_fixed.insert(prepared.section_fixed.end(), ranges.begin(), ranges.end());
    prepared.section_fixed_start.push_back(prepared.section_fixed.size());
  }
  prepared.buffer_fixed_start.push_back(0);
  std::vector<FixedRange> merged;
  for (std::size_t b = 0; b < order.size(); ++b) {
    merged.clear();
    for (const Range& piece : prepared.pieces_of(static_cast<std::int32_t>(b))) {
      for (std::int32_t s = piece.begin; s < piece.end; ++s) {
        merged.insert(merged.end(), taken[static_cast<std::size_t>(s)].begin(),
                      taken[static_cast<std::size_t>(s)].end());
      }
      merge(merged);
    }
    prepared.buffer_fixed.insert(prepared.buffer_fixed.end(), merged.begin(), merged.end());
    prepared.buffer_fixed_start.push_back(prepared.buffer_fixed.size());
  }
  return prepared;
}

}  // namespace memopt::layout
