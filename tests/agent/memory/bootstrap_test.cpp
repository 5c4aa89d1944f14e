// Blocks before there is a plan, over a driver that knows what is mapped where: whatever is served must be mapped, and
// nobody else's.
#include "agent/memory/bootstrap.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "tests/agent/fake_memory.h"

namespace memopt::agent {
namespace {

class BootstrapTest : public testing::Test, public Memory {
 protected:
  void give_up_idle() {
    Release awaited;
    bootstrap.give_up_idle(&awaited);
    ArenaLock lock;
    if (streams.wants_events()) streams.record_wanted(lock);
  }
};

TEST_F(BootstrapTest, WhatIsMadeBeforeAnythingIsFreedStandsSideBySide) {
  constexpr std::uint64_t kBytes = kChunk + kChunk / 4;
  for (int i = 0; i < 16; ++i) ASSERT_NE(make(kBytes), nullptr);
  check();
  // A window each would take 32 chunks.
  EXPECT_EQ(held(), 21 * kChunk);
}

// Side by side they need no more than the chunks that they would fill otherwise.
TEST_F(BootstrapTest, ManyInARowFillChunksAsExactlyAsOthers) {
  constexpr std::uint64_t kEach = kChunk / 8;
  Block* const first = make(16 * kChunk);
  ASSERT_NE(first, nullptr);
  free(first);
  const std::uint64_t before = held();
  for (int i = 0; i < 8 * 8; ++i) ASSERT_NE(make(kEach), nullptr);
  check();
  EXPECT_EQ(held(), before);
  Block* last = nullptr;
  for (auto& [base, block] : blocks) last = block.get();
  EXPECT_EQ(last->span->end - last->span->begin, kEach);
}

// As an optimizer's states are, between gradients and where activations were.
TEST_F(BootstrapTest, ManyThatAreMadeWhileNothingIsFreedStandSideBySideInFreeChunks) {
  constexpr int kHoles = 24;
  std::vector<Block*> go;
  for (int i = 0; i < kHoles; ++i) {
    go.push_back(make(kChunk));
    ASSERT_NE(make(kChunk), nullptr);
  }
  go.push_back(make(24 * kChunk));
  for (Block* const block : go) free(block);
  const std::uint64_t before = held();
  // Each would fit into one of the holes.
  for (int i = 0; i < 8; ++i) ASSERT_NE(make(kChunk), nullptr);
  std::uint64_t end = 0;
  for (int i = 0; i < 8; ++i) {
    for (const std::uint64_t bytes : {kChunk / 2, kChunk * 3 / 4, std::uint64_t{512}}) {
      const Block* const block = make(bytes);
      ASSERT_NE(block, nullptr);
      if (end == 0) {
        EXPECT_EQ(block->base % kChunk, 0u);
      } else {
        EXPECT_EQ(block->base, end);
      }
      end = block->span->end - block->span->begin + block->base;
    }
  }
  const Block* const large = make(5 * kChunk + 1024);
  ASSERT_NE(large, nullptr);
  EXPECT_EQ(large->base, end) << "a large one too";
  check();
  EXPECT_EQ(held(), before);
  // Whatever else is made then goes where it fits best.
  free(blocks.begin()->second.get());
  EXPECT_NE(make(kChunk)->base, large->base + (large->span->end - large->span->begin));
}

// As on a large device in a process that has few addresses: blocks could be away, and more of them than fit the device.
TEST(Bootstrap, ServesLargeBlocksWhereAddressesAreScarce) {
  constexpr std::uint64_t kGib = std::uint64_t{1} << 30;
  FakeDriver large;
  large.total = 64 * kGib;
  for (const std::uint64_t addresses : {64 * kGib, 128 * kGib, 200 * kGib, 600 * kGib}) {
    large.addresses = addresses;
    Memory memory(large);
    EXPECT_NE(memory.make(3 * kChunk), nullptr) << addresses / kGib;
    EXPECT_NE(memory.make(kChunk / 4), nullptr) << addresses / kGib;
    // A plan's slab wants as many as the device has, or less.
    EXPECT_NE(memory.chunks.reserve(std::min(addresses, large.total) / 4), 0u) << addresses / kGib;
  }
}

TEST_F(BootstrapTest, FreedBytesServeWhateverFitsWithoutACallOfTheDriver) {
  ASSERT_NE(make(kChunk + 512), nullptr);
  Block* const large = make(12 * kChunk - 1024);
  ASSERT_NE(make(kChunk + 512), nullptr);
  EXPECT_EQ(held(), 15 * kChunk);
  fake.busy = true;
  free(large);
  const std::uint64_t calls = chunks.counts().vmm_calls;
  Block* const first = make(5 * kChunk);
  Block* const second = make(3 * kChunk + 1);
  ASSERT_NE(second, nullptr);
  ASSERT_NE(make(2 * kChunk), nullptr);
  free(first);
  free(second);
  ASSERT_NE(make(8 * kChunk), nullptr) << "what was divided is joined again";
  check();
  EXPECT_EQ(chunks.counts().vmm_calls, calls);
  EXPECT_EQ(held(), 15 * kChunk);
  EXPECT_EQ(fake.host_waits, 0) << "who takes the bytes is told what to be behind";
  EXPECT_FALSE(blocks.rbegin()->second->former.empty());
}

TEST_F(BootstrapTest, FreeChunksThatAreInUseAreWaitedForOnlyWhereThereAreNoOthers) {
  fake.capacity = 8 * kChunk;
  std::vector<Block*> made;
  for (int i = 0; i < 4; ++i) made.push_back(make(2 * kChunk));
  fake.busy = true;
  free(made[0]);
  ASSERT_NE(make(2 * kChunk), nullptr);
  EXPECT_EQ(fake.host_waits, 0);
  free(made[1]);
  free(made[3]);
  ASSERT_NE(make(4 * kChunk), nullptr) << "two and two chunks are moved together";
  EXPECT_GT(fake.host_waits, 0);
  check();
  EXPECT_LE(held(), fake.capacity);
}

// As where sizes change in each step: what is free is in pieces, and of work that is queued.
TEST_F(BootstrapTest, AProgramThatHasNoPlanForLongIsGivenMoreRatherThanWaitedFor) {
  const auto waits = [&] {
    std::vector<Block*> made;
    for (int i = 0; i < 40; ++i) made.push_back(make(2 * kChunk));
    fake.busy = true;
    for (int i = 0; i < 40; i += 2) free(made[i]);
    fake.host_waits = 0;
    Block* const large = make(9 * kChunk);
    const int before = fake.host_waits;
    fake.busy = false;
    free(large);
    for (int i = 1; i < 40; i += 2) free(made[i]);
    while (trim(100)) {
    }
    return before;
  };
  EXPECT_GT(waits(), 0);
  for (int i = 0; i < 8192; ++i) free(make(512));
  EXPECT_EQ(waits(), 0);
}

// Iterations whose blocks have other sizes each time, within an eighth, and are freed in another order than they are
// made in. Returns what is held at most, or ~0 where a block can't be had.
// `plans`: as if a plan went live at the end of each.
std::uint64_t play_iterations_of_any_size(Memory& memory, std::mt19937_64* random, int count, bool plans = false) {
  constexpr std::uint64_t kBlocks = 48;
  std::uniform_int_distribution<std::uint64_t> percent(88, 100);
  std::vector<std::pair<std::uint64_t, Block*>> live;  // by when it is freed
  std::uint64_t most = 0;
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(count); ++i) {
    for (std::uint64_t n = 0; n < kBlocks; ++n) {
      const std::uint64_t now = i * kBlocks + n;
      for (std::size_t at = 0; at < live.size();) {
        if (live[at].first > now) {
          ++at;
          continue;
        }
        memory.free(live[at].second);
        live[at] = live.back();
        live.pop_back();
      }
      const std::uint64_t bytes = (n * 7 % 13 + 1) * kChunk / 100 * percent(*random);
      Block* const block = memory.make(bytes);
      if (block == nullptr) return ~std::uint64_t{0};
      live.emplace_back(now + 1 + n * 11 % 29, block);
      most = std::max(most, memory.held());
    }
    if (plans) memory.bootstrap.forget_needs();
  }
  for (const auto& [freed, block] : live) memory.free(block);
  return most;
}

struct OfAnySize {
  std::uint64_t held;   // at most
  std::uint64_t calls;  // of the last iterations

  bool operator==(const OfAnySize&) const = default;
};

// `reference`: what the program's own allocator would hold; 0: not known.
OfAnySize play_with_reference(std::uint64_t reference, std::uint64_t limit = 0, bool plans = false) {
  FakeDriver fake;
  Memory memory(fake);
  memory.bootstrap.set_reference(reference);
  memory.chunks.set_limit(limit);
  std::mt19937_64 random(7);
  const std::uint64_t held = play_iterations_of_any_size(memory, &random, 450, plans);
  const std::uint64_t before = memory.chunks.counts().vmm_calls;
  const std::uint64_t later = play_iterations_of_any_size(memory, &random, 50, plans);
  memory.check();
  return {std::max(held, later), memory.chunks.counts().vmm_calls - before};
}

TEST(Bootstrap, WhereChunksAreMovedAgainAndAgainMoreAreHeld) {
  constexpr std::uint64_t kLoad = 118 * kChunk;
  const OfAnySize never = play_with_reference(0);
  EXPECT_LE(never.held, kLoad + kLoad / 6);
  const OfAnySize some = play_with_reference(2 * kLoad);
  EXPECT_LE(some.held, kLoad + kLoad / 2 + kChunk);
  EXPECT_LT(some.calls, never.calls * 3 / 4);
}

TEST(Bootstrap, ForFewerMovesLessIsHeldThanByTheProgramsOwnAllocator) {
  const std::uint64_t never = play_with_reference(0).held;
  for (const std::uint64_t reference : {150 * kChunk, 160 * kChunk}) {
    const std::uint64_t held = play_with_reference(reference).held;
    EXPECT_GT(held, never);
    EXPECT_LE(held, reference - reference / 16);
  }
}

TEST(Bootstrap, NoMoreIsHeldForMovesAtALimitNorForThoseBeforeAPlan) {
  const OfAnySize never = play_with_reference(0);
  EXPECT_EQ(play_with_reference(240 * kChunk, 240 * kChunk), never);
  EXPECT_EQ(play_with_reference(240 * kChunk, 0, true), play_with_reference(0, 0, true));
}

TEST_F(BootstrapTest, ABlockThatIsTooLargeToShareChunksLeavesThatToOthers) {
  ASSERT_NE(make(40 * kChunk - 1024), nullptr);
  for (int i = 0; i < 4; ++i) ASSERT_NE(make(kChunk + kChunk / 4), nullptr);
  EXPECT_EQ(held(), 46 * kChunk) << "an eighth of the device is for such blocks: five chunks, and one for their ends";
  check();
}

TEST_F(BootstrapTest, BlocksOfWholeChunksTakeNoMoreThanThat) {
  fake.capacity = 8 * kChunk;
  for (int i = 0; i < 4; ++i) ASSERT_NE(make(2 * kChunk), nullptr) << i;
  EXPECT_EQ(held(), fake.capacity);
  check();
}

TEST_F(BootstrapTest, AsManyBlocksFitIntoAChunkAsTheDriverWouldPutThere) {
  for (const std::uint64_t bytes : {kChunk / 2, kChunk / 4, kChunk / 8, kChunk / 16, kChunk / 3, kChunk / 5}) {
    Memory memory;
    memory.fake.capacity = 8 * kChunk;
    std::uint64_t count = 0;
    while (memory.make(bytes) != nullptr) ++count;
    EXPECT_GE(count, 8 * (kChunk / ((bytes + 511) / 512 * 512))) << bytes;
    memory.check();
  }
}

TEST_F(BootstrapTest, WhatIsFreeBetweenBlocksThatShareServesOthersAsWholeChunks) {
  fake.capacity = 40 * kChunk;
  std::vector<Block*> small;
  while (held() < fake.capacity) small.push_back(make(kChunk / 4));
  ASSERT_NE(small.back(), nullptr);
  // All but one of each 32.
  for (std::size_t i = 0; i < small.size(); ++i) {
    if (i % 32 != 0) free(small[i]);
  }
  EXPECT_GE(bootstrap.idle_bytes(), 30 * kChunk);
  for (int i = 0; i < 10; ++i) ASSERT_NE(make(3 * kChunk), nullptr) << i;
  check();
  EXPECT_LE(held(), fake.capacity);
}

TEST_F(BootstrapTest, WhatIsIdleGoesBackChunkByChunk) {
  std::vector<Block*> small;
  for (int i = 0; i < 64; ++i) small.push_back(make(kChunk / 4));
  Block* const large = make(3 * kChunk);
  const std::uint64_t before = held();
  for (std::size_t i = 1; i < small.size(); ++i) free(small[i]);
  free(large);
  const std::uint64_t idle = bootstrap.idle_bytes();
  EXPECT_EQ(before - idle, kChunk) << "of the one block that lives";
  fake.busy = true;
  give_up_idle();
  EXPECT_GT(held(), kChunk) << "work on it is not over";
  fake.busy = false;
  give_up_idle();
  EXPECT_EQ(held(), kChunk);
  EXPECT_EQ(bootstrap.idle_bytes(), 0u);
  check();
}

TEST_F(BootstrapTest, TheLastResortIsWhatIsFreeBetweenBlocks) {
  fake.capacity = 8 * kChunk;
  ASSERT_NE(make(kChunk + kChunk / 4), nullptr);
  Block* const middle = make(kChunk + kChunk / 4);
  ASSERT_NE(make(kChunk + kChunk / 4), nullptr);
  ASSERT_NE(make(4 * kChunk), nullptr);
  free(middle);
  EXPECT_EQ(held(), fake.capacity);
  Block* const again = make(kChunk + kChunk / 8);
  ASSERT_NE(again, nullptr) << "no chunk of it is free as a whole";
  check();
  free(again);
  EXPECT_NE(make(kChunk + kChunk / 8), nullptr);
  check();
}

TEST_F(BootstrapTest, EverythingGoesBack) {
  std::vector<Block*> made;
  for (const std::uint64_t bytes : {3 * kChunk + 5, kChunk, std::uint64_t{100}, 2 * kChunk + 1}) {
    made.push_back(make(bytes));
  }
  for (Block* const block : made) free(block);
  while (trim(1)) {
  }
  EXPECT_EQ(held(), 0u);
  EXPECT_TRUE(fake.mapped.empty());
}

TEST_F(BootstrapTest, TheContextGoesWithAllOfIt) {
  for (int i = 0; i < 5; ++i) ASSERT_NE(make(kChunk + 1), nullptr);
  free(blocks.begin()->second.get());
  ASSERT_NE(make(3 * kChunk), nullptr);
  ASSERT_NE(make(512), nullptr);
  bootstrap.release_all();
  EXPECT_EQ(held(), 0u);
  EXPECT_TRUE(fake.mapped.empty());
}

TEST_F(BootstrapTest, TheSmallestFreeRunIsTaken) {
  free(make(kChunk));
  std::vector<Block*> made;
  for (const std::uint64_t size : {9, 1, 8, 1, 8, 1, 16, 1}) made.push_back(make(size * kChunk));
  const std::uint64_t lower = made[2]->base;
  const std::uint64_t largest = made[6]->base;
  for (const std::size_t i : {6, 4, 2, 0}) free(made[i]);
  EXPECT_EQ(make(8 * kChunk)->base, lower) << "of equal ones the lowest";
  EXPECT_EQ(make(12 * kChunk)->base, largest);
}

TEST_F(BootstrapTest, WhatLargeBlocksLeaveOfAChunkServesSmallOnes) {
  ASSERT_NE(make(kChunk + kChunk / 2), nullptr);
  Block* const small = make(kChunk / 4);
  for (int i = 0; i < 3; ++i) ASSERT_NE(make(kChunk / 16), nullptr);
  check();
  EXPECT_EQ(held(), 2 * kChunk);
  ASSERT_NE(make(kChunk / 4), nullptr);
  EXPECT_EQ(held(), 3 * kChunk) << "no chunk is broken for them: they have windows";
  free(small);
  ASSERT_NE(make(kChunk + kChunk / 4), nullptr);
  check();
}

TEST_F(BootstrapTest, AddressesWhoseChunksWereMovedAreUsedAgain) {
  fake.capacity = 24 * kChunk;
  std::set<std::uint64_t> pages;
  // Each needs all that there is, in one piece, or in pieces that are too small for the next.
  for (int round = 0; round < 100; ++round) {
    std::vector<Block*> made;
    const std::uint64_t size = 5 + round % 7;
    for (std::uint64_t i = 0; i < 24 / size; ++i) made.push_back(make(size * kChunk));
    for (Block* const block : made) {
      ASSERT_NE(block, nullptr) << round;
      pages.insert(block->base / kChunk);
    }
    check();
    for (std::size_t i = 0; i < made.size(); i += 2) free(made[i]);
    Block* const other = make((size + 1) * kChunk);
    if (other != nullptr) free(other);
    for (std::size_t i = 1; i < made.size(); i += 2) free(made[i]);
  }
  EXPECT_LE(*pages.rbegin() - *pages.begin(), 2 * kDevice / kChunk);
  EXPECT_LE(held(), fake.capacity);
}

TEST_F(BootstrapTest, AChunkThatTwoBlocksShareGoesWithTheLaterOne) {
  const std::uint64_t kBytes = kChunk + kChunk / 2;
  std::vector<Block*> made;
  for (int i = 0; i < 4; ++i) made.push_back(make(kBytes));
  EXPECT_EQ(held(), 7 * kChunk);
  // In an order in which the chunks at both ends of the third go with its neighbours.
  for (const std::size_t i : {2, 1, 3, 0}) free(made[i]);
  while (trim(1)) {
  }
  EXPECT_EQ(held(), 0u);
}

TEST_F(BootstrapTest, ManyFreedBlocksThatAreInUseAreAskedAboutAFewAtATime) {
  std::vector<Block*> made;
  for (int i = 0; i < 30; ++i) made.push_back(make(kChunk + 512));
  fake.busy = true;
  for (Block* const block : made) free(block);
  fake.queries = 0;
  ASSERT_NE(make(512), nullptr);
  EXPECT_LE(fake.queries, 16);
  fake.busy = false;
  free(make(512));
  EXPECT_EQ(bootstrap.cached_bytes(), held() - owned());
  ASSERT_NE(make(24 * kChunk), nullptr);
  EXPECT_LE(held(), 32 * kChunk) << "all of it serves again";
  EXPECT_EQ(fake.host_waits, 0);
}

// As where every eighth iteration is another than the plan's: what it needs is not made and given back each time.
TEST_F(BootstrapTest, WhatIsNeededAgainAndAgainIsKeptForAWhile) {
  free(make(kChunk));
  while (trim(8)) {
  }
  bootstrap.forget_needs();
  const auto iterate = [&](std::uint64_t needed) {
    if (needed != 0) free(make(needed * kChunk));
    bootstrap.trim(~std::size_t{0}, bootstrap.needs_again() ? bootstrap.needed_of_late() : 0);
    bootstrap.next_iteration();
    ArenaLock lock;
    if (streams.wants_events()) streams.record_wanted(lock);
  };
  const auto eight = [&](std::uint64_t needed) {
    const std::uint64_t before = fake.made;
    for (int i = 0; i < 8; ++i) iterate(i == 0 ? needed : 0);
    return fake.made - before;
  };
  EXPECT_EQ(eight(6), 6u);
  EXPECT_EQ(held(), 0u) << "once is not again";
  for (int round = 0; round < 8; ++round) eight(6);
  EXPECT_EQ(eight(6), 0u);
  EXPECT_EQ(held(), 6 * kChunk);
  for (int round = 0; round < 9; ++round) eight(2);
  EXPECT_LE(held(), 2 * kChunk) << "less is needed now";
  for (int round = 0; round < 9; ++round) eight(0);
  EXPECT_EQ(held(), 0u);
  eight(6);
  bootstrap.forget_needs();
  EXPECT_FALSE(bootstrap.needs_again());
  EXPECT_EQ(bootstrap.needed_of_late(), 0u);
}

TEST_F(BootstrapTest, SmallBlocksFillWhatIsFreeAmongThem) {
  std::vector<Block*> made;
  for (int i = 0; i < 20000; ++i) made.push_back(make(1));
  const std::uint64_t before = held();
  EXPECT_LE(before, 20000 * 512 + 3 * kChunk);
  for (std::size_t i = 0; i < made.size(); i += 2) free(made[i]);
  for (int i = 0; i < 10000; ++i) ASSERT_NE(make(500), nullptr);
  EXPECT_EQ(held(), before);
  check();
}

TEST(ChunkStore, AddressesComeBackInOnePiece) {
  Memory memory;
  ChunkStore& chunks = memory.chunks;
  const std::uint64_t all = chunks.range_bytes() - kChunk;
  std::mt19937_64 random(1);
  std::map<std::uint64_t, std::uint64_t> pieces;  // begin, bytes with the chunk behind
  for (int step = 0; step < 2000; ++step) {
    if (pieces.empty() || random() % 9 < 5) {
      const std::uint64_t bytes = (1 + random() % 40) * kChunk;
      const std::uint64_t begin = chunks.reserve(bytes - random() % kChunk);
      ASSERT_GE(begin, chunks.range_begin());
      ASSERT_LE(begin + bytes + kChunk, chunks.range_begin() + chunks.range_bytes());
      const auto at = pieces.emplace(begin, bytes + kChunk).first;
      if (at != pieces.begin()) {
        ASSERT_LE(std::prev(at)->first + std::prev(at)->second, begin);
      }
      if (std::next(at) != pieces.end()) {
        ASSERT_LE(begin + bytes + kChunk, std::next(at)->first);
      }
    } else {
      auto at = pieces.begin();
      std::advance(at, static_cast<std::ptrdiff_t>(random() % pieces.size()));
      chunks.unreserve(at->first, at->second - kChunk);
      pieces.erase(at);
    }
  }
  EXPECT_EQ(chunks.reserve(all), 0u);
  for (const auto& [begin, bytes] : pieces) chunks.unreserve(begin, bytes - kChunk);
  EXPECT_EQ(chunks.reserve(all), chunks.range_begin());
}

TEST(Bootstrap, AnySequenceIsServedApart) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 80; ++round) {
    Memory memory;
    memory.fake.busy = round % 2 == 1;
    memory.fake.capacity = round % 4 == 3 ? 24 * kChunk : kDevice;
    for (int step = 0; step < 60; ++step) {
      // The first blocks are made without a free between them.
      if (step > 8 && !memory.blocks.empty() && random() % 2 == 0) {
        auto at = memory.blocks.begin();
        std::advance(at, static_cast<std::ptrdiff_t>(random() % memory.blocks.size()));
        memory.free(at->second.get());
      } else {
        memory.make(random() % 3 == 0 ? 1 + random() % 100000 : 1 + random() % (3 * kChunk));
      }
      if (random() % 16 == 0) memory.trim(4);
      if (random() % 8 == 0 && !memory.blocks.empty()) {
        // What a freed block leaves serves one of its size, with no call of the driver and no wait.
        auto at = memory.blocks.begin();
        std::advance(at, static_cast<std::ptrdiff_t>(random() % memory.blocks.size()));
        const std::uint64_t bytes = at->second->bytes;
        memory.free(at->second.get());
        const std::uint64_t calls = memory.chunks.counts().vmm_calls;
        const int waits = memory.fake.host_waits;
        ASSERT_NE(memory.make(bytes), nullptr);
        ASSERT_EQ(memory.chunks.counts().vmm_calls, calls) << round << " " << step << " " << bytes;
        ASSERT_EQ(memory.fake.host_waits, waits);
      }
      ASSERT_NO_FATAL_FAILURE(memory.check());
      ASSERT_LE(memory.held(), memory.fake.capacity);
      ASSERT_EQ(memory.held(), memory.chunks.counts().held_bytes);
      ASSERT_EQ(memory.bootstrap.cached_bytes(), memory.held() - memory.owned());
    }
    while (!memory.blocks.empty()) memory.free(memory.blocks.begin()->second.get());
    memory.fake.busy = false;
    while (memory.trim(8)) {
    }
    ASSERT_EQ(memory.held(), 0u);
  }
}

}  // namespace
}  // namespace memopt::agent
