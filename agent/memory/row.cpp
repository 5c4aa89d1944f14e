#include "agent/memory/row.h"

#include <algorithm>
#include <bit>

#include "shm/plan.h"

namespace memopt::agent {
namespace {

// Freed blocks that are asked about at once in vain, each by a call of the driver.
constexpr std::size_t kTries = 8;

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; }

// A pointer to the block's end lies in the block's own bytes, whatever the neighbour is.
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
  make_room_for_frees();
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
    freed_.push_back(used_);
    closed_ = true;
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  ++live_;
  block.span = span;
  block.window = &window_;
  block.base = window_.base + used_;
  used_ = span->end;
  return CUDA_SUCCESS;
}

void Row::take_back(Block& block, const Release& uses) noexcept {
  window_.map.give_back(block.span, uses);
  freed_.push_back(block.span->begin);
  --live_;
  closed_ = true;
}

// One for each live block, one more, and one for what is left beside it.
void Row::make_room_for_frees() { freed_.reserve(std::max(std::bit_ceil(freed_.size() + live_ + 2), std::size_t{64})); }

bool Row::serve_again(Block& block) {
  const std::uint64_t room = room_of(block);
  std::uint64_t begin = 0;
  if (!window_.map.find_free(room, &begin)) return false;
  make_room_for_frees();
  Block* in_the_way = nullptr;
  Span* const span = window_.map.take(begin, begin + room, &block, nullptr, &block.former, &in_the_way);
  if (span == nullptr) return false;
  ++live_;
  // What is left behind it is on its own now.
  if (span->next != nullptr && span->next->owner == nullptr) freed_.push_back(span->next->begin);
  block.span = span;
  block.window = &window_;
  block.base = window_.base + begin;
  closed_ = true;
  return true;
}

bool Row::give_up(std::vector<Chunk*>* freed) {
  bool any = false;
  awaited_ = {};
  // What can't be given up yet is passed over, and asked about again after the others.
  for (std::size_t tries = kTries; tries != 0 && !freed_.empty();) {
    if (next_freed_ >= freed_.size()) next_freed_ = 0;
    const Outcome outcome = give_up_around(freed_[next_freed_], freed);
    if (outcome == Outcome::kLater) {
      ++next_freed_;
      --tries;
      continue;
    }
    any = any || outcome == Outcome::kGaveUp;
    freed_[next_freed_] = freed_.back();
    freed_.pop_back();
  }
  return any;
}

// The chunks in which the free span at `offset` has bytes, and that are free as a whole. The neighbours' blocks have at
// least a chunk each, so that no more than a few spans have to be looked at.
Row::Outcome Row::give_up_around(std::uint64_t offset, std::vector<Chunk*>* freed) {
  const std::uint64_t chunk_bytes = chunks_.chunk_bytes();
  const Span* middle = window_.map.find(offset, nullptr);
  // Its first chunk was given up together with the neighbour's before it.
  if (middle != nullptr && middle->owner != nullptr) middle = middle->next;
  if (middle == nullptr || middle->owner != nullptr) return Outcome::kNothing;
  Release uses = middle->release;
  const std::uint64_t low = middle->begin / chunk_bytes * chunk_bytes;
  const std::uint64_t high = round_up(middle->end, chunk_bytes);
  std::uint64_t begin = middle->begin;
  for (const Span* span = middle->previous; begin > low && span != nullptr && span->owner == nullptr;) {
    uses.add(span->release);
    begin = span->begin;
    span = span->previous;
  }
  std::uint64_t end = middle->end;
  for (const Span* span = middle->next; end < high && span != nullptr && span->owner == nullptr;) {
    uses.add(span->release);
    end = span->end;
    span = span->next;
  }
  begin = round_up(std::max(begin, low), chunk_bytes);
  end = std::min(end, high) / chunk_bytes * chunk_bytes;
  // A chunk that is shared with an owner goes when that one's block is freed.
  if (begin >= end) return Outcome::kNothing;
  if (!streams_.is_over(uses, true)) {
    awaited_ = uses;
    return Outcome::kLater;
  }
  make_room(freed, static_cast<std::size_t>((end - begin) / chunk_bytes));
  Release former;
  Block* in_the_way = nullptr;
  if (window_.map.take(begin, end, &gone_, nullptr, &former, &in_the_way) == nullptr) return Outcome::kLater;
  // Refused (and said so): these bytes are not used any more.
  if (chunks_.unmap(window_.base + begin, end - begin) != CUDA_SUCCESS) return Outcome::kNothing;
  for (std::uint64_t at = begin; at < end; at += chunk_bytes) {
    Chunk*& chunk = window_.chunks[static_cast<std::size_t>(at / chunk_bytes)];
    chunk->home = nullptr;
    freed->push_back(chunk);
    chunk = nullptr;
  }
  return Outcome::kGaveUp;
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
  freed_.clear();
  live_ = 0;
}

}  // namespace memopt::agent
