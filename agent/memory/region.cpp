#include "agent/memory/region.h"

#include <algorithm>
#include <new>

#include "agent/memory/rounding.h"
#include "shm/plan.h"

namespace memopt::agent {
namespace {

constexpr std::uint64_t kAlignment = shm::kPlanAlignment;
// Addresses, in device sizes: what is in use can be torn to pieces, and still a block has its bytes side by side; and
// blocks can be away, so that there may be more of them than the device has room for. At most half of all there are.
constexpr std::uint64_t kAddresses = 6;
// Blocks of less than so many chunks would waste too much of them if each had its own.
constexpr std::uint64_t kSmall = 5;
// Chunks that are asked about at once in vain, each by calls of the driver.
constexpr int kTries = 8;

}  // namespace

bool Region::start() {
  if (window_.base != 0) return true;
  const std::uint64_t all = chunks_.share(chunks_.device_bytes() * kAddresses, 2);
  window_.kind = Window::Kind::kRegion;
  window_.base = chunks_.reserve(all);
  if (window_.base == 0) return false;
  window_.bytes = all;
  chunks_.set_window(window_.base, all, &window_);
  free_.set_unit(chunks_.chunk_bytes());
  holes_.set_unit(chunks_.chunk_bytes());
  return true;
}

// Blocks that share chunks give fewer of them back, when some are freed, than if each had its own. That is not to
// matter on a device that is full.
bool Region::may_share(const Block& block) const noexcept {
  const std::uint64_t part = chunks_.device_bytes() / 8;
  return side_by_side_ <= part && block.bytes <= part - side_by_side_;
}

bool Region::is_aligned(const Block& block) const noexcept {
  const bool small = block.bytes < kSmall * chunks_.chunk_bytes();
  return (closed_ && !small) || !may_share(block);
}

namespace {

// A pointer to the block's end lies in the block's own bytes, whatever the neighbour is: what launches name is then the
// same in each iteration. Not where that were a chunk more than the driver takes.
std::uint64_t room_for(const Block& block, std::uint64_t chunk_bytes, bool aligned) noexcept {
  if (aligned) return round_up(block.bytes, chunk_bytes);
  return block.bytes % chunk_bytes == 0 ? block.bytes : round_up(block.bytes + 1, kAlignment);
}

}  // namespace

void Region::make_room(std::size_t chunks) {
  // A run for each block that is freed, for what is left beside one that is made, and beside each chunk that goes.
  free_.make_room(free_.count() + live_ + chunks + 4);
  holes_.make_room(holes_.count() + retiring_.size() + chunks + 1);
}

bool Region::shares_chunks(const Span& span) const noexcept {
  return (span.begin | span.end) % chunks_.chunk_bytes() != 0;
}

bool Region::take(Block& block, std::uint64_t begin, std::uint64_t room) noexcept {
  Block* in_the_way = nullptr;
  Span* const span = window_.map.take(begin, begin + room, &block, nullptr, &block.former, &in_the_way);
  if (span == nullptr) return false;
  free_.remove(begin, begin + room);
  ++live_;
  if (shares_chunks(*span)) side_by_side_ += room;
  block.span = span;
  block.window = &window_;
  block.base = window_.base + begin;
  if (!pages_.empty()) [[unlikely]]
    count_away(block);
  return true;
}

bool Region::serve(Block& block, bool anywhere) {
  const bool aligned = !anywhere && is_aligned(block);
  const std::uint64_t room = room_for(block, chunks_.chunk_bytes(), aligned);
  std::uint64_t begin = 0;
  if (!free_.find(room, aligned ? chunks_.chunk_bytes() : kAlignment, &begin)) return false;
  make_room(0);
  return take(block, begin, room);
}

bool Region::serve_small(Block& block, std::uint64_t room, bool may_break) {
  std::uint64_t begin = 0;
  if (is_aligned(block)) return false;
  if (!(may_break ? free_.find(room, kAlignment, &begin) : free_.find_beside(room, kAlignment, &begin))) return false;
  make_room(0);
  return take(block, begin, room);
}

bool Region::serve_in_row(Block& block, std::uint64_t room) {
  if (!may_share(block)) return false;
  if (block.bytes >= chunks_.chunk_bytes()) room = room_for(block, chunks_.chunk_bytes(), false);
  std::uint64_t begin = row_end_;
  if (!free_.begins_at(begin, room) && !free_.find_in_largest(room, &begin)) return false;
  make_room(0);
  if (!take(block, begin, room)) return false;
  row_end_ = begin + room;
  return true;
}

void Region::take_back(Block& block, const Release& uses) noexcept {
  Span* const span = block.span;
  window_.map.give_back(span, uses);
  free_.add(span->begin, span->end);
  --live_;
  if (shares_chunks(*span)) side_by_side_ -= span->end - span->begin;
  if (block.bytes >= chunks_.chunk_bytes()) closed_ = true;
  const std::uint64_t begin = span->begin;
  const std::uint64_t end = span->end;
  if (lent_ != 0) [[unlikely]]
    return_lent(begin, end);
  if (away_ != 0) [[unlikely]]
    drop_away(begin, end);
}

bool Region::plan_growth(const Block& block, Growth* growth) {
  if (!start()) return false;
  const std::uint64_t chunk_bytes = chunks_.chunk_bytes();
  const bool aligned = is_aligned(block);
  const std::uint64_t room = room_for(block, chunk_bytes, aligned);
  const std::uint64_t end = window_.map.bytes();
  growth->begin = free_.begin_of_last(end);
  if (aligned) growth->begin = round_up(growth->begin, chunk_bytes);
  growth->at = end;
  const bool fits = room <= window_.bytes - growth->begin;
  // What is free at the end is made use of before addresses are used again.
  if (!fits || growth->begin == end) {
    std::uint64_t hole = 0;
    if (holes_.find(round_up(room, chunk_bytes), 1, &hole)) {
      *growth = {hole, hole, static_cast<std::size_t>(round_up(room, chunk_bytes) / chunk_bytes)};
      return true;
    }
  }
  growth->chunks = static_cast<std::size_t>(round_up(growth->begin + room - end, chunk_bytes) / chunk_bytes);
  return fits;
}

CUresult Region::grow(const Growth& growth, const std::vector<Chunk*>& chunks, Block& block) {
  const std::uint64_t chunk_bytes = chunks_.chunk_bytes();
  const std::uint64_t bytes = chunks.size() * chunk_bytes;
  const std::uint64_t end = window_.map.bytes();
  window_.chunks.reserve(window_.chunks.size() + chunks.size());
  make_room(0);
  const CUresult mapped = chunks_.map(window_.base + growth.at, chunks);
  if (mapped != CUDA_SUCCESS) return mapped;
  if (growth.at == end) {
    try {
      window_.map.grow(bytes, Release{});
    } catch (const std::bad_alloc&) {
      chunks_.unmap(window_.base + growth.at, bytes);
      throw;
    }
    window_.chunks.resize(window_.chunks.size() + chunks.size());
  } else {
    for (std::uint64_t at = growth.at; at < growth.at + bytes; at += chunk_bytes) {
      window_.map.give_back(window_.map.find(at, nullptr), Release{});
    }
    holes_.remove(growth.at, growth.at + bytes);
  }
  std::size_t page = static_cast<std::size_t>(growth.at / chunk_bytes);
  for (Chunk* const chunk : chunks) {
    window_.chunks[page] = chunk;
    chunk->home = &window_;
    chunk->page = static_cast<std::uint32_t>(page++);
  }
  free_.add(growth.at, growth.at + bytes);
  const bool aligned = is_aligned(block);
  // Out of host memory. The chunks are mapped, for the next block.
  return take(block, growth.begin, room_for(block, chunk_bytes, aligned)) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

Release Region::uses_of(std::size_t page) const noexcept {
  Release uses;
  for_each_span(page, [&](const Span& span) {
    if (span.owner == nullptr) uses.add(span.release);
  });
  return uses;
}

bool Region::is_free(std::size_t page) const noexcept {
  bool free = true;
  for_each_span(page, [&](const Span& span) { free = free && span.owner == nullptr; });
  return free;
}

std::uint64_t Region::freed_at(std::size_t page, const SwitchTimes& times) const {
  std::uint64_t last = 0;
  for_each_span(page, [&](const Span& span) {
    if (span.owner == nullptr) return;
    last = std::max(last, is_gone(span) ? kNeverInPlan : times.freed_of(span.owner->number));
  });
  return last;
}

// The bytes of a chunk that is free as a whole are no block's any more. Null: out of host memory.
Span* Region::punch(std::size_t page) noexcept {
  const std::uint64_t begin = page * chunks_.chunk_bytes();
  Span* const span = take_away(window_, begin, begin + chunks_.chunk_bytes());
  if (span != nullptr) free_.remove(begin, begin + chunks_.chunk_bytes());
  return span;
}

std::uint64_t Region::shrink(Block& block) {
  const std::uint64_t begin = block.span->begin;
  const std::uint64_t old_end = block.span->end;
  const std::uint64_t end = begin + round_up(block.bytes, kAlignment);
  if (end >= old_end) return 0;
  make_room(1);
  Release ignored;
  Block* in_the_way = nullptr;
  if (shares_chunks(*block.span)) side_by_side_ -= old_end - begin;
  window_.map.give_back(block.span, Release{});
  Span* taken = window_.map.take(begin, end, &block, nullptr, &ignored, &in_the_way);
  // What was one span needs no memory to be one again.
  const bool shrunk = taken != nullptr;
  if (!shrunk) taken = window_.map.take(begin, old_end, &block, nullptr, &ignored, &in_the_way);
  block.span = taken;
  if (shares_chunks(*taken)) side_by_side_ += taken->end - begin;
  if (!shrunk) throw std::bad_alloc();
  // No use of them by the block is known; those of before it are its own.
  window_.map.add_release(end, old_end, block.former);
  free_.add(end, old_end);
  return old_end - end;
}

bool Region::take_out(std::uint64_t begin, std::uint64_t end) noexcept {
  try {
    make_room(1);
  } catch (const std::bad_alloc&) {
    return false;
  }
  if (take_away(window_, begin, end) == nullptr) return false;
  free_.remove(begin, end);
  return true;
}

void Region::put_back(std::size_t page, const Release& uses) {
  std::size_t parts = 0;
  for_each_span(page, [&](const Span& span) { parts += is_gone(span) ? 1 : 0; });
  make_room(parts);
  for_each_span(page, [&](Span& span) {
    if (!is_gone(span)) return;
    window_.map.give_back(&span, uses);
    free_.add(span.begin, span.end);
  });
}

// Without host memory it stays mapped.
void Region::give_up_gone(std::size_t page) noexcept {
  try {
    make_room(1);
  } catch (const std::bad_alloc&) {
    return;
  }
  unmap(page, page + 1);
}

// Of chunks side by side, whose bytes are gone. Returns how many.
std::size_t Region::unmap(std::size_t first, std::size_t last) noexcept {
  const std::uint64_t chunk_bytes = chunks_.chunk_bytes();
  // Refused (and said so): these bytes are not used any more.
  if (chunks_.unmap(window_.base + first * chunk_bytes, (last - first) * chunk_bytes) != CUDA_SUCCESS) return 0;
  for (std::size_t page = first; page < last; ++page) {
    window_.chunks[page]->home = nullptr;
    window_.chunks[page] = nullptr;
  }
  holes_.add(first * chunk_bytes, last * chunk_bytes);
  return last - first;
}

std::size_t Region::give_up(std::size_t limit, bool of_slab, std::vector<Chunk*>* freed, Release* awaited) {
  limit = std::min(limit, free_.whole_units());
  if (limit == 0) return 0;
  const std::uint64_t chunk_bytes = chunks_.chunk_bytes();
  std::vector<std::size_t> pages;
  pages.reserve(limit);
  int tries = kTries;
  // What is free at the end comes last: the next block that is too large for what is free begins there.
  for (const bool at_end : {false, true}) {
    free_.for_each_by_size([&](std::uint64_t begin, std::uint64_t end) {
      if (end - begin < chunk_bytes) return false;
      if ((end == window_.map.bytes()) != at_end) return true;
      for (std::uint64_t page = end / chunk_bytes; page-- > (begin + chunk_bytes - 1) / chunk_bytes;) {
        if (pages.size() == limit || tries == 0) return false;
        const Chunk* const chunk = window_.chunks[static_cast<std::size_t>(page)];
        if (chunk == nullptr) continue;  // away
        if (chunk->slab_slot >= 0 && !of_slab) continue;
        const Release uses = uses_of(static_cast<std::size_t>(page));
        if (streams_.is_over(uses, true)) {
          pages.push_back(static_cast<std::size_t>(page));
          continue;
        }
        await_also(uses, awaited);
        --tries;
      }
      return true;
    });
  }
  make_room(pages.size());
  memopt::agent::make_room(freed, pages.size());
  std::sort(pages.begin(), pages.end());
  std::size_t count = 0;
  for (std::size_t i = 0; i < pages.size();) {
    std::size_t next = i;
    while (next < pages.size() && pages[next] == pages[i] + (next - i) && punch(pages[next]) != nullptr) ++next;
    if (next == i) break;
    const std::size_t before = freed->size();
    for (std::size_t page = pages[i]; page < pages[i] + (next - i); ++page) freed->push_back(window_.chunks[page]);
    const std::size_t gone = unmap(pages[i], pages[i] + (next - i));
    if (gone == 0) freed->resize(before);
    count += gone;
    i = next;
  }
  return count;
}

Chunk* Region::find_free_chunk() noexcept {
  for (; searched_free_ < window_.chunks.size(); ++searched_free_) {
    Chunk* const chunk = window_.chunks[searched_free_];
    if (chunk != nullptr && chunk->slab_slot < 0 && is_free(searched_free_)) return chunk;
  }
  return nullptr;
}

void Region::hand_over(const std::vector<Chunk*>& added, OwnershipMap& map) {
  const std::uint64_t chunk_bytes = chunks_.chunk_bytes();
  const auto is_here = [&](const Chunk* chunk) {
    return chunk != nullptr && chunk->home == &window_ && !chunk->lent && !chunk->kept;
  };
  const std::size_t before = retiring_.size();
  const auto count = static_cast<std::size_t>(std::count_if(added.begin(), added.end(), is_here));
  make_room(count);
  retiring_.reserve(before + count);
  for (const Chunk* const chunk : added) {
    if (!is_here(chunk)) continue;
    const std::size_t page = chunk->page;
    const Release uses = uses_of(page);
    if (punch(page) == nullptr) {
      while (retiring_.size() > before) {
        const std::uint64_t begin = retiring_.back().page * chunk_bytes;
        window_.map.give_back(window_.map.find(begin, nullptr), retiring_.back().uses);
        free_.add(begin, begin + chunk_bytes);
        retiring_.pop_back();
      }
      throw std::bad_alloc();
    }
    retiring_.push_back({page, uses});
  }
  for (std::size_t i = before; i < retiring_.size(); ++i) {
    const auto begin = static_cast<std::uint64_t>(window_.chunks[retiring_[i].page]->slab_slot) * chunk_bytes;
    map.add_release(begin, begin + chunk_bytes, retiring_[i].uses);
  }
}

// Of the chunks in which a freed block had bytes. Without host memory they stay lent.
void Region::return_lent(std::uint64_t begin, std::uint64_t end) noexcept {
  const std::uint64_t chunk_bytes = chunks_.chunk_bytes();
  for (auto page = static_cast<std::size_t>(begin / chunk_bytes); page * chunk_bytes < end; ++page) {
    Chunk* const chunk = window_.chunks[page];
    if (chunk == nullptr || !chunk->lent || !is_free(page)) continue;
    const Release uses = uses_of(page);
    try {
      make_room(1);
      retiring_.reserve(retiring_.size() + 1);
    } catch (const std::bad_alloc&) {
      return;
    }
    if (punch(page) == nullptr) return;
    retiring_.push_back({page, uses});
    slab_map_->give_back(slab_map_->find(static_cast<std::uint64_t>(chunk->slab_slot) * chunk_bytes, nullptr), uses);
    chunk->lent = false;
    --lent_;
  }
}

std::size_t Region::retire(std::size_t limit, bool all) noexcept {
  std::size_t done = 0;
  int tries = kTries;
  for (std::size_t i = 0; i < retiring_.size() && done < limit && tries != 0;) {
    const std::size_t page = retiring_[i].page;
    Chunk* const chunk = window_.chunks[page];
    if (chunk->slab_slot >= 0 && !all) {
      ++i;
      continue;
    }
    if (!streams_.is_over(retiring_[i].uses, true)) {
      --tries;
      ++i;
      continue;
    }
    if (unmap(page, page + 1) != 0 && chunk->slab_slot < 0) chunks_.release(chunk);
    retiring_[i] = retiring_.back();
    retiring_.pop_back();
    ++done;
  }
  return done;
}

std::size_t Region::retiring() const noexcept {
  return static_cast<std::size_t>(std::count_if(retiring_.begin(), retiring_.end(), [&](const Retiring& one) {
    return window_.chunks[one.page]->slab_slot < 0;
  }));
}

void Region::await_retiring(Release* awaited) const noexcept {
  for (const Retiring& one : retiring_) {
    if (window_.chunks[one.page]->slab_slot < 0) await_also(one.uses, awaited);
  }
}

void Region::release_all() noexcept {
  unmap_window(window_, chunks_);
  for (Chunk* const chunk : window_.chunks) {
    if (chunk == nullptr) continue;
    chunk->home = nullptr;
    if (chunk->slab_slot < 0) chunks_.release(chunk);
  }
  window_.chunks.clear();
  retiring_.clear();
  lent_ = 0;
  free_.clear();
  live_ = 0;
  side_by_side_ = 0;
  row_end_ = 0;
  pages_.clear();
  leaving_ = 0;
  copied_ = 0;
  away_ = 0;
}

}  // namespace memopt::agent
