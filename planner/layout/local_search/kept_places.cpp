#include "planner/layout/local_search/kept_places.h"

#include <algorithm>

#include "planner/layout/local_search/hierarchical_bitset.h"

namespace memopt::layout {
namespace {

// The live buffers of the section that the sweep has reached, by offset; no two conflict.
class Sweep {
 public:
  Sweep(const Problem& problem, std::vector<std::uint64_t>& places, std::span<const std::uint32_t> ascending)
      : problem_(problem),
        places_(places),
        ascending_(ascending),
        rank_(places.size()),
        live_(static_cast<std::uint32_t>(ascending.size())) {
    for (std::uint32_t rank = 0; rank < ascending.size(); ++rank) rank_[ascending[rank]] = rank;
  }

  void end(std::uint32_t buffer) {
    if (places_[buffer] != kAnywhere) live_.erase(rank_[buffer]);
  }

  void begin(std::uint32_t buffer) {
    if (places_[buffer] == kAnywhere) return;
    const std::span<const std::uint32_t> others = conflicts_of(buffer);
    if (!others.empty()) {
      const bool any_fixed = std::any_of(others.begin(), others.end(), [&](std::uint32_t i) { return fixed(i); });
      const bool dropped = any_fixed || (!fixed(buffer) && (others.size() > 1 || lower(buffer, others.front())));
      if (dropped) {
        places_[buffer] = kAnywhere;
        return;
      }
      for (const std::uint32_t other : others) {
        live_.erase(rank_[other]);
        places_[other] = kAnywhere;
      }
    }
    live_.insert(rank_[buffer]);
  }

 private:
  bool fixed(std::uint32_t buffer) const { return problem_.buffers[buffer].fixed != kAnywhere; }
  bool lower(std::uint32_t a, std::uint32_t b) const { return places_[a] < places_[b]; }
  std::uint64_t top(std::uint32_t buffer) const { return places_[buffer] + problem_.buffers[buffer].bytes; }

  std::span<const std::uint32_t> conflicts_of(std::uint32_t buffer) {
    others_.clear();
    const std::uint32_t below = live_.below(rank_[buffer]);
    if (below != HierarchicalBitset::kNone && top(ascending_[below]) > places_[buffer])
      others_.push_back(ascending_[below]);
    for (std::uint32_t above = live_.above(rank_[buffer]); above != HierarchicalBitset::kNone;
         above = live_.above(above)) {
      if (places_[ascending_[above]] >= top(buffer)) break;
      others_.push_back(ascending_[above]);
    }
    return others_;
  }

  const Problem& problem_;
  std::vector<std::uint64_t>& places_;
  const std::span<const std::uint32_t> ascending_;
  std::vector<std::uint32_t> rank_;  // by offset, of the buffers that have one
  HierarchicalBitset live_;
  std::vector<std::uint32_t> others_;
};

// The buffers that begin in each section, or end before it, in order.
class SectionEvents {
 public:
  template <class Section>
  SectionEvents(const Problem& problem, const Sections& sections, std::span<const std::uint64_t> places,
                Section&& section_of)
      : first_(sections.count + 2, 0) {
    const auto visit = [&](auto&& use) {
      for (std::uint32_t i = 0; i < places.size(); ++i) {
        if (places[i] == kAnywhere) continue;
        for (const SectionRange& range : sections.of(problem.buffers[i])) use(section_of(range), i);
      }
    };
    visit([&](std::uint32_t section, std::uint32_t) { ++first_[section + 1]; });
    for (std::size_t s = 1; s < first_.size(); ++s) first_[s] += first_[s - 1];
    buffers_.resize(first_.back());
    std::vector<std::uint32_t> next = first_;
    visit([&](std::uint32_t section, std::uint32_t buffer) { buffers_[next[section]++] = buffer; });
  }

  std::span<const std::uint32_t> at(std::uint32_t section) const {
    return std::span(buffers_).subspan(first_[section], first_[section + 1] - first_[section]);
  }

 private:
  std::vector<std::uint32_t> first_;
  std::vector<std::uint32_t> buffers_;
};

std::vector<std::uint32_t> by_offset(std::span<const std::uint64_t> places) {
  struct Entry {
    std::uint64_t offset;
    std::uint32_t buffer;
  };
  std::vector<Entry> entries;
  entries.reserve(places.size());
  for (std::uint32_t i = 0; i < places.size(); ++i) {
    if (places[i] != kAnywhere) entries.push_back({places[i], i});
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.offset != b.offset ? a.offset < b.offset : a.buffer < b.buffer;
  });
  std::vector<std::uint32_t> result;
  result.reserve(entries.size());
  for (const Entry& entry : entries) result.push_back(entry.buffer);
  return result;
}

}  // namespace

KeptPlaces kept_places(const Problem& problem, const Sections& sections, std::span<const std::uint64_t> previous) {
  KeptPlaces kept;
  std::vector<std::uint64_t>& places = kept.offsets;
  places.assign(problem.buffers.size(), kAnywhere);
  for (std::uint32_t i = 0; i < places.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    if (buffer.fixed != kAnywhere) {
      places[i] = buffer.fixed;
    } else if (i < previous.size() && previous[i] != kAnywhere && previous[i] % buffer.alignment == 0 &&
               previous[i] <= kAnywhere - 1 - buffer.bytes) {
      places[i] = previous[i];
    }
  }
  kept.ascending = by_offset(places);
  const SectionEvents begins(problem, sections, places, [](const SectionRange& range) { return range.lo; });
  const SectionEvents ends(problem, sections, places, [](const SectionRange& range) { return range.hi; });
  Sweep sweep(problem, places, kept.ascending);
  for (std::uint32_t section = 0; section <= sections.count; ++section) {
    for (const std::uint32_t buffer : ends.at(section)) sweep.end(buffer);
    for (const std::uint32_t buffer : begins.at(section)) sweep.begin(buffer);
  }
  std::erase_if(kept.ascending, [&](std::uint32_t buffer) { return places[buffer] == kAnywhere; });
  return kept;
}

}  // namespace memopt::layout
