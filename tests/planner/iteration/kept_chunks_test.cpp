// Which chunks plans keep for blocks that stay, and what is left out of them.
#include "planner/iteration/kept_chunks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "planner/iteration/plan_bytes.h"
#include "tests/planner/iteration/stream.h"

namespace memopt::planner {
namespace {

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kMiB = 1024 * kKiB;
constexpr std::uint64_t kChunk = 2 * kMiB;
constexpr std::uint64_t kBase = std::uint64_t{0x6000} << 32;

std::uint64_t free_of(const KeptBytes& kept) {
  std::uint64_t bytes = kept.chunks.size() * kChunk;
  for (const KeptBytes::Piece& piece : kept.pieces) bytes -= piece.bytes;
  return bytes;
}

TEST(KeptChunks, AreThoseThatBlocksHaveOnlyAPartOf) {
  const std::vector<StayingBlock> blocks = {
      {kBase, 5 * kMiB},                          // two chunks, and half of one
      {kBase + 10 * kChunk, kChunk - 64 * kKiB},  // nearly all of one
      {kBase + 20 * kChunk + 512 * kKiB, 64 * kKiB},
  };
  const KeptBytes kept = keep_chunks(blocks, kChunk, {}, 0);
  ASSERT_EQ(kept.chunks.size(), 2u);
  EXPECT_EQ(kept.bytes, kMiB + 64 * kKiB);
  EXPECT_EQ(free_of(kept), 2 * kChunk - kMiB - 64 * kKiB);
  EXPECT_TRUE(keep_chunks(blocks, 0, {}, 0).chunks.empty());
}

TEST(KeptChunks, WhatIsFreeInOneGoesOnInTheNext) {
  const std::vector<StayingBlock> blocks = {
      {kBase, kMiB},                             // its second half is free
      {kBase + 10 * kChunk + kMiB, kMiB - 512},  // its first
      {kBase + 20 * kChunk, 512 * kKiB},         // most behind it
  };
  const KeptBytes kept = keep_chunks(blocks, kChunk, {}, 0);
  const std::vector<KeptChunk> expected = {
      {kBase, 0}, {kBase + 10 * kChunk, kChunk}, {kBase + 20 * kChunk, 2 * kChunk}};
  EXPECT_EQ(kept.chunks, expected);
}

TEST(KeptChunks, LieSoFarApartThatBlocksFitBetweenThem) {
  const std::vector<StayingBlock> blocks = {
      {kBase, kMiB},  // its second half is free
      {kBase + 10 * kChunk, kMiB},
      {kBase + 20 * kChunk + kMiB, kMiB},  // its first
  };
  // In a row there are 2 MiB between the first and the third. One of these fits with three chunks more.
  const std::vector<std::uint64_t> sizes = {8 * kMiB, 8 * kMiB, 24 * kMiB};
  const KeptBytes kept = keep_chunks(blocks, kChunk, {}, 3 * kChunk, sizes);
  ASSERT_EQ(kept.chunks.size(), 3u);
  ASSERT_EQ(kept.pieces.size(), 3u);
  EXPECT_EQ(kept.pieces[0].offset % kChunk, 0u);
  std::uint64_t end = 3 * kChunk;
  std::vector<std::uint64_t> holes;
  for (const KeptBytes::Piece& piece : kept.pieces) {
    holes.push_back(piece.offset - end);
    end = piece.offset + piece.bytes;
  }
  std::sort(holes.begin(), holes.end());
  EXPECT_EQ(holes, (std::vector<std::uint64_t>{0, 0, 8 * kMiB}));
}

// Whatever is asked for, all of them lie somewhere, no two at one place, and not so far apart as would fill a device.
TEST(KeptChunks, AllHaveAPlaceHoweverManyThereAre) {
  std::mt19937_64 random(7);
  for (int run = 0; run < 40; ++run) {
    std::vector<StayingBlock> blocks;
    for (std::uint64_t i = 0; i < 1 + random() % 200; ++i) {
      const std::uint64_t begin = random() % (kChunk / 2) / 512 * 512;
      blocks.push_back({kBase + 2 * i * kChunk + begin, 1 + random() % (kChunk / 4)});
    }
    std::vector<std::uint64_t> sizes;
    for (int i = 0; i < 100; ++i) sizes.push_back(1 + random() % (random() % 2 == 0 ? kMiB : 40 * kMiB));
    const KeptBytes kept = keep_chunks(blocks, kChunk, {}, random() % (9 * kMiB), sizes);
    const KeptBytes tight = keep_chunks(blocks, kChunk, {}, 0);
    ASSERT_EQ(kept.chunks.size(), tight.chunks.size());
    EXPECT_EQ(kept.bytes, tight.bytes);
    std::vector<std::uint64_t> offsets, addresses;
    for (const KeptChunk& chunk : kept.chunks) {
      ASSERT_EQ(chunk.offset % kChunk, 0u);
      offsets.push_back(chunk.offset);
      addresses.push_back(chunk.address);
    }
    std::sort(offsets.begin(), offsets.end());
    std::sort(addresses.begin(), addresses.end());
    EXPECT_EQ(std::adjacent_find(offsets.begin(), offsets.end()), offsets.end());
    EXPECT_EQ(std::adjacent_find(addresses.begin(), addresses.end()), addresses.end());
    EXPECT_LE(offsets.back(), (8 * kept.chunks.size() + 8) * kChunk);
  }
}

TEST(KeptChunks, ThoseOfAnEarlierPlanStayWhereTheyAre) {
  const std::vector<StayingBlock> blocks = {{kBase, kMiB}, {kBase + 10 * kChunk, kMiB}};
  const std::vector<KeptChunk> known = {{kBase + 10 * kChunk, 3 * kChunk}, {kBase + 30 * kChunk, kChunk}};
  const KeptBytes kept = keep_chunks(blocks, kChunk, known, 9 * kMiB);
  const std::vector<KeptChunk> expected = {known[0], known[1], {kBase, 5 * kChunk}};
  EXPECT_EQ(kept.chunks, expected);
  ASSERT_EQ(kept.pieces.size(), 2u);
  EXPECT_EQ(kept.pieces[0].offset, 3 * kChunk);
  EXPECT_EQ(kept.pieces[1].offset, 5 * kChunk);
}

TEST(KeptChunks, AnythingThatAProgramSaysIsTaken) {
  std::mt19937_64 random(1);
  for (int run = 0; run < 200; ++run) {
    std::vector<StayingBlock> blocks;
    for (int i = 0; i < 50; ++i) {
      const int bits = static_cast<int>(random() % 64);
      const bool near = random() % 2 == 0;
      blocks.push_back({near ? kBase + random() % (40 * kChunk) : random() >> bits, random() >> (near ? 42 : bits)});
    }
    const KeptBytes kept = keep_chunks(blocks, kChunk, {}, 0);
    for (std::size_t i = 0; i < kept.pieces.size(); ++i) {
      const KeptBytes::Piece& piece = kept.pieces[i];
      ASSERT_EQ(piece.offset % 512 + piece.bytes % 512, 0u);
      ASSERT_LE(piece.offset % kChunk + piece.bytes, kChunk);
      if (i != 0) {
        ASSERT_LE(kept.pieces[i - 1].offset + kept.pieces[i - 1].bytes, piece.offset);
      }
    }
  }
}

// An iteration of two blocks of 1 MiB beside one that stays, which has the first MiB of a chunk.
TEST(KeptChunks, ThePlanUsesWhatIsFreeInThem) {
  Stream stream;
  stream.planner.keep_chunks_of(kChunk);
  constexpr std::uint64_t kStays = 1'000'000;
  stream.add(stream.builder.malloc(kStays, kMiB - 512, 4, 8, kBase));
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t first = stream.malloc(kMiB, 1), second = stream.malloc(kMiB, 2);
    stream.launch(10, {first, second, kStays});
    stream.free(first);
    stream.free(second);
  }
  ASSERT_EQ(stream.plans.size(), 1u) << stream.planner.note();
  const IterationPlan& plan = stream.plans.back().plan;
  EXPECT_EQ(plan.lifetimes.kept_chunks, (std::vector<KeptChunk>{{kBase, 0}}));
  EXPECT_EQ(plan.lifetimes.persistent_bytes, 0u);
  EXPECT_EQ(plan.lifetimes.sizes_at_peak, (std::vector<std::uint64_t>{kMiB, kMiB}));
  EXPECT_EQ(plan.outcome.solution.height, 3 * kMiB - 512);
  const PlanParts parts = plan_parts(plan, {kStays});
  ASSERT_EQ(parts.chunks.size(), 1u);
  EXPECT_EQ(parts.chunks[0].address, kBase);
  EXPECT_EQ(parts.header.chunk_bytes, kChunk);
  for (const shm::Place& place : parts.places) EXPECT_GE(place.offset, kMiB - 512);
}

// The program leaves the plan, and what it makes comes to lie where the plan left nothing free.
TEST(KeptChunks, ABlockMayLieInTheSlabRightBehindOneThatStays) {
  constexpr std::uint64_t kSlab = std::uint64_t{0x7f00} << 32;
  constexpr std::uint64_t kStays = 1'000'000, kState = kStays + 1;
  Stream stream;
  stream.planner.keep_chunks_of(kChunk);
  stream.add(stream.builder.malloc(kStays, kMiB, 4, 8, kBase));
  const auto iterate = [&](int times) {
    for (int i = 0; i < times; ++i) {
      const std::uint64_t first = stream.malloc(kMiB, 1), second = stream.malloc(kMiB, 2);
      stream.launch(10, {first, second, kStays});
      stream.free(first);
      stream.free(second);
    }
  };
  iterate(100);
  ASSERT_EQ(stream.plans.size(), 1u) << stream.planner.note();
  stream.add(stream.builder.state(shm::StateChange::kLive, 1, kSlab));
  iterate(3);
  stream.add(stream.builder.state(shm::StateChange::kDeviated, 1, kSlab));
  stream.add(stream.builder.malloc(kState, kMiB / 2, 4, 8, kSlab + kMiB));
  stream.launch(12, {kState});
  for (int i = 0; i < 12; ++i) {
    iterate(16);
    const std::uint64_t block = stream.malloc(6 * kMiB, 3);
    stream.launch(11, {block});
    stream.free(block);
  }
  ASSERT_EQ(stream.plans.size(), 2u) << stream.planner.note();
  const IterationPlan& plan = stream.plans.back().plan;
  ASSERT_EQ(plan.lifetimes.in_slab.size(), 2u);
  EXPECT_EQ(plan.lifetimes.in_slab[0].offset, 0u);
  EXPECT_EQ(plan.lifetimes.in_slab[0].bytes, kMiB);
  EXPECT_EQ(plan.lifetimes.in_slab[1].offset, kMiB);
  EXPECT_EQ(plan.lifetimes.in_slab[1].bytes, kMiB / 2);
}

}  // namespace
}  // namespace memopt::planner
