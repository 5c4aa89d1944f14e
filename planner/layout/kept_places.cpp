#include "planner/layout/kept_places.h"

#include <algorithm>
#include <map>

namespace memopt::layout {
namespace {

// The buffers that live in the section that the sweep has come to, by offset; none in another's way.
class Sweep {
 public:
  Sweep(const Problem& problem, std::vector<std::uint64_t>& places) : problem_(problem), places_(places) {}

  void end(std::uint32_t buffer) {
    const auto it = live_.find(places_[buffer]);
    if (it != live_.end() && it->second == buffer) live_.erase(it);
  }

  void begin(std::uint32_t buffer) {
    if (places_[buffer] == kAnywhere) return;
    const std::vector<std::uint32_t> others = in_the_way(buffer);
    if (!others.empty()) {
      const bool any_fixed = std::any_of(others.begin(), others.end(), [&](std::uint32_t i) { return fixed(i); });
      const bool it_goes = any_fixed || (!fixed(buffer) && (others.size() > 1 || lower(buffer, others.front())));
      if (it_goes) {
        places_[buffer] = kAnywhere;
        return;
      }
      for (const std::uint32_t other : others) {
        live_.erase(places_[other]);
        places_[other] = kAnywhere;
      }
    }
    live_[places_[buffer]] = buffer;
  }

 private:
  bool fixed(std::uint32_t buffer) const { return problem_.buffers[buffer].fixed != kAnywhere; }
  bool lower(std::uint32_t a, std::uint32_t b) const { return places_[a] < places_[b]; }

  std::vector<std::uint32_t> in_the_way(std::uint32_t buffer) const {
    std::vector<std::uint32_t> result;
    const std::uint64_t top = places_[buffer] + problem_.buffers[buffer].bytes;
    auto it = live_.lower_bound(places_[buffer]);
    if (it != live_.begin()) {
      const auto below = std::prev(it);
      if (below->first + problem_.buffers[below->second].bytes > places_[buffer]) result.push_back(below->second);
    }
    for (; it != live_.end() && it->first < top; ++it) result.push_back(it->second);
    return result;
  }

  const Problem& problem_;
  std::vector<std::uint64_t>& places_;
  std::map<std::uint64_t, std::uint32_t> live_;
};

}  // namespace

std::vector<std::uint64_t> kept_places(const Problem& problem, const Timeline& timeline,
                                       std::span<const std::uint64_t> previous) {
  struct Event {
    std::uint32_t section;
    bool begin;
    std::uint32_t buffer;
  };
  std::vector<std::uint64_t> places(problem.buffers.size(), kAnywhere);
  std::vector<Event> events;
  for (std::uint32_t i = 0; i < places.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    if (buffer.fixed != kAnywhere) {
      places[i] = buffer.fixed;
    } else if (i < previous.size() && previous[i] != kAnywhere && previous[i] % buffer.alignment == 0 &&
               previous[i] <= kAnywhere - 1 - buffer.bytes) {
      places[i] = previous[i];
    } else {
      continue;
    }
    for (const Span& span : timeline.of(buffer)) {
      events.push_back({span.lo, true, i});
      events.push_back({span.hi, false, i});
    }
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    if (a.section != b.section) return a.section < b.section;
    return a.begin != b.begin ? b.begin : a.buffer < b.buffer;
  });
  Sweep sweep(problem, places);
  for (const Event& event : events) {
    if (event.begin) {
      sweep.begin(event.buffer);
    } else if (places[event.buffer] != kAnywhere) {
      sweep.end(event.buffer);
    }
  }
  return places;
}

}  // namespace memopt::layout
