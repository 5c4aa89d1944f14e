#include "agent/memory/blocks.h"

#include <new>

namespace memopt::agent {

struct BlockIndex::Array {
  static constexpr std::size_t kBlocks = 128;
  Array* next = nullptr;
  Block blocks[kBlocks];
};

BlockIndex::~BlockIndex() {
  delete[] slots_;
  while (owned_ != nullptr) {
    Array* const next = owned_->next;
    delete owned_;
    owned_ = next;
  }
}

bool BlockIndex::grow() noexcept {
  if (spare_ == nullptr) {
    Array* const array = new (std::nothrow) Array;
    if (array == nullptr) return false;
    array->next = owned_;
    owned_ = array;
    for (Block& block : array->blocks) drop(&block);
  }
  if ((count_ + 1) * 2 > capacity_) {
    const std::size_t capacity = capacity_ == 0 ? 1024 : capacity_ * 2;
    Slot* const slots = new (std::nothrow) Slot[capacity]{};
    if (slots == nullptr) return false;
    for (std::size_t i = 0; i < capacity_; ++i) {
      if (slots_[i].block == nullptr) continue;
      std::size_t at = hash(slots_[i].base) & (capacity - 1);
      while (slots[at].block != nullptr) at = (at + 1) & (capacity - 1);
      slots[at] = slots_[i];
    }
    delete[] slots_;
    slots_ = slots;
    capacity_ = capacity;
  }
  return true;
}

void BlockIndex::clear() noexcept {
  for (std::size_t i = 0; i < capacity_; ++i) {
    if (slots_[i].block != nullptr) drop(slots_[i].block);
    slots_[i] = {0, nullptr};
  }
  count_ = 0;
}

void BlockIndex::erase(std::uint64_t base) noexcept {
  const std::size_t mask = capacity_ - 1;
  std::size_t hole = hash(base) & mask;
  while (slots_[hole].base != base || slots_[hole].block == nullptr) hole = (hole + 1) & mask;
  // Whoever was pushed aside by this entry moves back, so that no marks of deleted entries are needed.
  for (std::size_t at = (hole + 1) & mask; slots_[at].block != nullptr; at = (at + 1) & mask) {
    const std::size_t home = hash(slots_[at].base) & mask;
    if (((at - home) & mask) >= ((at - hole) & mask)) {
      slots_[hole] = slots_[at];
      hole = at;
    }
  }
  slots_[hole] = {0, nullptr};
  --count_;
}

}  // namespace memopt::agent
