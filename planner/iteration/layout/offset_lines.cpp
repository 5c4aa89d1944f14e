#include "planner/iteration/layout/offset_lines.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

namespace memopt::planner::layout {
namespace {

double key_of(const Buffer& buffer, LineKey key) {
  const auto length = static_cast<double>(buffer.end - buffer.begin + 1);
  const auto bytes = static_cast<double>(buffer.bytes);
  switch (key) {
    case LineKey::kLifetime:
      return length;
    case LineKey::kSize:
      return bytes;
    case LineKey::kArea:
      return length * bytes;
  }
  return length;
}

// Lines by begin, and by height to find the lowest. Neighbours of equal height are joined.
class Skyline {
 public:
  explicit Skyline(std::uint64_t length) : length_(length) {
    heights_[0] = 0;
    by_height_.insert({0, 0});
  }
  struct Line {
    std::uint64_t begin, end, height;  // end excluded
  };
  Line lowest() const {
    const auto [height, begin] = *by_height_.begin();
    return {begin, end_of(heights_.find(begin)), height};
  }
  // Sets the height of [begin, end).
  void set(std::uint64_t begin, std::uint64_t end, std::uint64_t height) {
    split(begin);
    if (end < length_) split(end);
    for (auto line = heights_.find(begin); line != heights_.end() && line->first < end;) {
      by_height_.erase({line->second, line->first});
      line = heights_.erase(line);
    }
    add(begin, height);
    join(end);
    join(begin);
  }
  std::uint64_t highest(std::uint64_t begin, std::uint64_t end) const {
    std::uint64_t height = 0;
    for (auto line = std::prev(heights_.upper_bound(begin)); line != heights_.end() && line->first < end; ++line) {
      height = std::max(height, line->second);
    }
    return height;
  }
  // Lifts a line to its lower neighbour; false if it has none.
  bool lift(const Line& line) {
    const auto here = heights_.find(line.begin);
    std::uint64_t height = 0;
    bool found = false;
    if (here != heights_.begin()) {
      height = std::prev(here)->second;
      found = true;
    }
    if (const auto next = std::next(here); next != heights_.end()) {
      height = found ? std::min(height, next->second) : next->second;
      found = true;
    }
    if (found) set(line.begin, line.end, height);
    return found;
  }

 private:
  using Lines = std::map<std::uint64_t, std::uint64_t>;
  std::uint64_t end_of(Lines::const_iterator line) const {
    const auto next = std::next(line);
    return next == heights_.end() ? length_ : next->first;
  }
  void add(std::uint64_t begin, std::uint64_t height) {
    heights_[begin] = height;
    by_height_.insert({height, begin});
  }
  void split(std::uint64_t at) {
    const auto line = std::prev(heights_.upper_bound(at));
    if (line->first != at) add(at, line->second);
  }
  void join(std::uint64_t at) {
    const auto line = heights_.find(at);
    if (line == heights_.end() || line == heights_.begin() || std::prev(line)->second != line->second) return;
    by_height_.erase({line->second, line->first});
    heights_.erase(line);
  }

  std::uint64_t length_;
  Lines heights_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> by_height_;
};

}  // namespace

Solution place_on_lines(const Problem& problem, LineKey key, std::uint64_t budget) {
  Solution solution;
  solution.offsets.resize(problem.buffers.size());
  const std::uint64_t n = problem.operations;
  Skyline skyline(n);
  std::vector<std::uint32_t> ground, waiting;
  for (std::uint32_t i = 0; i < problem.buffers.size(); ++i) {
    const Spans spans = spans_of(problem.buffers[i], n);
    const bool crosses = spans.second_begin <= spans.second_end;
    (crosses || spans.first_end - spans.first_begin + 1 == n ? ground : waiting).push_back(i);
  }
  const auto length = [&](std::uint32_t i) { return problem.buffers[i].end - problem.buffers[i].begin; };
  std::sort(ground.begin(), ground.end(),
            [&](std::uint32_t a, std::uint32_t b) { return length(a) != length(b) ? length(a) > length(b) : a < b; });
  std::uint64_t ground_height = 0;
  for (const std::uint32_t i : ground) {
    const Spans spans = spans_of(problem.buffers[i], n);
    solution.offsets[i] = ground_height;
    ground_height += problem.buffers[i].bytes;
    skyline.set(spans.first_begin, spans.first_end + 1, ground_height);
    if (spans.second_begin <= spans.second_end) skyline.set(spans.second_begin, spans.second_end + 1, ground_height);
  }
  solution.bytes = ground_height;

  // By begin; those that are placed are skipped in constant time by a chain of next ones (union-find).
  std::sort(waiting.begin(), waiting.end(), [&](std::uint32_t a, std::uint32_t b) {
    return problem.buffers[a].begin != problem.buffers[b].begin ? problem.buffers[a].begin < problem.buffers[b].begin
                                                                : a < b;
  });
  std::vector<double> keys;
  for (const std::uint32_t i : waiting) keys.push_back(key_of(problem.buffers[i], key));
  std::vector<std::uint32_t> next(waiting.size() + 1);
  std::iota(next.begin(), next.end(), 0);
  const auto skip = [&](std::uint32_t i) {
    std::uint32_t root = i;
    while (next[root] != root) root = next[root];
    while (next[i] != root) i = std::exchange(next[i], root);
    return root;
  };
  std::uint64_t work = 0;
  for (std::size_t left = waiting.size(); left > 0;) {
    const Skyline::Line line = skyline.lowest();
    const auto first =
        std::lower_bound(waiting.begin(), waiting.end(), line.begin,
                         [&](std::uint32_t i, std::uint64_t at) { return problem.buffers[i].begin < at; });
    std::uint32_t best = static_cast<std::uint32_t>(waiting.size());
    for (std::uint32_t i = skip(static_cast<std::uint32_t>(first - waiting.begin())); i < waiting.size();
         i = skip(i + 1)) {
      ++work;
      const Buffer& buffer = problem.buffers[waiting[i]];
      if (buffer.begin >= line.end) break;
      if (buffer.end < line.end && (best == waiting.size() || keys[i] > keys[best])) best = i;
    }
    if (work > budget) return {};
    if (best == waiting.size()) {
      if (!skyline.lift(line)) return {};
      continue;
    }
    const Buffer& buffer = problem.buffers[waiting[best]];
    solution.offsets[waiting[best]] = line.height;
    solution.bytes = std::max(solution.bytes, line.height + buffer.bytes);
    skyline.set(buffer.begin, buffer.end + 1, line.height + buffer.bytes);
    next[best] = best + 1;
    --left;
  }
  return solution;
}

}  // namespace memopt::planner::layout
