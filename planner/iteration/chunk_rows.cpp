#include "planner/iteration/chunk_rows.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

namespace memopt::planner {
namespace {

// Of holes and sizes, in parts of a chunk.
constexpr std::uint64_t kUnitsPerChunk = 512;
// Sizes of less than this many units fill what is left over anyway.
constexpr std::uint64_t kLeastUnits = 8;
constexpr std::size_t kMostSizes = 64;
// More between two chunks are of use to a few large blocks only, which fit elsewhere.
constexpr std::uint64_t kMostBetween = 7;
constexpr std::size_t kNone = ~std::size_t{0};

// How much of a hole blocks fill. A block is there once: fill() uses it up.
class Filling {
 public:
  Filling(std::span<const std::uint64_t> sizes, std::uint64_t unit, std::size_t most_units)
      : filled_(most_units + 1), last_(most_units + 1) {
    std::map<std::uint64_t, std::uint64_t, std::greater<>> counts;
    for (const std::uint64_t size : sizes) {
      const std::uint64_t units = (size + unit - 1) / unit;
      if (units >= kLeastUnits && units <= most_units) ++counts[units];
    }
    for (const auto& [units, count] : counts) sizes_.push_back({units, count});
    // Those that most bytes are of.
    std::stable_sort(sizes_.begin(), sizes_.end(),
                     [](const Size& a, const Size& b) { return a.units * a.count > b.units * b.count; });
    if (sizes_.size() > kMostSizes) sizes_.resize(kMostSizes);
    compute();
  }

  std::uint64_t left_over(std::size_t units) const { return units - filled_[units]; }

  void fill(std::size_t units) {
    bool used_up = false;
    for (std::size_t at = filled_[units]; at != 0;) {
      Size& size = sizes_[last_[at]];
      if (size.count != 0) --size.count;
      used_up = used_up || size.count == 0;
      at -= size.units;
    }
    if (!used_up) return;
    std::erase_if(sizes_, [](const Size& size) { return size.count == 0; });
    compute();
  }

 private:
  struct Size {
    std::uint64_t units;
    std::uint64_t count;
  };

  // The largest sum of sizes up to each number of units, and of sums that are met the size that was added last; counts
  // are looked at only when holes have been filled.
  void compute() {
    std::fill(last_.begin(), last_.end(), kNone);
    for (std::size_t at = 0; at < filled_.size(); ++at) {
      bool met = at == 0;
      for (std::size_t i = 0; i < sizes_.size() && !met; ++i) {
        if (sizes_[i].units > at || filled_[at - sizes_[i].units] != at - sizes_[i].units) continue;
        last_[at] = i;
        met = true;
      }
      filled_[at] = met ? at : filled_[at - 1];
    }
  }

  std::vector<Size> sizes_;
  std::vector<std::size_t> filled_;
  std::vector<std::size_t> last_;
};

// What lies in front of the first one.
constexpr std::size_t kBeginning = 0;

void add_spaced_row(std::span<const ChunkEnds> chunks, std::uint64_t unit, Filling* filling,
                    std::vector<PlacedChunk>* order) {
  // 0 is the beginning, i + 1 is chunk i.
  const std::size_t n = chunks.size() + 1;
  const auto behind = [&](std::size_t at) { return at == kBeginning ? 0 : chunks[at - 1].behind; };
  std::vector<std::size_t> next(n, kNone);
  std::vector<std::uint64_t> between(n, 0);
  std::vector<bool> follows(n, false);
  std::vector<std::size_t> first(n);  // of the row that it is in, as far as rows are joined
  std::iota(first.begin(), first.end(), std::size_t{0});
  for (std::size_t joined = 1; joined < n; ++joined) {
    std::uint64_t least = ~std::uint64_t{0};
    std::size_t from = 0, to = 0, hole = 0;
    std::uint64_t count = 0;
    // Few chunks between rather than many where as much is left over.
    for (std::uint64_t k = 0; k <= kMostBetween && least != 0; ++k) {
      for (std::size_t a = 0; a < n && least != 0; ++a) {
        if (next[a] != kNone) continue;
        for (std::size_t b = 1; b < n; ++b) {
          if (follows[b] || first[a] == first[b]) continue;
          const auto units = static_cast<std::size_t>((behind(a) + chunks[b - 1].before) / unit + k * kUnitsPerChunk);
          const std::uint64_t left = filling->left_over(units);
          if (left >= least) continue;
          least = left;
          from = a;
          to = b;
          hole = units;
          count = k;
        }
      }
    }
    next[from] = to;
    between[to] = count;
    follows[to] = true;
    const std::size_t old = first[to];
    for (std::size_t& row : first) {
      if (row == old) row = first[from];
    }
    filling->fill(hole);
  }
  for (std::size_t at = next[kBeginning]; at != kNone; at = next[at]) {
    order->push_back({chunks[at - 1].address, between[at]});
  }
}

}  // namespace

std::vector<PlacedChunk> tight_rows(std::span<const ChunkEnds> chunks) {
  const std::size_t n = chunks.size();
  std::vector<std::size_t> by_before(n);
  std::iota(by_before.begin(), by_before.end(), std::size_t{0});
  std::vector<std::size_t> by_behind = by_before;
  std::stable_sort(by_before.begin(), by_before.end(),
                   [&](std::size_t a, std::size_t b) { return chunks[a].before > chunks[b].before; });
  std::stable_sort(by_behind.begin(), by_behind.end(),
                   [&](std::size_t a, std::size_t b) { return chunks[a].behind > chunks[b].behind; });
  std::vector<std::size_t> next(n, kNone);
  std::vector<std::size_t> last(n);   // of the row that begins with it
  std::vector<std::size_t> first(n);  // of the row that ends with it
  std::iota(last.begin(), last.end(), std::size_t{0});
  first = last;
  std::vector<bool> follows(n, false);
  // The first of `by_behind` stays for the end.
  auto from = by_before.begin();
  for (std::size_t i = 1; i < n && chunks[by_behind[i]].behind != 0; ++i) {
    const std::size_t one = by_behind[i];
    while (from != by_before.end() && follows[*from]) ++from;
    const auto other = std::find_if(from, by_before.end(), [&](std::size_t at) {
      return !follows[at] && at != first[one] && chunks[at].before != 0;
    });
    if (other == by_before.end()) break;
    next[one] = *other;
    follows[*other] = true;
    const std::size_t begin = first[one];
    const std::size_t end = last[*other];
    last[begin] = end;
    first[end] = begin;
  }
  std::vector<PlacedChunk> order;
  const auto add_row = [&](std::size_t at) {
    for (; at != kNone; at = next[at]) order.push_back({chunks[at].address, 0});
  };
  const std::size_t at_end = n == 0 ? kNone : first[by_behind[0]];
  for (std::size_t i = 0; i < n; ++i) {
    if (!follows[i] && i != at_end) add_row(i);
  }
  add_row(at_end);
  return order;
}

std::vector<PlacedChunk> spaced_rows(std::span<const ChunkEnds> chunks, std::uint64_t chunk_bytes,
                                     std::span<const std::uint64_t> sizes) {
  std::vector<PlacedChunk> order;
  const std::uint64_t unit = std::max<std::uint64_t>(chunk_bytes / kUnitsPerChunk, 1);
  Filling filling(sizes, unit, (kMostBetween + 2) * kUnitsPerChunk);
  for (std::size_t at = 0; at < chunks.size(); at += kRowOfChunks) {
    add_spaced_row(chunks.subspan(at, std::min(kRowOfChunks, chunks.size() - at)), unit, &filling, &order);
  }
  return order;
}

}  // namespace memopt::planner
