#include "planner/layout/sections.h"

#include <algorithm>
#include <numeric>
#include <utility>

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

// Sorts, and makes one of those that touch or overlap.
void merge(std::vector<Sections::Block>& blocks) {
  std::sort(blocks.begin(), blocks.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  std::size_t kept = 0;
  for (const auto& block : blocks) {
    if (kept > 0 && block.begin <= blocks[kept - 1].end) {
      blocks[kept - 1].end = std::max(blocks[kept - 1].end, block.end);
    } else {
      blocks[kept++] = block;
    }
  }
  blocks.resize(kept);
}

}  // namespace

std::uint64_t unit_of(const Problem& problem) {
  std::uint64_t unit = 0;
  for (const Buffer& buffer : problem.buffers) {
    unit = std::gcd(unit, buffer.bytes);
    if (buffer.fixed != kAnywhere) unit = std::gcd(unit, buffer.fixed);
  }
  if (unit == 0) return 1;
  for (bool changed = true; changed;) {
    changed = false;
    for (const Buffer& buffer : problem.buffers) {
      if (buffer.fixed != kAnywhere || unit % buffer.alignment == 0) continue;
      const std::uint64_t common = std::gcd(unit, buffer.alignment);
      changed |= common != unit;
      unit = common;
    }
  }
  return unit;
}

std::optional<Sections> Sections::of(const Problem& problem, std::size_t most_members) {
  Sections sections;
  const std::uint64_t unit = unit_of(problem);
  sections.unit = unit;

  // Every interval's range of sections.
  std::vector<Range> range(problem.intervals.size());
  bool begun = false;
  for (const Event& event : events_of(problem)) {
    if (event.begin) {
      begun = true;
      range[event.interval].begin = sections.count;
    } else {
      if (std::exchange(begun, false)) ++sections.count;
      range[event.interval].end = sections.count;
    }
  }
  const auto count = static_cast<std::size_t>(sections.count);

  std::vector<std::uint32_t> order;
  for (std::uint32_t b = 0; b < problem.buffers.size(); ++b) {
    if (problem.buffers[b].fixed == kAnywhere) order.push_back(b);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return range[problem.buffers[a].first].begin < range[problem.buffers[b].first].begin;
  });
  sections.original = order;
  sections.piece_start.push_back(0);
  for (const std::uint32_t b : order) {
    const Buffer& buffer = problem.buffers[b];
    sections.bytes.push_back(static_cast<std::int64_t>(buffer.bytes / unit));
    const bool anywhere = unit % buffer.alignment == 0;
    sections.aligned |= !anywhere;
    sections.alignment.push_back(anywhere ? 1 : static_cast<std::int64_t>(buffer.alignment / unit));
    std::uint64_t lifetime = 0;
    for (std::uint32_t i = buffer.first; i < buffer.first + buffer.count; ++i) {
      sections.pieces.push_back(range[i]);
      lifetime += problem.intervals[i].end - problem.intervals[i].begin;
    }
    sections.lifetime.push_back(lifetime);
    sections.hull.push_back({range[buffer.first].begin, range[buffer.first + buffer.count - 1].end});
    sections.piece_start.push_back(sections.pieces.size());
  }

  // Where buffers and pieces begin; who is live where.
  sections.begins.assign(count + 1, 0);
  sections.piece_begins.assign(count + 1, 0);
  std::vector<std::size_t> live(count + 1, 0);
  std::size_t members = 0;
  for (std::size_t b = 0; b < order.size(); ++b) {
    ++sections.begins[static_cast<std::size_t>(sections.hull[b].begin) + 1];
    for (const Range& piece : sections.pieces_of(static_cast<std::int32_t>(b))) {
      ++sections.piece_begins[static_cast<std::size_t>(piece.begin) + 1];
      members += static_cast<std::size_t>(piece.end - piece.begin);
    }
    if (members > most_members) return std::nullopt;
  }
  for (std::size_t b = 0; b < order.size(); ++b) {
    for (const Range& piece : sections.pieces_of(static_cast<std::int32_t>(b))) {
      for (auto s = static_cast<std::size_t>(piece.begin); s < static_cast<std::size_t>(piece.end); ++s) ++live[s + 1];
    }
  }
  std::partial_sum(sections.begins.begin(), sections.begins.end(), sections.begins.begin());
  std::partial_sum(sections.piece_begins.begin(), sections.piece_begins.end(), sections.piece_begins.begin());
  std::partial_sum(live.begin(), live.end(), live.begin());
  sections.member_start = live;
  sections.members.resize(members);
  sections.piece_owner.resize(sections.pieces.size());
  std::vector<std::int32_t> next_piece(sections.piece_begins);
  for (std::size_t b = 0; b < order.size(); ++b) {
    const auto owner = static_cast<std::int32_t>(b);
    for (const Range& piece : sections.pieces_of(owner)) {
      sections.piece_owner[static_cast<std::size_t>(next_piece[static_cast<std::size_t>(piece.begin)]++)] = owner;
      for (auto s = static_cast<std::size_t>(piece.begin); s < static_cast<std::size_t>(piece.end); ++s) {
        sections.members[live[s]++] = owner;
      }
    }
  }

  sections.load.assign(order.size(), 0);
  for (std::int32_t s = 0; s < sections.count; ++s) {
    std::int64_t load = 0;
    for (const std::int32_t b : sections.members_of(s)) load += sections.bytes[b];
    for (const std::int32_t b : sections.members_of(s)) sections.load[b] = std::max(sections.load[b], load);
  }

  // What fixed buffers take away, by section and by buffer.
  std::vector<std::vector<Block>> taken(order.size() == problem.buffers.size() ? 0 : count);
  for (const Buffer& buffer : problem.buffers) {
    if (buffer.fixed == kAnywhere) continue;
    const Block block{static_cast<std::int64_t>(buffer.fixed / unit),
                      static_cast<std::int64_t>((buffer.fixed + buffer.bytes) / unit)};
    sections.blocked = true;
    sections.fixed_top = std::max(sections.fixed_top, block.end);
    for (std::uint32_t i = buffer.first; i < buffer.first + buffer.count; ++i) {
      for (auto s = static_cast<std::size_t>(range[i].begin); s < static_cast<std::size_t>(range[i].end); ++s) {
        taken[s].push_back(block);
      }
    }
  }
  if (!sections.blocked) return sections;
  sections.section_block_start.push_back(0);
  for (auto& blocks : taken) {
    merge(blocks);
    sections.section_blocks.insert(sections.section_blocks.end(), blocks.begin(), blocks.end());
    sections.section_block_start.push_back(sections.section_blocks.size());
  }
  sections.buffer_block_start.push_back(0);
  std::vector<Block> blocks;
  for (std::size_t b = 0; b < order.size(); ++b) {
    blocks.clear();
    for (const Range& piece : sections.pieces_of(static_cast<std::int32_t>(b))) {
      for (std::int32_t s = piece.begin; s < piece.end; ++s) {
        blocks.insert(blocks.end(), taken[static_cast<std::size_t>(s)].begin(),
                      taken[static_cast<std::size_t>(s)].end());
      }
      merge(blocks);
    }
    sections.buffer_blocks.insert(sections.buffer_blocks.end(), blocks.begin(), blocks.end());
    sections.buffer_block_start.push_back(sections.buffer_blocks.size());
  }
  return sections;
}

}  // namespace memopt::layout
