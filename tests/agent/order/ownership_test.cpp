#include "agent/order/ownership.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

#include "agent/memory/blocks.h"

namespace memopt::agent {
namespace {

constexpr std::uint64_t kUnit = 512;

Release used_by(StreamSlot slot, std::uint64_t position) {
  Release release;
  release.add(StreamUse{slot, position});
  return release;
}

TEST(Release, RemembersTheLastUseOfEachStream) {
  Release release;
  release.add(StreamUse{1, 5});
  release.add(StreamUse{1, 3});
  release.add(StreamUse{2, 7});
  ASSERT_EQ(release.count, 2u);
  EXPECT_EQ(release.uses[0].position, 5u);
  EXPECT_FALSE(release.everything());
}

TEST(Release, MoreStreamsThanFitCountAsAll) {
  Release release;
  for (StreamSlot slot = 1; slot <= Release::kUses + 1; ++slot) release.add(StreamUse{slot, 1});
  EXPECT_TRUE(release.everything());
}

TEST(OwnershipMap, TakesWhatIsFreeAndNamesWhoIsInTheWay) {
  OwnershipMap map;
  map.grow(10 * kUnit, used_by(1, 1));
  Block a;
  Block b;
  Block* in_the_way = nullptr;
  Release former;
  Span* const span = map.take(2 * kUnit, 5 * kUnit, &a, nullptr, &former, &in_the_way);
  ASSERT_NE(span, nullptr);
  EXPECT_EQ(former.uses[0].position, 1u);
  EXPECT_EQ(map.take(4 * kUnit, 6 * kUnit, &b, nullptr, &former, &in_the_way), nullptr);
  EXPECT_EQ(in_the_way, &a);
  map.give_back(span, used_by(2, 9));
  Release after;
  EXPECT_NE(map.take(4 * kUnit, 6 * kUnit, &b, span, &after, &in_the_way), nullptr);
  EXPECT_EQ(after.count, 2u) << "one part was used by stream 1, the other by stream 2";
  EXPECT_TRUE(map.consistent());
}

TEST(OwnershipMap, BeyondTheEndIsNobodys) {
  OwnershipMap map;
  map.grow(2 * kUnit, {});
  Block block;
  Block* in_the_way = &block;
  Release former;
  EXPECT_EQ(map.take(kUnit, 3 * kUnit, &block, nullptr, &former, &in_the_way), nullptr);
  EXPECT_EQ(in_the_way, nullptr);
  EXPECT_EQ(map.find(2 * kUnit, nullptr), nullptr);
}

TEST(OwnershipMap, StaleHintsDoNoHarm) {
  OwnershipMap map;
  map.grow(100 * kUnit, {});
  std::array<Block, 2> blocks;
  Block* in_the_way = nullptr;
  Release former;
  Span* const hint = map.take(10 * kUnit, 20 * kUnit, &blocks[0], nullptr, &former, &in_the_way);
  map.give_back(hint, {});
  ASSERT_NE(map.take(0, 100 * kUnit, &blocks[1], nullptr, &former, &in_the_way), nullptr);
  EXPECT_EQ(map.take(10 * kUnit, 20 * kUnit, &blocks[0], hint, &former, &in_the_way), nullptr);
  EXPECT_EQ(in_the_way, &blocks[1]);
}

// Against an array with one entry per 512 bytes.
class OwnershipModel : public testing::TestWithParam<unsigned> {};

TEST_P(OwnershipModel, AgreesWithAnArray) {
  std::mt19937 random(GetParam());
  constexpr std::size_t kUnits = 6000;  // beyond one entry of the coarse table
  struct Cell {
    Block* owner = nullptr;
    std::uint64_t position = 0;  // of stream 1, when it was given back
  };
  std::vector<Cell> cells(kUnits);
  OwnershipMap map;
  map.grow(kUnits / 2 * kUnit, {});
  map.grow((kUnits - kUnits / 2) * kUnit, {});
  struct Held {
    Block block;
    Span* span = nullptr;
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  std::vector<Held> held(64);
  std::vector<Span*> hints(64, nullptr);
  std::uint64_t clock = 0;
  std::size_t taken = 0;
  std::size_t refused = 0;
  for (int step = 0; step < 6000; ++step) {
    Held& one = held[random() % held.size()];
    if (one.span != nullptr) {
      ++clock;
      map.give_back(one.span, used_by(1, clock));
      for (std::size_t i = one.begin; i < one.end; ++i) cells[i] = {nullptr, clock};
      one.span = nullptr;
      continue;
    }
    if (step % 100 == 99) {
      // Cut off behind the last owner, or nearer to the end, and put back.
      std::size_t owned = kUnits;
      while (owned > 0 && cells[owned - 1].owner == nullptr) --owned;
      const std::size_t cut = owned + random() % (kUnits - owned + 1);
      Release uses;
      ASSERT_TRUE(map.is_free_from(cut * kUnit, &uses));
      if (owned > 0) {
        ASSERT_FALSE(map.is_free_from((owned - 1) * kUnit, &uses));
      }
      for (std::size_t i = cut; i < kUnits; ++i)
        ASSERT_GE(uses.count == 0 ? 0 : uses.uses[0].position, cells[i].position);
      map.shrink(cut * kUnit);
      ASSERT_TRUE(map.consistent());
      ASSERT_EQ(map.bytes(), cut * kUnit);
      map.grow((kUnits - cut) * kUnit, used_by(1, clock));
      for (std::size_t i = cut; i < kUnits; ++i) cells[i].position = clock;
    }
    const std::size_t size = 1 + (random() % 8 == 0 ? random() % 2000 : random() % 40);
    const std::size_t begin = random() % (kUnits - size);
    const std::size_t end = begin + size;
    Block* expected = nullptr;
    std::uint64_t last_use = 0;
    for (std::size_t i = begin; i < end; ++i) {
      if (cells[i].owner != nullptr && expected == nullptr) expected = cells[i].owner;
      last_use = std::max(last_use, cells[i].position);
    }
    Release former;
    Block* in_the_way = nullptr;
    Span* const hint = hints[random() % hints.size()];
    Span* const span = map.take(begin * kUnit, end * kUnit, &one.block, hint, &former, &in_the_way);
    ASSERT_EQ(span == nullptr, expected != nullptr) << "step " << step;
    ASSERT_EQ(in_the_way, expected);
    if (span == nullptr) {
      ++refused;
      continue;
    }
    ++taken;
    // A span that is cut keeps its last use as a whole, so that it may be later than the model's, never earlier.
    ASSERT_GE(former.count == 0 ? 0 : former.uses[0].position, last_use);
    ASSERT_EQ(span->begin, begin * kUnit);
    ASSERT_EQ(span->end, end * kUnit);
    one.span = span;
    one.begin = begin;
    one.end = end;
    hints[random() % hints.size()] = span;
    for (std::size_t i = begin; i < end; ++i) cells[i] = {&one.block, 0};
    const std::size_t probe = random() % kUnits;
    ASSERT_EQ(map.find(probe * kUnit, hint)->owner, cells[probe].owner);
    if (step % 64 == 0) {
      ASSERT_TRUE(map.consistent());
    }
  }
  EXPECT_GT(taken, 500u);
  EXPECT_GT(refused, 100u);
}
INSTANTIATE_TEST_SUITE_P(Seeds, OwnershipModel, testing::Range(1u, 9u));

TEST(OwnershipMap, FindsTheSmallestRunOfFreeBytes) {
  OwnershipMap map;
  map.grow(100 * kUnit, {});
  std::array<Block, 3> blocks;
  Block* in_the_way = nullptr;
  Release former;
  ASSERT_NE(map.take(10 * kUnit, 11 * kUnit, &blocks[0], nullptr, &former, &in_the_way), nullptr);
  ASSERT_NE(map.take(31 * kUnit, 32 * kUnit, &blocks[1], nullptr, &former, &in_the_way), nullptr);
  Span* const gone = map.take(20 * kUnit, 22 * kUnit, &blocks[2], nullptr, &former, &in_the_way);
  map.give_back(gone, {});
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  ASSERT_TRUE(map.find_free(9 * kUnit, &begin, &end));
  EXPECT_EQ(begin, 0u);
  EXPECT_EQ(end, 10 * kUnit);
  ASSERT_TRUE(map.find_free(15 * kUnit, &begin, &end));
  EXPECT_EQ(end, 31 * kUnit);
  EXPECT_EQ(begin, 11 * kUnit) << "three free spans in a row are one run";
  EXPECT_FALSE(map.find_free(69 * kUnit, &begin, &end));
}

// A thousand spans a search, so that it costs the same however many there are.
TEST(OwnershipMap, SearchesForRoomAmongManySpansGoOnWhereTheLastOneStopped) {
  constexpr std::uint64_t kBlocks = 5000;
  OwnershipMap map;
  map.grow((2 * kBlocks + 10) * kUnit, {});
  std::vector<Block> blocks(kBlocks);
  std::vector<Span*> spans;
  Block* in_the_way = nullptr;
  Release former;
  for (std::uint64_t i = 0; i < kBlocks; ++i) {
    spans.push_back(map.take(2 * i * kUnit, (2 * i + 1) * kUnit, &blocks[i], nullptr, &former, &in_the_way));
    ASSERT_NE(spans.back(), nullptr);
  }
  EXPECT_EQ(map.owned_bytes(), kBlocks * kUnit);
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  ASSERT_TRUE(map.find_free(kUnit, &begin, &end));
  int searches = 1;
  while (!map.find_free(5 * kUnit, &begin, &end)) ASSERT_LT(++searches, 20);
  EXPECT_EQ(begin, (2 * kBlocks - 1) * kUnit);
  EXPECT_GT(searches, 1);
  // From the beginning again, where there is room by now.
  map.give_back(spans[3], {});
  map.give_back(spans[4], {});
  while (!map.find_free(4 * kUnit, &begin, &end) || begin != 5 * kUnit) ASSERT_LT(++searches, 40);
  for (std::uint64_t i = 0; i < kBlocks; ++i) {
    if (i != 3 && i != 4) map.give_back(spans[i], {});
  }
  EXPECT_FALSE(map.has_owner());
  EXPECT_TRUE(map.consistent());
}

}  // namespace
}  // namespace memopt::agent
