// What a slab takes of the bootstrap allocator's chunks, and gives back (slab.h): free ones, and those in which blocks
// lie that stay.
#include <algorithm>
#include <new>

#include "agent/memory/bootstrap.h"
#include "agent/memory/rounding.h"
#include "shm/plan.h"

namespace memopt::agent {
namespace {

constexpr std::uint64_t kAlignment = shm::kPlanAlignment;

}  // namespace

Chunk* Bootstrap::chunk_at(std::uint64_t address) noexcept {
  Window* const window = chunks_.window_at(address);
  if (window == nullptr || window->kind == Window::Kind::kSlab) return nullptr;
  const std::uint64_t offset = address - window->base;
  const auto page = static_cast<std::size_t>(offset / chunks_.chunk_bytes());
  if (offset % chunks_.chunk_bytes() != 0 || page >= window->chunks.size()) return nullptr;
  Chunk* const chunk = window->chunks[page];
  return chunk != nullptr && chunk->slab_slot < 0 ? chunk : nullptr;
}

std::uint64_t Bootstrap::address_of(const Chunk& chunk) const noexcept {
  return chunk.home->base + chunk.page * chunks_.chunk_bytes();
}

void Bootstrap::shrink_blocks_in(const Chunk& chunk) {
  for_each_part(chunk, [&](Span& span, std::uint64_t, std::uint64_t) {
    if (span.owner == nullptr || is_gone(span)) return;
    const std::uint64_t given = chunk.home->kind == Window::Kind::kRegion ? region_.shrink(*span.owner)
                                                                          : shrink_shared(*chunk.home, *span.owner);
    served_bytes_ -= given;
  });
}

std::uint64_t Bootstrap::shrink_shared(Window& window, Block& block) {
  const std::uint64_t begin = block.span->begin;
  const std::uint64_t old_end = block.span->end;
  const std::uint64_t end = begin + round_up(block.bytes, kAlignment);
  if (end >= old_end) return 0;
  Release ignored;
  // No use of them by the block is known; those of before it are its own.
  window.space->give_back(block.span, block.former);
  Span* taken = window.space->take_at(begin, end, &block, &ignored);
  // What was one span needs no memory to be one again.
  const bool shrunk = taken != nullptr;
  if (!shrunk) taken = window.space->take_at(begin, old_end, &block, &ignored);
  block.span = taken;
  shared_.changed(window);
  if (!shrunk) throw std::bad_alloc();
  shared_owned_ -= old_end - end;
  return old_end - end;
}

bool Bootstrap::take_out(const Chunk& chunk, std::uint64_t begin, std::uint64_t end) noexcept {
  const std::uint64_t first = chunk.page * chunks_.chunk_bytes();
  Window& window = *chunk.home;
  if (window.kind == Window::Kind::kRegion) return region_.take_out(first + begin, first + end);
  if (take_away(window, first + begin, first + end) == nullptr) return false;
  shared_.gave_up(window, end - begin);
  window.gone_bytes += end - begin;
  return true;
}

void Bootstrap::keep_for(Chunk* chunk, OwnershipMap& slab_map) noexcept {
  chunk->kept = true;
  ++kept_chunks_;
  slab_map_ = &slab_map;
  Window& window = *chunk->home;
  if (window.kind != Window::Kind::kShared) return;
  ++window.kept_chunks;
  if (window.listed.is_linked()) empty_shared_.erase(empty_shared_.iterator_to(window));
}

void Bootstrap::end_keeping(Chunk* chunk) noexcept {
  chunk->kept = false;
  --kept_chunks_;
  Window& window = *chunk->home;
  if (window.kind == Window::Kind::kRegion) {
    region_.give_up_gone(chunk->page);
  } else if (--window.kept_chunks == 0 && !has_block(window)) {
    empty_shared_.push_back(window);
  }
}

void Bootstrap::put_back(Chunk* chunk, const Release& uses) {
  Window& window = *chunk->home;
  if (window.kind == Window::Kind::kRegion) {
    region_.put_back(chunk->page, uses);
  } else {
    for_each_part(*chunk, [&](Span& span, std::uint64_t begin, std::uint64_t end) {
      if (!is_gone(span)) return;
      window.space->give_back(&span, uses);
      window.gone_bytes -= end - begin;
      shared_.came_back(window, end - begin);
    });
    if (--window.kept_chunks == 0 && !has_block(window)) empty_shared_.push_back(window);
  }
  chunk->kept = false;
  --kept_chunks_;
}

// Where there is no host memory for it, bytes stay free here.
void Bootstrap::return_kept(Window& window, std::uint64_t begin, std::uint64_t end, const Release& uses) noexcept {
  const std::uint64_t chunk_bytes = chunks_.chunk_bytes();
  for (auto page = static_cast<std::size_t>(begin / chunk_bytes); page * chunk_bytes < end; ++page) {
    Chunk* const chunk = window.chunks[page];
    if (chunk == nullptr || !chunk->kept || chunk->slab_slot < 0) continue;
    const std::uint64_t first = page * chunk_bytes;
    const std::uint64_t from = std::max(begin, first) - first;
    const std::uint64_t to = std::min(end, first + chunk_bytes) - first;
    const std::uint64_t there = static_cast<std::uint64_t>(chunk->slab_slot) * chunk_bytes;
    Span* const span = slab_map_->find(there + from, nullptr);
    if (span == nullptr || !is_gone(*span) || span->begin != there + from || span->end != there + to) continue;
    if (take_out(*chunk, from, to)) slab_map_->give_back(span, uses);
  }
}

void Bootstrap::begin_slab_search() noexcept {
  searched_free_ = 0;
  region_.search_from(0);
}

Chunk* Bootstrap::find_free_chunk() noexcept {
  searched_free_ = std::min(searched_free_, free_.size());
  for (; searched_free_ < free_.size(); ++searched_free_) {
    if (free_[searched_free_]->slab_slot < 0) return free_[searched_free_];
  }
  return region_.find_free_chunk();
}

bool Bootstrap::free_empty_window() noexcept {
  std::size_t tries = kTries;
  for (auto at = empty_shared_.begin(); at != empty_shared_.end() && tries != 0; --tries) {
    if (dismantle(&*at++)) return true;
  }
  return false;
}

void Bootstrap::hand_over(const std::vector<Chunk*>& added, OwnershipMap& slab_map) {
  region_.hand_over(added, slab_map);
  std::erase_if(free_, [&](Chunk* chunk) {
    if (chunk->slab_slot < 0) return false;
    chunk->spare = false;
    return true;
  });
  searched_free_ = 0;
}

Chunk* Bootstrap::take_free_chunk() noexcept {
  while (!free_.empty()) {
    Chunk* const chunk = free_.back();
    free_.pop_back();
    chunk->spare = false;
    // The others are the slab's, which holds them.
    if (chunk->slab_slot < 0) return chunk;
  }
  return nullptr;
}

void Bootstrap::end_loan(Chunk* chunk) noexcept {
  chunk->lent = false;
  region_.end_loan();
  keep(chunk);
}

void Bootstrap::keep_given_up(const std::vector<Chunk*>& chunks) noexcept {
  for (Chunk* const chunk : chunks) keep(chunk);
  region_.retire(chunks.size());
}

void Bootstrap::keep(Chunk* chunk) noexcept {
  if (Window* const home = chunk->home) {
    // The search has passed it.
    if (home->kind == Window::Kind::kRegion) region_.search_from(chunk->page);
    return;
  }
  searched_free_ = 0;
  if (chunk->spare) return;
  try {
    free_.push_back(chunk);
    chunk->spare = true;
  } catch (const std::bad_alloc&) {
    chunks_.release(chunk);
  }
}

}  // namespace memopt::agent
