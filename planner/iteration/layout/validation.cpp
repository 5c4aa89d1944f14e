#include "planner/iteration/layout/validation.h"

#include <algorithm>
#include <map>

namespace memopt::planner::layout {
namespace {

// A buffer begins (or is there already, at time 0) or ends. Ends count behind begins of the same time, since both
// operations are included.
struct Event {
  std::uint64_t time;
  bool ends;
  std::uint32_t buffer;

  bool operator<(const Event& other) const {
    if (time != other.time) return time < other.time;
    if (ends != other.ends) return !ends;
    return buffer < other.buffer;
  }
};

std::vector<Event> events_of(const Problem& problem) {
  std::vector<Event> events;
  const std::uint64_t n = problem.operations;
  for (std::uint32_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    if (buffer.end - buffer.begin + 1 >= n) {
      events.push_back({0, false, i});
      events.push_back({n, true, i});
    } else if (buffer.end >= n) {
      events.push_back({0, false, i});
      events.push_back({buffer.end - n, true, i});
      events.push_back({buffer.begin, false, i});
      events.push_back({n, true, i});
    } else {
      events.push_back({buffer.begin, false, i});
      events.push_back({buffer.end, true, i});
    }
  }
  std::sort(events.begin(), events.end());
  return events;
}

std::string name(std::uint32_t buffer) { return "buffer " + std::to_string(buffer); }

}  // namespace

std::optional<std::string> find_fault(const Problem& problem, const Solution& solution) {
  if (solution.offsets.size() != problem.buffers.size()) {
    return "there are " + std::to_string(solution.offsets.size()) + " offsets for " +
           std::to_string(problem.buffers.size()) + " buffers";
  }
  std::uint64_t highest = 0;
  for (std::uint32_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    if (buffer.begin >= problem.operations || buffer.end < buffer.begin) return name(i) + " has an impossible lifetime";
    if (buffer.bytes == 0 || buffer.bytes % kAlignment != 0 || solution.offsets[i] % kAlignment != 0) {
      return name(i) + " is not aligned to " + std::to_string(kAlignment);
    }
    std::uint64_t top = 0;
    if (__builtin_add_overflow(solution.offsets[i], buffer.bytes, &top)) return name(i) + " lies beyond 64 bits";
    highest = std::max(highest, top);
  }
  if (highest != solution.bytes) {
    return "the solution says " + std::to_string(solution.bytes) + " bytes and takes " + std::to_string(highest);
  }
  std::map<std::uint64_t, std::uint32_t> live;  // by offset
  for (const Event& event : events_of(problem)) {
    const std::uint64_t offset = solution.offsets[event.buffer];
    if (event.ends) {
      live.erase(offset);
      continue;
    }
    const auto above = live.lower_bound(offset);
    if (above != live.end() && above->first < offset + problem.buffers[event.buffer].bytes) {
      return name(event.buffer) + " overlaps " + name(above->second) + " at operation " + std::to_string(event.time);
    }
    if (above != live.begin()) {
      const auto below = std::prev(above);
      if (below->first + problem.buffers[below->second].bytes > offset) {
        return name(event.buffer) + " overlaps " + name(below->second) + " at operation " + std::to_string(event.time);
      }
    }
    live.emplace(offset, event.buffer);
  }
  return std::nullopt;
}

std::uint64_t lower_bound(const Problem& problem) {
  std::uint64_t sum = 0, peak = 0;
  for (const Event& event : events_of(problem)) {
    sum = event.ends ? sum - problem.buffers[event.buffer].bytes : sum + problem.buffers[event.buffer].bytes;
    peak = std::max(peak, sum);
  }
  return peak;
}

}  // namespace memopt::planner::layout
