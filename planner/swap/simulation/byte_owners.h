// The last owner of each byte, while blocks take and leave them in order of operations.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace memopt::swap {

class ByteOwners {
 public:
  static constexpr std::int64_t kUnowned = INT64_MIN;
  static constexpr std::int64_t kForever = INT64_MAX;

  struct Owner {
    std::uint64_t from = 0;        // up to the next entry
    std::int64_t last = kUnowned;  // the operation with which it let go, or will
    std::int32_t out_swap = -1;    // by a swap, or by a free
    std::uint32_t block = 0;
  };

  void clear() { owners_.assign(1, Owner{}); }

  // Calls seen(owner) for each owner of [from, to) before; then they are the new one's. O(log n + n moved).
  template <typename Seen>
  void take(std::uint64_t from, std::uint64_t to, Owner owner, const Seen& seen) {
    // Entries [i, j) lie in [from, to); the one before i reaches into it if none begins at `from`.
    auto i = std::lower_bound(owners_.begin(), owners_.end(), from,
                              [](const Owner& one, std::uint64_t at) { return one.from < at; });
    const bool cut = i == owners_.end() || i->from != from;
    if (cut) --i;
    auto j = i;
    while (j != owners_.end() && j->from < to) {
      if (j->last != kUnowned) seen(*j);
      ++j;
    }
    Owner rest = *(j - 1);
    rest.from = to;
    const bool keep_rest = j == owners_.end() || j->from != to;
    owner.from = from;
    Owner fresh[3];
    std::size_t count = 0;
    if (cut) fresh[count++] = *i;
    fresh[count++] = owner;
    if (keep_rest) fresh[count++] = rest;
    const auto old = static_cast<std::size_t>(j - i);
    const std::size_t both = std::min(old, count);
    const auto at = std::copy_n(fresh, both, i);
    if (old > count) {
      owners_.erase(at, j);
    } else {
      owners_.insert(at, fresh + both, fresh + count);
    }
  }

 private:
  std::vector<Owner> owners_;
};

}  // namespace memopt::swap
