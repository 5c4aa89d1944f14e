#include "agent/memory/row.h"

#include <algorithm>

#include "shm/plan.h"

namespace memopt::agent {
namespace {

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; }

// A pointer to the block's end lies in the block's own bytes, whoever is the neighbour.
constexpr std::uint64_t room_of(const Block& block) { return round_up(block.bytes + 1, shm::kPlanAlignment); }

}  // namespace

bool Row::chunks_for(std::uint64_t bytes, std::size_t* count) {
  const std::uint64_t room = round_up(bytes + 1, shm::kPlanAlignment);
  const std::uint64_t all = chunks_.device_bytes();
  // Blocks that share chunks give fewer of them back, when some are freed, than if each had its own. That is not to
  // matter on a device that is full.
  if (used_ > all / 8 || room > all / 8 - used_) return false;
  if (window_.base == 0) {
    // Addresses for all the device has; most are never mapped.
    window_.kind = Window::Kind::kRow;
    window_.base = chunks_.reserve(all);
    if (window_.base == 0) return false;
    window_.bytes = all;
    chunks_.set_window(window_.base, all, &window_);
  }
  const std::uint64_t wanted = round_up(used_ + room, chunks_.chunk_bytes());
  *count = static_cast<std::size_t>((wanted - window_.map.bytes()) / chunks_.chunk_bytes());
  return true;
}

CUresult Row::append(Block& block, const std::vector<Chunk*>& more) {
  const std::uint64_t bytes = more.size() * chunks_.chunk_bytes();
  window_.chunks.reserve(window_.chunks.size() + more.size());
  if (!more.empty()) {
    const CUresult mapped = chunks_.map(window_.base + window_.map.bytes(), more);
    if (mapped != CUDA_SUCCESS) return mapped;
    try {
      window_.map.grow(bytes, Release{});
    } catch (const std::bad_alloc&) {
      chunks_.unmap(window_.base + window_.map.bytes(), bytes);
      throw;
    }
    window_.chunks.insert(window_.chunks.end(), more.begin(), more.end());
    for (Chunk* const chunk : more) chunk->home = &window_;
  }
  Block* in_the_way = nullptr;
  Span* const span = window_.map.take(used_, used_ + room_of(block), &block, nullptr, &block.former, &in_the_way);
  // Out of host memory. The chunks are the row's now, for the next block or to be given up.
  if (span == nullptr) {
    dirty_ = true;
    closed_ = true;
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  block.span = span;
  block.window = &window_;
  block.base = window_.base + used_;
  used_ = span->end;
  return CUDA_SUCCESS;
}

void Row::take_back(Block& block, const Release& uses) noexcept {
  window_.map.give_back(block.span, uses);
  dirty_ = true;
  closed_ = true;
}

bool Row::give_up(bool wait, std::vector<Chunk*>* freed) {
  const std::size_t before = freed->size();
  dirty_ = give_up_chunks(window_, chunks_, streams_, wait, freed);
  return freed->size() != before;
}

bool Row::serve_again(Block& block) noexcept {
  std::uint64_t begin = 0;
  if (!window_.map.find_free(room_of(block), &begin)) return false;
  Block* in_the_way = nullptr;
  Span* const span = window_.map.take(begin, begin + room_of(block), &block, nullptr, &block.former, &in_the_way);
  if (span == nullptr) return false;
  block.span = span;
  block.window = &window_;
  block.base = window_.base + begin;
  closed_ = true;
  return true;
}

void Row::release_all() noexcept {
  const std::uint64_t chunk_bytes = chunks_.chunk_bytes();
  for (std::size_t i = 0; i < window_.chunks.size(); ++i) {
    Chunk* const chunk = window_.chunks[i];
    if (chunk == nullptr) continue;
    chunks_.unmap(window_.base + i * chunk_bytes, chunk_bytes);
    if (chunk->slab_slot < 0) chunks_.release(chunk);
  }
  window_.chunks.clear();
  closed_ = true;
  dirty_ = false;
}

}  // namespace memopt::agent
