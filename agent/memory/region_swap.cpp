// Pages of the region that are away (region.h).
#include <algorithm>
#include <new>
#include <utility>

#include "agent/memory/page_runs.h"
#include "agent/memory/region.h"

namespace memopt::agent {

std::pair<std::size_t, std::size_t> Region::pages_of(const Block& block) const noexcept {
  const std::uint64_t chunk_bytes = chunks_.chunk_bytes();
  return {static_cast<std::size_t>(block.span->begin / chunk_bytes),
          static_cast<std::size_t>((block.span->end + chunk_bytes - 1) / chunk_bytes)};
}

const Region::Page& Region::page(std::size_t number) const noexcept {
  static constexpr Page kHerePage;
  return number < pages_.size() ? pages_[number] : kHerePage;
}

bool Region::is_moving(const Block& block) const noexcept {
  const auto [first, last] = pages_of(block);
  for (std::size_t number = first; number < last; ++number) {
    const Residency residency = page(number).residency;
    if (residency == Residency::kLeaving || residency == Residency::kComing) return true;
  }
  return false;
}

bool Region::has_copied(const Block& block) const noexcept {
  const auto [first, last] = pages_of(block);
  for (std::size_t number = first; number < last; ++number) {
    if (page(number).residency == Residency::kCopied) return true;
  }
  return false;
}

void Region::count_away(Block& block) const noexcept {
  const auto [first, last] = pages_of(block);
  for (std::size_t number = first; number < last; ++number) {
    if (page(number).residency != Residency::kHere) ++block.away;
  }
}

void Region::add_away(std::size_t page, int change) noexcept {
  for_each_span(page, [&](const Span& span) {
    if (span.owner != nullptr)
      span.owner->away = static_cast<std::uint32_t>(static_cast<int>(span.owner->away) + change);
  });
  away_ = static_cast<std::size_t>(static_cast<std::int64_t>(away_) + change);
}

void Region::begin_leaving(std::size_t page, HostPiece* piece) {
  if (pages_.size() <= page) pages_.resize(window_.chunks.size());
  const std::uint64_t begin = page * chunks_.chunk_bytes();
  const std::uint64_t end = begin + chunks_.chunk_bytes();
  std::uint64_t from = end;
  std::uint64_t to = begin;
  for_each_span(page, [&](const Span& span) {
    if (span.owner == nullptr) return;
    // Whatever used the bytes before this block did is over, and so is what it was used for itself.
    span.owner->former = {};
    span.owner->uses = {};
    from = std::min(from, std::max(begin, span.begin));
    to = std::max(to, std::min(end, span.end));
  });
  pages_[page] = {Residency::kLeaving, piece, static_cast<std::uint32_t>(from - begin),
                  static_cast<std::uint32_t>(std::max(from, to) - begin)};
  add_away(page, 1);
  ++leaving_;
}

Chunk* Region::end_leaving(std::size_t page) noexcept {
  if (chunks_.unmap(address_of(page), chunks_.chunk_bytes()) != CUDA_SUCCESS) return nullptr;
  --leaving_;
  Chunk* const chunk = window_.chunks[page];
  window_.chunks[page] = nullptr;
  chunk->home = nullptr;
  pages_[page].residency = Residency::kAway;
  return chunk;
}

HostPiece* Region::cancel_leaving(std::size_t page, const StreamUse* copy) noexcept {
  HostPiece* const piece = pages_[page].piece;
  if (copy != nullptr) use_all(page, *copy);
  --leaving_;
  pages_[page] = {};
  add_away(page, -1);
  return piece;
}

void Region::leave_later(std::size_t page) noexcept {
  pages_[page].residency = Residency::kCopied;
  --leaving_;
  ++copied_;
}

void Region::leave_now(std::size_t page) noexcept {
  pages_[page].residency = Residency::kLeaving;
  ++leaving_;
  --copied_;
}

HostPiece* Region::keep_copied(std::size_t page, const StreamUse* copy) noexcept {
  leave_now(page);
  return cancel_leaving(page, copy);
}

CUresult Region::begin_coming(std::size_t page, Chunk* chunk) {
  const CUresult mapped = chunks_.map(address_of(page), {chunk});
  if (mapped != CUDA_SUCCESS) return mapped;
  window_.chunks[page] = chunk;
  chunk->home = &window_;
  chunk->page = static_cast<std::uint32_t>(page);
  pages_[page].residency = Residency::kComing;
  return CUDA_SUCCESS;
}

// Whoever uses the page's bytes next is behind the copy.
void Region::use_all(std::size_t page, StreamUse copy) noexcept {
  for_each_span(page, [&](Span& span) {
    if (span.owner == nullptr) {
      span.release.add(copy);
      return;
    }
    span.owner->former.add(copy);
    if (span.owner->former.everything()) streams_.cut();
    span.owner->ready = 0;
  });
}

HostPiece* Region::end_coming(std::size_t page, StreamUse copy) noexcept {
  HostPiece* const piece = pages_[page].piece;
  if (piece != nullptr) use_all(page, copy);
  pages_[page] = {};
  add_away(page, -1);
  return piece;
}

Chunk* Region::cancel_coming(std::size_t page) noexcept {
  // Refused (and said so): the chunk stays where it is, for nothing.
  const bool unmapped = chunks_.unmap(address_of(page), chunks_.chunk_bytes()) == CUDA_SUCCESS;
  Chunk* const chunk = window_.chunks[page];
  window_.chunks[page] = nullptr;
  chunk->home = nullptr;
  pages_[page].residency = Residency::kAway;
  return unmapped ? chunk : nullptr;
}

void Region::begin_run(PageRun& run, HostPiece** pieces) noexcept {
  for (std::size_t i = 0; i < run.count; ++i) {
    Page& one = pages_[run.first + i];
    pieces[i] = one.piece;
    one = {Residency::kAway, nullptr, 0, static_cast<std::uint32_t>(chunks_.chunk_bytes()), &run};
  }
}

void Region::move_run(const PageRun& run, Residency to) noexcept {
  for (std::size_t number = run.first; number < run.first + run.count; ++number) {
    const Residency from = std::exchange(pages_[number].residency, to);
    if (from == Residency::kHere && to != Residency::kHere) add_away(number, 1);
    if (from != Residency::kHere && to == Residency::kHere) add_away(number, -1);
  }
}

void Region::return_run(const PageRun& run, StreamUse copy) noexcept {
  for (std::size_t number = run.first; number < run.first + run.count; ++number) use_all(number, copy);
  move_run(run, Residency::kHere);
}

void Region::end_run(const PageRun& run, HostPiece* const* pieces) noexcept {
  for (std::size_t i = 0; i < run.count; ++i) {
    pages_[run.first + i].run = nullptr;
    pages_[run.first + i].piece = pieces[i];
  }
  drop_away(run.first * chunks_.chunk_bytes(), (run.first + run.count) * chunks_.chunk_bytes());
}

// Of the pages in which a freed block had bytes, those that no other block has bytes in: addresses to be used again.
void Region::drop_away(std::uint64_t begin, std::uint64_t end) noexcept {
  const std::uint64_t chunk_bytes = chunks_.chunk_bytes();
  for (auto number = static_cast<std::size_t>(begin / chunk_bytes); number * chunk_bytes < end; ++number) {
    if (page(number).residency != Residency::kAway || page(number).run != nullptr || !is_free(number)) continue;
    Page& away = pages_[number];
    if (away.piece != nullptr) host_->give_back(away.piece, Release{});
    away.piece = nullptr;
    try {
      make_room(1);
    } catch (const std::bad_alloc&) {
      continue;  // a block that is served here has a page that is away, with nothing in it
    }
    if (punch(number) == nullptr) continue;
    away = {};
    --away_;
    holes_.add(number * chunk_bytes, (number + 1) * chunk_bytes);
  }
}

}  // namespace memopt::agent
