// Pages of the region that leave and come back, over a driver that knows what is mapped where and, chunk by chunk,
// whose bytes are in it.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "agent/memory/host_store.h"
#include "agent/memory/region.h"
#include "tests/agent/fake_memory.h"

namespace memopt::agent {
namespace {

using Residency = Region::Residency;

class RegionSwapTest : public testing::Test, public Memory {
 protected:
  RegionSwapTest() : host(driver), region(bootstrap.region()) {
    host.start(kChunk, 0);
    region.set_host(&host);
  }
  ~RegionSwapTest() override { bootstrap.release_all(); }

  std::vector<std::size_t> pages_of(const Block& block) const {
    const auto [first, last] = region.pages_of(block);
    std::vector<std::size_t> pages;
    for (std::size_t page = first; page < last; ++page) pages.push_back(page);
    return pages;
  }
  bool may_leave(std::size_t page) const {
    Release uses;
    return region.may_leave(
        page, [](const Block&) { return true; }, [](const Block&) { return false; }, &uses);
  }

  HostPiece* begin_leaving(std::size_t page) {
    ArenaLock lock;
    EXPECT_TRUE(host.free_pieces() != 0 || host.grow(lock, 1));
    HostPiece* const piece = host.take();
    region.begin_leaving(page, piece);
    EXPECT_EQ(region.page(page).residency, Residency::kLeaving);
    return piece;
  }

  void end_leaving(std::size_t page) {
    contents.erase(fake.mapped.at(region.address_of(page)));
    Chunk* const chunk = region.end_leaving(page);
    ASSERT_NE(chunk, nullptr);
    bootstrap.keep(chunk);
  }

  // It is copied, and stays for now.
  void copy(std::size_t page) {
    pieces[begin_leaving(page)] = contents[fake.mapped.at(region.address_of(page))];
    region.leave_later(page);
  }

  void leave_copied(std::size_t page) {
    region.leave_now(page);
    end_leaving(page);
  }

  void leave(std::size_t page) {
    pieces[begin_leaving(page)] = contents[fake.mapped.at(region.address_of(page))];
    end_leaving(page);
  }

  // Before anything else is done with the block.
  void keep_copied(const Block& block) {
    for (const std::size_t page : pages_of(block)) {
      if (region.page(page).residency != Residency::kCopied) continue;
      HostPiece* const piece = region.keep_copied(page, nullptr);
      pieces.erase(piece);
      host.give_back(piece, Release{});
    }
  }

  void come(std::size_t page) {
    std::vector<Chunk*> taken;
    CUresult result = bootstrap.take_chunks(1, false, &taken);
    while (result == CUDA_ERROR_NOT_READY) {
      ArenaLock lock;
      const Release uses = bootstrap.awaited();
      ASSERT_EQ(streams.finish(lock, uses), CUDA_SUCCESS);
      result = bootstrap.take_chunks(1, false, &taken);
    }
    ASSERT_EQ(result, CUDA_SUCCESS);
    contents[taken[0]->handle].clear();
    ASSERT_EQ(region.begin_coming(page, taken[0]), CUDA_SUCCESS);
    HostPiece* const piece = region.page(page).piece;
    if (piece != nullptr) contents[taken[0]->handle] = std::exchange(pieces[piece], {});
    EXPECT_EQ(region.end_coming(page, streams.queued_on_own(kInSlot)), piece);
    if (piece != nullptr) host.give_back(piece, Release{});
  }

  // What a block writes into the pages that it has here.
  void write(const Block& block) {
    for (const std::size_t page : pages_of(block)) {
      contents[fake.mapped.at(region.address_of(page))].insert({block.number, page});
    }
  }

  void check_all() const {
    for (const auto& [number, block] : blocks) {
      std::uint32_t away = 0;
      for (const std::size_t page : pages_of(*block)) {
        const auto mapped = fake.mapped.find(region.address_of(page));
        ASSERT_EQ(mapped == fake.mapped.end(), region.page(page).residency == Residency::kAway) << page;
        away += region.is_here(page) && region.page(page).residency != Residency::kCopied ? 0 : 1;
        if (mapped == fake.mapped.end()) continue;
        const auto held = contents.find(mapped->second);
        ASSERT_TRUE(held != contents.end() && held->second.contains({number, page})) << number << " lost page " << page;
      }
      ASSERT_EQ(block->away, away) << number;
    }
  }

  HostStore host;
  Region& region;
  using Contents = std::set<std::pair<std::uint64_t, std::size_t>>;  // block and page
  std::map<CUmemGenericAllocationHandle, Contents> contents;
  std::map<HostPiece*, Contents> pieces;
};

TEST_F(RegionSwapTest, WhatHasBeenCopiedIsHere) {
  Block* const block = make(kChunk);
  const std::size_t page = pages_of(*block).front();
  HostPiece* const piece = begin_leaving(page);
  region.leave_later(page);
  EXPECT_TRUE(region.is_here(page));
  EXPECT_TRUE(region.has_copied(*block));
  EXPECT_FALSE(region.is_moving(*block));
  EXPECT_FALSE(may_leave(page)) << "it has been chosen already";
  EXPECT_EQ(region.away_bytes(), 0u);
  EXPECT_EQ(region.keep_copied(page, nullptr), piece);
  EXPECT_FALSE(region.has_copied(*block));
  EXPECT_EQ(block->away, 0u);
  EXPECT_TRUE(may_leave(page));
  // The context may go at any time.
  region.begin_leaving(page, piece);
  region.leave_later(page);
  bootstrap.release_all();
  EXPECT_EQ(region.away_bytes(), 0u);
  EXPECT_EQ(region.leaving_pages(), 0u);
}

TEST_F(RegionSwapTest, APageLeavesForAPieceAndItsChunkServesElsewhere) {
  Block* const block = make(3 * kChunk);
  write(*block);
  const std::uint64_t held_before = held();
  const auto pages = pages_of(*block);
  leave(pages[1]);
  EXPECT_EQ(block->away, 1u);
  EXPECT_EQ(region.away_bytes(), kChunk);
  EXPECT_FALSE(may_leave(pages[1])) << "it has left";
  Block* const other = make(kChunk);
  write(*other);
  EXPECT_EQ(held(), held_before) << "it lies in the chunk that became free";
  come(pages[1]);
  EXPECT_EQ(block->away, 0u);
  EXPECT_EQ(block->ready, 0u) << "operations on it are behind the copy";
  EXPECT_EQ(block->former.count, 1u);
  check_all();
  free(block);
  free(other);
}

TEST_F(RegionSwapTest, BlocksThatShareAPageAreAwayTogether) {
  Block* const first = make(kChunk + kChunk / 2);
  Block* const second = make(kChunk + kChunk / 4);
  write(*first);
  write(*second);
  const std::size_t shared = pages_of(*first).back();
  ASSERT_EQ(shared, pages_of(*second).front());
  leave(shared);
  EXPECT_EQ(first->away, 1u);
  EXPECT_EQ(second->away, 1u);
  free(first);
  EXPECT_EQ(host.free_pieces() * kChunk + kChunk, host.held_bytes()) << "the other block's bytes are kept";
  come(shared);
  EXPECT_EQ(second->away, 0u);
  check_all();
  free(second);
}

TEST_F(RegionSwapTest, WhatIsFreedWhileAwayGivesItsPiecesAndAddressesBack) {
  Block* const block = make(4 * kChunk);
  for (const std::size_t page : pages_of(*block)) leave(page);
  const std::uint64_t base = block->base;
  free(block);
  EXPECT_EQ(region.away_bytes(), 0u);
  EXPECT_EQ(host.free_pieces() * kChunk, host.held_bytes());
  Block* const next = make(4 * kChunk);
  EXPECT_EQ(next->away, 0u) << "it lies in chunks";
  EXPECT_EQ(next->base, base) << "addresses are used again";
  free(next);
}

TEST_F(RegionSwapTest, ABlockThatIsMadeInAPageThatIsAwayIsAwayItself) {
  Block* const first = make(kChunk + kChunk / 2);
  Block* const second = make(kChunk + kChunk / 2);
  write(*first);
  leave(pages_of(*first).back());
  free(second);
  Block* const small = make(kChunk);  // behind the first, in the page that is away
  ASSERT_NE(small, nullptr);
  const auto pages = pages_of(*small);
  if (pages.front() == pages_of(*first).back()) {
    EXPECT_EQ(small->away, 1u);
    come(pages.front());
    EXPECT_EQ(small->away, 0u);
  }
  EXPECT_EQ(first->away, 0u);
  write(*small);
  check_all();
  free(first);
  free(small);
}

TEST_F(RegionSwapTest, WhatIsTheSlabsOrMayNotLeaveStays) {
  Block* const block = make(2 * kChunk);
  const auto pages = pages_of(*block);
  Release uses;
  EXPECT_FALSE(region.may_leave(
      pages[0], [](const Block&) { return false; }, [](const Block&) { return false; }, &uses));
  Chunk* const chunk = region.window().chunks[pages[0]];
  chunk->slab_slot = 0;
  EXPECT_FALSE(may_leave(pages[0]));
  chunk->slab_slot = -1;
  EXPECT_TRUE(may_leave(pages[0]));
  free(block);
}

TEST_F(RegionSwapTest, ALimitIsTheDevicesEnd) {
  chunks.set_limit(4 * kChunk);
  Block* const first = make(3 * kChunk);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(make(2 * kChunk), nullptr);
  EXPECT_FALSE(chunks.could_create(2));
  write(*first);
  leave(pages_of(*first)[0]);
  Block* const second = make(2 * kChunk);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(held(), 4 * kChunk);
  chunks.allow_beyond(true);
  EXPECT_NE(make(kChunk), nullptr);
  chunks.allow_beyond(false);
  EXPECT_TRUE(chunks.is_beyond());
}

// Whatever comes and goes: contents stay, counts are right, chunks and pieces balance.
TEST_F(RegionSwapTest, AnyOrder) {
  for (int seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::size_t bound) {
      return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random);
    };
    for (int step = 0; step < 400; ++step) {
      const std::size_t what = below(10);
      if (what < 3 && blocks.size() < 12) {
        const std::uint64_t bytes = kChunk + below(4 * kChunk);
        Block* const block = make(bytes);
        ASSERT_NE(block, nullptr);
        for (const std::size_t page : pages_of(*block)) {
          if (region.page(page).residency == Residency::kAway) come(page);
        }
        keep_copied(*block);
        write(*block);
      } else if (what < 5 && !blocks.empty()) {
        Block* const block = std::next(blocks.begin(), static_cast<std::ptrdiff_t>(below(blocks.size())))->second.get();
        keep_copied(*block);
        free(block);
      } else if (!blocks.empty()) {
        const Block& block = *std::next(blocks.begin(), static_cast<std::ptrdiff_t>(below(blocks.size())))->second;
        const auto pages = pages_of(block);
        const std::size_t page = pages[below(pages.size())];
        if (region.page(page).residency == Residency::kAway) {
          come(page);
        } else if (region.page(page).residency == Residency::kCopied) {
          leave_copied(page);
        } else if (may_leave(page)) {
          what < 8 ? leave(page) : copy(page);
        }
      }
      check_all();
      if (HasFatalFailure()) FAIL() << "seed " << seed << ", step " << step;
    }
    while (!blocks.empty()) {
      keep_copied(*blocks.begin()->second);
      free(blocks.begin()->second.get());
    }
    EXPECT_EQ(region.away_bytes(), 0u);
    EXPECT_EQ(host.free_pieces() * kChunk, host.held_bytes());
  }
}

}  // namespace
}  // namespace memopt::agent
