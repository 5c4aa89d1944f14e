// The model beside one that looks at everything, and single rules of PyTorch's allocator.
#include "planner/frameworks/caching_allocator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace memopt::planner {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

// Segments as lists of pieces, all of which are looked at each time.
class Naive {
 public:
  void malloc(std::uint64_t block, std::uint64_t bytes, std::uint64_t stream) {
    const std::uint64_t size = (bytes + 511) / 512 * 512;
    const bool small = size <= kMiB;
    Segment* in = nullptr;
    std::size_t at = 0;
    for (Segment& segment : segments_) {
      if (segment.small != small || segment.stream != stream) continue;
      for (std::size_t i = 0; i < segment.pieces.size(); ++i) {
        const Piece& piece = segment.pieces[i];
        if (piece.block != 0 || piece.bytes < size) continue;
        if (in != nullptr && in->pieces[at].bytes <= piece.bytes) continue;
        in = &segment;
        at = i;
      }
    }
    if (in == nullptr) {
      const std::uint64_t whole = small              ? 2 * kMiB
                                  : size < 10 * kMiB ? 20 * kMiB
                                                     : (size + 2 * kMiB - 1) / (2 * kMiB) * (2 * kMiB);
      segments_.push_back({small, stream, {{whole, 0}}});
      in = &segments_.back();
      at = 0;
    }
    const std::uint64_t rest = in->pieces[at].bytes - size;
    if (small ? rest >= 512 : rest > kMiB) {
      in->pieces[at].bytes = size;
      in->pieces.insert(in->pieces.begin() + static_cast<std::ptrdiff_t>(at) + 1, {rest, 0});
    }
    in->pieces[at].block = block;
  }
  void free(std::uint64_t block) {
    for (Segment& segment : segments_) {
      std::vector<Piece> joined;
      for (Piece piece : segment.pieces) {
        if (piece.block == block) piece.block = 0;
        if (piece.block == 0 && !joined.empty() && joined.back().block == 0) {
          joined.back().bytes += piece.bytes;
        } else {
          joined.push_back(piece);
        }
      }
      segment.pieces = std::move(joined);
    }
  }
  std::uint64_t reserved() const {
    std::uint64_t sum = 0;
    for (const Segment& segment : segments_) {
      for (const Piece& piece : segment.pieces) sum += piece.bytes;
    }
    return sum;
  }
  std::uint64_t allocated() const {
    std::uint64_t sum = 0;
    for (const Segment& segment : segments_) {
      for (const Piece& piece : segment.pieces) sum += piece.block != 0 ? piece.bytes : 0;
    }
    return sum;
  }

 private:
  struct Piece {
    std::uint64_t bytes;
    std::uint64_t block;  // 0: free
  };
  struct Segment {
    bool small;
    std::uint64_t stream;
    std::vector<Piece> pieces;
  };
  std::vector<Segment> segments_;
};

TEST(CachingAllocator, DoesWhatANaiveOneDoes) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    std::mt19937_64 random(seed);
    CachingAllocator model;
    Naive naive;
    std::vector<std::uint64_t> live;
    std::uint64_t next = 1;
    const std::uint64_t streams = 1 + seed % 3;
    // Around the limits of the rules, and of all magnitudes; the same sizes come again and again.
    std::vector<std::uint64_t> sizes = {1,
                                        512,
                                        513,
                                        kMiB - 512,
                                        kMiB,
                                        kMiB + 1,
                                        2 * kMiB,
                                        10 * kMiB - 512,
                                        10 * kMiB - 511,
                                        10 * kMiB,
                                        10 * kMiB + 1,
                                        19 * kMiB,
                                        19 * kMiB + 1,
                                        20 * kMiB};
    for (int i = 0; i < 20; ++i) sizes.push_back(1 + random() % (std::uint64_t{1} << (6 + random() % 20)));
    for (int step = 0; step < 700; ++step) {
      if (live.empty() || random() % 16 < (step / 100 % 2 == 0 ? 10u : 6u)) {
        const std::uint64_t bytes = sizes[random() % sizes.size()];
        const std::uint64_t stream = random() % streams;
        model.malloc(next, bytes, stream);
        naive.malloc(next, bytes, stream);
        live.push_back(next++);
      } else {
        std::swap(live[random() % live.size()], live.back());
        model.free(live.back());
        naive.free(live.back());
        live.pop_back();
      }
      ASSERT_EQ(model.reserved(), naive.reserved()) << "seed " << seed << ", step " << step;
      ASSERT_EQ(model.allocated(), naive.allocated()) << "seed " << seed << ", step " << step;
    }
    for (const std::uint64_t block : live) model.free(block);
    EXPECT_EQ(model.allocated(), 0u);
  }
}

TEST(CachingAllocator, ReservesInThreeKindsOfSegments) {
  CachingAllocator model;
  model.malloc(1, 1, 0);
  EXPECT_EQ(model.reserved(), 2 * kMiB);
  EXPECT_EQ(model.allocated(), 512u);
  model.malloc(2, kMiB, 0);
  EXPECT_EQ(model.reserved(), 2 * kMiB) << "shared by small blocks";
  model.malloc(3, kMiB + 1, 0);
  EXPECT_EQ(model.reserved(), 22 * kMiB);
  model.malloc(4, 9 * kMiB, 0);
  EXPECT_EQ(model.reserved(), 22 * kMiB) << "shared by those below 10 MiB";
  model.malloc(5, 11 * kMiB, 0);
  EXPECT_EQ(model.reserved(), 34 * kMiB) << "a segment of its own, of even MiB";
}

TEST(CachingAllocator, LargeBlocksKeepARestOfAMiB) {
  CachingAllocator model;
  model.malloc(1, 12 * kMiB, 0);
  model.free(1);
  model.malloc(2, 11 * kMiB, 0);
  EXPECT_EQ(model.allocated(), 12 * kMiB);
  model.free(2);
  model.malloc(3, 11 * kMiB - 512, 0);
  EXPECT_EQ(model.allocated(), 11 * kMiB - 512);
  EXPECT_EQ(model.reserved(), 12 * kMiB);
}

TEST(CachingAllocator, StreamsShareNothing) {
  CachingAllocator model;
  model.malloc(1, 30 * kMiB, 0);
  model.free(1);
  model.malloc(2, 30 * kMiB, 7);
  EXPECT_EQ(model.reserved(), 60 * kMiB);
  model.malloc(3, 30 * kMiB, 0);
  EXPECT_EQ(model.reserved(), 60 * kMiB);
}

TEST(CachingAllocator, WhatIsNoLongerKnownToLiveIsFree) {
  CachingAllocator model;
  for (std::uint64_t block = 1; block <= 4; ++block) model.malloc(block, 10 * kMiB, 0);
  const std::uint64_t kept[] = {2, 9};
  model.keep_only(kept);
  EXPECT_EQ(model.allocated(), 10 * kMiB);
  model.free(3);  // comes late, and is passed over
  for (std::uint64_t block = 11; block <= 13; ++block) model.malloc(block, 10 * kMiB, 0);
  EXPECT_EQ(model.reserved(), 40 * kMiB);
}

TEST(CachingAllocator, AnyContents) {
  std::mt19937_64 random(3);
  CachingAllocator model;
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t block = random() % 50;
    if (random() % 2 == 0) {
      model.malloc(block, random() >> (random() % 64), random() % 3);
    } else {
      model.free(block);
    }
    ASSERT_LE(model.allocated(), model.reserved());
  }
  model.keep_only({});
  EXPECT_EQ(model.allocated(), 0u);
  model.malloc(1, ~std::uint64_t{0}, 0);
  model.malloc(1, 0, 0);
  EXPECT_EQ(model.allocated(), 0u);
}

}  // namespace
}  // namespace memopt::planner
