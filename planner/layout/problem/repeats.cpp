#include "planner/layout/problem/repeats.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

namespace memopt::layout {
namespace {

constexpr std::size_t kFewest = 200;  // buffers: less is searched as a whole
constexpr std::uint64_t kLeastTimes = 3;
constexpr std::uint32_t kMostTogether = 4;
constexpr std::size_t kWindow = 8;          // buffers that are compared by one hash
constexpr std::uint64_t kSamples = 4096;    // of these, about, by their hashes
constexpr std::size_t kCandidates = 8;      // periods that are tried
constexpr std::uint64_t kAboutAsLong = 16;  // a 16th less

// All that is the same in each repetition.
struct Key {
  std::uint64_t bytes, alignment;
  std::uint32_t length, since;  // sections: of the lifetime, and from the begin of the buffer before

  friend bool operator==(const Key&, const Key&) = default;
};

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 29);
}

std::uint64_t hash_of(const Key& key) {
  return mixed(mixed(mixed(key.bytes, key.alignment), key.length), key.since + 1);
}

class Finder {
 public:
  Finder(const Problem& problem, const Sections& sections) : problem_(problem), sections_(sections) {
    order();
    std::uint32_t before = 0;
    for (const std::uint32_t i : order_) {
      const SectionRange range = range_of(i);
      keys_.push_back({problem.buffers[i].bytes, problem.buffers[i].alignment, range.length(), range.lo - before});
      before = range.lo;
    }
  }

  std::optional<Repeat> find() const {
    if (order_.size() < kFewest) return std::nullopt;
    Run best;
    for (const std::uint32_t period : candidates()) {
      const Run run = longest(period);
      const std::uint64_t length = run.end - run.begin, known = best.end - best.begin;
      if (length < kLeastTimes * period) continue;
      const bool shorter = run.period < best.period;
      if (shorter ? length + length / kAboutAsLong > known : length > known + known / kAboutAsLong) best = run;
    }
    const std::size_t length = best.end - best.begin;
    if (best.period == 0 || length < problem_.buffers.size() / 2) return std::nullopt;
    Repeat repeat;
    repeat.buffers = best.period;
    repeat.run.assign(order_.begin() + std::ptrdiff_t(best.begin), order_.begin() + std::ptrdiff_t(best.end));
    repeat.sections = range_of(repeat.run[best.period]).lo - range_of(repeat.run[0]).lo;
    if (repeat.sections == 0) return std::nullopt;
    std::uint32_t longest = 0;
    for (std::uint32_t i = 0; i < repeat.buffers; ++i) longest = std::max(longest, range_of(repeat.run[i]).length());
    // As many together that none is needed again before it ends.
    const std::uint32_t together = longest / repeat.sections + 1;
    if (together <= kMostTogether && repeat.times() >= kLeastTimes * together) {
      repeat.buffers *= together;
      repeat.sections *= together;
    }
    return repeat;
  }

 private:
  struct Run {  // of `order_`
    std::size_t begin = 0, end = 0;
    std::uint32_t period = 0;
  };

  SectionRange range_of(std::uint32_t buffer) const { return sections_.of(problem_.buffers[buffer]).front(); }

  // By begin; of those that begin together in an order that is the same in each repetition.
  void order() {
    std::vector<std::uint32_t> first(sections_.count + 2, 0);
    const auto takes_part = [&](const Buffer& buffer) { return buffer.fixed == kAnywhere && buffer.count == 1; };
    for (std::uint32_t i = 0; i < problem_.buffers.size(); ++i) {
      if (takes_part(problem_.buffers[i])) ++first[range_of(i).lo + 1];
    }
    for (std::size_t s = 1; s < first.size(); ++s) first[s] += first[s - 1];
    order_.resize(first.back());
    std::vector<std::uint32_t> next = first;
    for (std::uint32_t i = 0; i < problem_.buffers.size(); ++i) {
      if (takes_part(problem_.buffers[i])) order_[next[range_of(i).lo]++] = i;
    }
    for (std::uint32_t s = 0; s < sections_.count; ++s) {
      std::sort(order_.begin() + first[s], order_.begin() + first[s + 1], [&](std::uint32_t a, std::uint32_t b) {
        const std::array<std::uint64_t, 4> one{range_of(a).hi, problem_.buffers[a].bytes, problem_.buffers[a].alignment,
                                               a};
        const std::array<std::uint64_t, 4> other{range_of(b).hi, problem_.buffers[b].bytes,
                                                 problem_.buffers[b].alignment, b};
        return one < other;
      });
    }
  }

  // The most frequent distances from what looks like it to the last time it did.
  std::vector<std::uint32_t> candidates() const {
    std::unordered_map<std::uint64_t, std::uint32_t> seen, counts;
    std::array<std::uint64_t, kWindow> hashes{};
    const std::uint64_t one_in = 1 + keys_.size() / kSamples;
    for (std::uint32_t i = 0; i < keys_.size(); ++i) {
      hashes[i % kWindow] = hash_of(keys_[i]);
      if (i + 1 < kWindow) continue;
      std::uint64_t hash = 0;
      for (std::size_t k = 1; k <= kWindow; ++k) hash = mixed(hash, hashes[(i + k) % kWindow]);
      if (hash % one_in != 0) continue;
      const auto [last, is_new] = seen.try_emplace(hash, i);
      if (!is_new) ++counts[i - std::exchange(last->second, i)];
    }
    std::vector<std::pair<std::uint32_t, std::uint32_t>> most;
    for (const auto& [distance, count] : counts) most.emplace_back(count, distance);
    std::sort(most.begin(), most.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    if (most.size() > kCandidates) most.resize(kCandidates);
    std::vector<std::uint32_t> periods;
    for (const auto& [count, distance] : most) periods.push_back(distance);
    return periods;
  }

  Run longest(std::uint32_t period) const {
    Run best{0, 0, period};
    std::size_t begin = 0;
    for (std::size_t i = period; i <= keys_.size(); ++i) {
      if (i < keys_.size() && is_again(i, i - period, begin)) continue;
      if (i - begin > best.end - best.begin && i - begin > period) best = {begin, i, period};
      begin = i + 1 - period;
    }
    return best;
  }
  // How far the run's first buffer lies behind the one before has nothing to do with the run.
  bool is_again(std::size_t i, std::size_t before, std::size_t begin) const {
    if (before != begin) return keys_[i] == keys_[before];
    Key first = keys_[before];
    first.since = keys_[i].since;
    return keys_[i] == first;
  }

  const Problem& problem_;
  const Sections& sections_;
  std::vector<std::uint32_t> order_;
  std::vector<Key> keys_;
};

}  // namespace

std::optional<Repeat> find_repeat(const Problem& problem, const Sections& sections) {
  if (problem.buffers.size() < kFewest) return std::nullopt;
  return Finder(problem, sections).find();
}

Repetition one_of(const Problem& problem, const Sections& sections, const Repeat& repeat) {
  const auto range_of = [&](std::uint32_t buffer) { return sections.of(problem.buffers[buffer]).front(); };
  const std::uint32_t begin = range_of(repeat.run.front()).lo, length = repeat.sections;
  Repetition one;
  one.problem.capacity = problem.capacity;
  std::uint32_t end = begin;  // of all repetitions
  for (const std::uint32_t buffer : repeat.run) end = std::max(end, range_of(buffer).hi);
  for (std::uint32_t i = 0; i < repeat.buffers; ++i) {
    const std::uint32_t buffer = repeat.run[i];
    const SectionRange range = range_of(buffer);
    if (range.length() >= length) continue;
    const std::uint64_t from = (range.lo - begin) % length, to = from + range.length();
    const Interval whole{from, to}, parts[] = {{0, to - std::min<std::uint64_t>(to, length)}, {from, length}};
    one.problem.add(problem.buffers[buffer].bytes, to <= length ? std::span(&whole, 1) : std::span(parts),
                    problem.buffers[buffer].alignment);
    one.numbers.push_back(i);
  }
  one.repeated = one.numbers.size();
  for (std::uint32_t buffer = 0; buffer < problem.buffers.size(); ++buffer) {
    const Buffer& its = problem.buffers[buffer];
    const auto ranges = sections.of(its);
    const bool throughout = std::any_of(
        ranges.begin(), ranges.end(), [&](const SectionRange& range) { return range.lo <= begin && range.hi >= end; });
    if (!throughout) continue;
    one.problem.add(its.bytes, Interval{0, length}, its.alignment, its.fixed);
    one.numbers.push_back(buffer);
  }
  return one;
}

std::vector<std::uint64_t> places_in_all(const Problem& problem, const Repeat& repeat, const Repetition& one,
                                         std::span<const std::uint64_t> offsets) {
  std::vector<std::uint64_t> places(problem.buffers.size(), kAnywhere);
  for (std::size_t i = 0; i < one.repeated; ++i) {
    for (std::size_t k = one.numbers[i]; k < repeat.run.size(); k += repeat.buffers) places[repeat.run[k]] = offsets[i];
  }
  for (std::size_t i = one.repeated; i < one.numbers.size(); ++i) places[one.numbers[i]] = offsets[i];
  return places;
}

void guess_others(const Problem& problem, const Sections& sections, const Repeat& repeat, const Repetition& one,
                  std::span<const std::uint64_t> offsets, std::vector<std::uint64_t>& places) {
  // By size and begin within a repetition.
  struct Place {
    std::uint64_t bytes, alignment;
    std::uint32_t begin;
    std::uint64_t offset;

    auto size() const { return std::pair(bytes, alignment); }
  };
  const std::uint32_t length = repeat.sections;
  const std::uint32_t first = sections.arcs[repeat.run.front()].lo;
  const auto begin_of = [&](std::uint32_t buffer) {
    const std::uint32_t lo = sections.arcs[buffer].lo;
    return lo >= first ? (lo - first) % length : (length - (first - lo) % length) % length;
  };
  std::vector<Place> known;
  for (std::size_t i = 0; i < one.repeated; ++i) {
    const Buffer& buffer = one.problem.buffers[i];
    known.push_back({buffer.bytes, buffer.alignment, begin_of(repeat.run[one.numbers[i]]), offsets[i]});
  }
  const auto before = [](const Place& a, const Place& b) {
    return std::pair(a.size(), a.begin) < std::pair(b.size(), b.begin);
  };
  std::sort(known.begin(), known.end(), before);
  const auto distance = [&](std::uint32_t a, std::uint32_t b) {
    const std::uint32_t apart = a < b ? b - a : a - b;
    return std::min(apart, length - apart);
  };
  for (std::uint32_t buffer = 0; buffer < problem.buffers.size(); ++buffer) {
    const Buffer& its = problem.buffers[buffer];
    if (places[buffer] != kAnywhere || its.fixed != kAnywhere) continue;
    const Place wanted{its.bytes, its.alignment, begin_of(buffer), 0};
    const auto [from, to] = std::equal_range(known.begin(), known.end(), wanted,
                                             [](const Place& a, const Place& b) { return a.size() < b.size(); });
    if (from == to) continue;
    // The next one, the one before it, or, around the end of a repetition, the first or the last.
    const auto next = std::lower_bound(from, to, wanted, before);
    const auto nearer = [&](const Place& a, const Place& b) {
      return distance(a.begin, wanted.begin) < distance(b.begin, wanted.begin);
    };
    places[buffer] =
        std::min({next != to ? *next : *from, next != from ? *std::prev(next) : *std::prev(to)}, nearer).offset;
  }
}

}  // namespace memopt::layout
