// From the numbers of blocks to their places in the store: open addressing with linear probing, at most half full. One
// cache line answers nearly every question.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace memopt::planner {

class BlockNumbers {
 public:
  struct Entry {
    std::uint64_t number = 0;  // 0: the entry is empty
    std::uint32_t block = 0;
    bool watched = false;  // an access has something to do with the block itself
  };

  BlockNumbers() : entries_(kLeast) {}

  std::size_t size() const { return size_; }

  // Null where there is none. Holds until the next insert() or erase().
  Entry* find(std::uint64_t number) {
    if (number == 0) return nullptr;
    for (std::size_t at = home(number);; at = next(at)) {
      Entry& entry = entries_[at];
      if (entry.number == number) return &entry;
      if (entry.number == 0) return nullptr;
    }
  }

  // `number` is not 0 and not there.
  void insert(std::uint64_t number, std::uint32_t block, bool watched) {
    if ((size_ + 1) * 2 > entries_.size()) grow();
    ++size_;
    place({number, block, watched});
  }

  // Moves up what was displaced, so that no marks of erased entries are needed (Knuth, volume 3, section 6.4,
  // algorithm R).
  void erase(Entry* entry) {
    --size_;
    auto hole = static_cast<std::size_t>(entry - entries_.data());
    for (std::size_t at = next(hole); entries_[at].number != 0; at = next(at)) {
      const std::size_t wanted = home(entries_[at].number);
      if (((at - wanted) & mask()) < ((at - hole) & mask())) continue;
      entries_[hole] = entries_[at];
      hole = at;
    }
    entries_[hole] = {};
  }

  template <typename Function>
  void for_each(const Function& function) {
    for (Entry& entry : entries_) {
      if (entry.number != 0) function(entry);
    }
  }
  template <typename Function>
  void for_each(const Function& function) const {
    for (const Entry& entry : entries_) {
      if (entry.number != 0) function(entry);
    }
  }

 private:
  static constexpr std::size_t kLeast = 1024;

  std::size_t mask() const { return entries_.size() - 1; }
  std::size_t next(std::size_t at) const { return (at + 1) & mask(); }
  // The highest bits of the product (Knuth, same section): numbers in a row and at even distances spread.
  std::size_t home(std::uint64_t number) const {
    return static_cast<std::size_t>((number * 0x9e3779b97f4a7c15u) >> shift_);
  }
  void place(const Entry& entry) {
    std::size_t at = home(entry.number);
    while (entries_[at].number != 0) at = next(at);
    entries_[at] = entry;
  }
  void grow() {
    std::vector<Entry> old(entries_.size() * 2);
    old.swap(entries_);
    --shift_;
    for (const Entry& entry : old) {
      if (entry.number != 0) place(entry);
    }
  }

  std::vector<Entry> entries_;
  int shift_ = 64 - std::countr_zero(kLeast);
  std::size_t size_ = 0;
};

}  // namespace memopt::planner
