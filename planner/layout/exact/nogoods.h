// Nogoods of exact search: sets of buffers with least offsets at which they cannot be placed. What is refuted is
// refuted for all higher least offsets, too. A hash table of bounded size that forgets old entries; a miss costs the
// search time and nothing else. (Nogood recording: Dechter, "Enhancement schemes for constraint processing", Artificial
// Intelligence 41, 1990; here over least offsets, not over assignments.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "planner/layout/problem/random.h"

namespace memopt::layout {

template <typename Offset>
class Nogoods {
 public:
  explicit Nogoods(std::size_t buffers) : signatures_(buffers) {
    Random random(0);
    for (std::uint64_t& signature : signatures_) signature = random.next();
  }

  // The set is those of the buffers [begin, end) whose `least` is below `placed`.
  bool covers(const std::vector<Offset>& least, Offset placed, std::int32_t begin, std::int32_t end) const {
    if (entries_.empty()) return false;
    const std::uint64_t hash = hash_of(least, placed, begin, end);
    const std::size_t slot = slot_of(hash);
    for (std::size_t way = slot; way < slot + kWays; ++way) {
      if (entries_[way].hash == hash && covers(entries_[way], least, placed, begin, end)) return true;
    }
    return false;
  }

  void add(const std::vector<Offset>& least, Offset placed, std::int32_t begin, std::int32_t end) {
    if (static_cast<std::size_t>(end - begin) > kMost / 16) return;
    if (entries_.empty()) entries_.resize(kEntries);
    if (states_.size() + static_cast<std::size_t>(end - begin) > kMost) {
      states_.clear();
      entries_.assign(kEntries, {});
    }
    const std::uint64_t hash = hash_of(least, placed, begin, end);
    const std::size_t first = states_.size();
    for (std::int32_t b = begin; b < end; ++b) {
      if (least[b] != placed) states_.emplace_back(b, least[b]);
    }
    entries_[slot_of(hash) + next_way_++ % kWays] = {hash, first, states_.size()};
  }

 private:
  static constexpr std::size_t kEntries = std::size_t{1} << 14;
  static constexpr std::size_t kWays = 4;                     // entries in which a set may be
  static constexpr std::size_t kMost = std::size_t{1} << 20;  // of states_

  struct Entry {
    std::uint64_t hash = 0;
    std::size_t begin = 0;  // in states_
    std::size_t end = 0;
  };

  static std::size_t slot_of(std::uint64_t hash) { return (hash >> 20) % (kEntries / kWays) * kWays; }

  std::uint64_t hash_of(const std::vector<Offset>& least, Offset placed, std::int32_t begin, std::int32_t end) const {
    std::uint64_t hash = 0;
    for (std::int32_t b = begin; b < end; ++b) {
      if (least[b] != placed) hash += signatures_[b];
    }
    return hash;
  }

  bool covers(const Entry& entry, const std::vector<Offset>& least, Offset placed, std::int32_t begin,
              std::int32_t end) const {
    std::size_t i = entry.begin;
    for (std::int32_t b = begin; b < end; ++b) {
      if (least[b] == placed) continue;
      if (i == entry.end || states_[i].first != b || states_[i].second > least[b]) return false;
      ++i;
    }
    return i == entry.end;
  }

  std::vector<std::uint64_t> signatures_;  // of buffers; the hash of a set is their sum
  std::vector<Entry> entries_;
  std::vector<std::pair<std::int32_t, Offset>> states_;  // buffers and their least offsets, set by set
  std::size_t next_way_ = 0;
};

}  // namespace memopt::layout
