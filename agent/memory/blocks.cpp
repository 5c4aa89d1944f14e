#include "agent/memory/blocks.h"

#include <new>

namespace memopt::agent {

struct BlockIndex::Array {
  static constexpr std::size_t kBlocks = 128;
  Array* next = nullptr;
  Block blocks[kBlocks];
};

BlockIndex::~BlockIndex() {
  table_.release();
  while (owned_ != nullptr) {
    Array* const next = owned_->next;
    delete owned_;
    owned_ = next;
  }
}

[[gnu::cold, gnu::noinline]] bool BlockIndex::make_more() noexcept {
  Array* const array = new (std::nothrow) Array;
  if (array == nullptr) return false;
  array->next = owned_;
  owned_ = array;
  for (Block& block : array->blocks) drop(&block);
  return true;
}

void BlockIndex::clear() noexcept {
  for_each([this](Block& block) { drop(&block); });
  table_.clear();
}

}  // namespace memopt::agent
