#include "blocks.h"

#include <algorithm>
#include <iterator>

namespace launch_effects {

void Blocks::add(Block block) {
  remove(block.address);
  ++allocated_;
  bytes_ += block.size;
  peak_bytes_ = std::max(peak_bytes_, bytes_);
  by_id_.emplace(block.id, block.address);
  by_address_.emplace(block.address, std::move(block));
}

void Blocks::remove(std::uintptr_t address) {
  const auto found = by_address_.find(address);
  if (found == by_address_.end()) return;
  ++freed_;
  bytes_ -= found->second.size;
  by_id_.erase(found->second.id);
  by_address_.erase(found);
}

void Blocks::remove_range(std::uintptr_t address, std::size_t size) {
  for (auto at = by_address_.lower_bound(address); at != by_address_.end() && at->first - address < size;)
    remove((at++)->first);
}

void Blocks::clear() {
  freed_ += by_address_.size();
  bytes_ = 0;
  by_id_.clear();
  by_address_.clear();
}

Block* Blocks::at(std::uintptr_t address) {
  const auto after = by_address_.upper_bound(address);
  if (after == by_address_.begin()) return nullptr;
  Block& block = std::prev(after)->second;
  return block.contains(address) ? &block : nullptr;
}

Block* Blocks::find(BlockId id) {
  const auto found = by_id_.find(id);
  return found != by_id_.end() ? &by_address_.at(found->second) : nullptr;
}

void Blocks::wrote(std::uintptr_t address, std::size_t size) {
  if (Block* const block = at(address)) {
    const std::uint64_t begin = address - block->address;
    block->written.add({begin, std::min<std::uint64_t>(begin + size, block->size)});
  }
}

void Blocks::copied(std::uintptr_t to, std::uintptr_t from, std::size_t size) {
  const Block* const source = at(from);
  if (source == nullptr) return wrote(to, size);
  const std::uint64_t begin = from - source->address;
  for (const Range& part : source->written.inside({begin, begin + size}))
    wrote(to + (part.begin - begin), part.end - part.begin);
}

std::vector<const Block*> Blocks::in_order() const {
  std::vector<const Block*> blocks;
  for (const auto& [id, address] : by_id_) blocks.push_back(&by_address_.at(address));
  return blocks;
}

}  // namespace launch_effects
