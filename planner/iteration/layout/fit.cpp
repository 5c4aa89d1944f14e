#include "planner/iteration/layout/fit.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace memopt::planner::layout {
namespace {

std::uint64_t length_of(const Buffer& buffer, std::uint64_t operations) {
  return std::min(buffer.end - buffer.begin + 1, operations);
}

// Bytes times operations overflows 64 bits for large buffers; a double orders them as well.
double area_of(const Buffer& buffer, std::uint64_t operations) {
  return static_cast<double>(buffer.bytes) * static_cast<double>(length_of(buffer, operations));
}

// What has been placed, in order of offsets. Times as 32 bits in a packed array: the scan over it is most of the work.
struct Placed {
  std::uint32_t first_begin, first_end, second_begin, second_end;
};

bool overlap(const Placed& a, const Placed& b) {
  // An empty second part is (1, 0) and meets nothing.
  const auto meets = [](std::uint32_t begin, std::uint32_t end, std::uint32_t other_begin, std::uint32_t other_end) {
    return begin <= other_end && other_begin <= end && begin <= end && other_begin <= other_end;
  };
  return meets(a.first_begin, a.first_end, b.first_begin, b.first_end) |
         meets(a.second_begin, a.second_end, b.first_begin, b.first_end) |
         meets(a.first_begin, a.first_end, b.second_begin, b.second_end) |
         meets(a.second_begin, a.second_end, b.second_begin, b.second_end);
}

}  // namespace

std::vector<std::uint32_t> ordered(const Problem& problem, Order order) {
  std::vector<std::uint32_t> indices(problem.buffers.size());
  std::iota(indices.begin(), indices.end(), 0);
  const std::uint64_t n = problem.operations;
  std::sort(indices.begin(), indices.end(), [&](std::uint32_t a, std::uint32_t b) {
    const Buffer& x = problem.buffers[a];
    const Buffer& y = problem.buffers[b];
    const std::uint64_t x_length = length_of(x, n), y_length = length_of(y, n);
    if (order == Order::kArea && area_of(x, n) != area_of(y, n)) return area_of(x, n) > area_of(y, n);
    if (order == Order::kLifetime && x_length != y_length) return x_length > y_length;
    if (x.bytes != y.bytes) return x.bytes > y.bytes;
    if (x_length != y_length) return x_length > y_length;
    if (x.begin != y.begin) return x.begin < y.begin;
    return a < b;
  });
  return indices;
}

Solution place_in_gaps(const Problem& problem, const std::vector<std::uint32_t>& order, Gap gap) {
  Solution solution;
  solution.offsets.resize(problem.buffers.size());
  std::vector<Placed> times;
  std::vector<std::uint64_t> offsets, tops;
  for (const std::uint32_t index : order) {
    const Buffer& buffer = problem.buffers[index];
    const Spans spans = spans_of(buffer, problem.operations);
    const Placed here{static_cast<std::uint32_t>(spans.first_begin), static_cast<std::uint32_t>(spans.first_end),
                      static_cast<std::uint32_t>(spans.second_begin), static_cast<std::uint32_t>(spans.second_end)};
    std::uint64_t floor = 0;  // above all neighbours so far
    std::uint64_t best = 0, best_room = std::numeric_limits<std::uint64_t>::max();
    for (std::size_t i = 0; i < times.size(); ++i) {
      if (!overlap(here, times[i])) continue;
      if (offsets[i] > floor && offsets[i] - floor >= buffer.bytes && offsets[i] - floor < best_room) {
        best = floor;
        best_room = offsets[i] - floor;
        if (gap == Gap::kFirst || best_room == buffer.bytes) break;
      }
      floor = std::max(floor, tops[i]);
    }
    if (best_room == std::numeric_limits<std::uint64_t>::max()) best = floor;
    solution.offsets[index] = best;
    solution.bytes = std::max(solution.bytes, best + buffer.bytes);
    const auto place = std::upper_bound(offsets.begin(), offsets.end(), best) - offsets.begin();
    offsets.insert(offsets.begin() + place, best);
    tops.insert(tops.begin() + place, best + buffer.bytes);
    times.insert(times.begin() + place, here);
  }
  return solution;
}

}  // namespace memopt::planner::layout
