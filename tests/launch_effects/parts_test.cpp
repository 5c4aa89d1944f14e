// The parts that need no driver: ranges, blocks, decisions, types of parameters, the effect on bytes.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <string>

#include "blocks.h"
#include "decisions.h"
#include "effect.h"
#include "parameter_types.h"
#include "ranges.h"
#include "tensor_lists.h"

namespace launch_effects {
namespace {

TEST(LaunchEffectsRanges, AgreeWithASetOfBytes) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    Ranges ranges;
    std::set<std::uint64_t> bytes;
    for (int i = 0; i < 12; ++i) {
      const std::uint64_t begin = random() % 60, end = begin + random() % 12;
      ranges.add({begin, end});
      for (std::uint64_t at = begin; at < end; ++at) bytes.insert(at);
      std::set<std::uint64_t> inside, missing;
      for (const Range& range : ranges.inside({10, 50}))
        for (std::uint64_t at = range.begin; at < range.end; ++at) EXPECT_TRUE(inside.insert(at).second);
      for (const Range& range : ranges.missing({10, 50}))
        for (std::uint64_t at = range.begin; at < range.end; ++at) EXPECT_TRUE(missing.insert(at).second);
      for (std::uint64_t at = 10; at < 50; ++at) {
        EXPECT_EQ(inside.contains(at), bytes.contains(at));
        EXPECT_NE(inside.contains(at), missing.contains(at));
      }
      EXPECT_EQ(ranges.contains({10, 50}), missing.empty());
    }
  }
}

TEST(LaunchEffectsBlocks, AreFoundByTheirBytesAlone) {
  Blocks blocks;
  blocks.add({{0, 0}, 0x1000, 100, {}});
  blocks.add({{0, 1}, 0x1000 + 100, 50, {}});
  EXPECT_EQ(blocks.at(0x1000 + 99)->id, (BlockId{0, 0}));
  EXPECT_EQ(blocks.at(0x1000 + 100)->id, (BlockId{0, 1}));
  EXPECT_EQ(blocks.at(0x1000 + 150), nullptr);
  EXPECT_EQ(blocks.at(0xfff), nullptr);
  blocks.remove(0x1000);
  EXPECT_EQ(blocks.at(0x1000), nullptr);
  EXPECT_EQ(blocks.find({0, 0}), nullptr);
  EXPECT_EQ(blocks.find({0, 1})->address, 0x1000u + 100);
  EXPECT_EQ(blocks.bytes(), 50u);
  EXPECT_EQ(blocks.peak_bytes(), 150u);
}

TEST(LaunchEffectsBlocks, ACopyBringsNoMoreThanItsSourceHas) {
  Blocks blocks;
  blocks.add({{0, 0}, 0x1000, 100, {}});
  blocks.add({{0, 1}, 0x2000, 100, {}});
  blocks.wrote(0x1000 + 20, 30);
  blocks.copied(0x2000 + 5, 0x1000 + 10, 60);  // of the source 20 to 50 are written
  EXPECT_TRUE(blocks.find({0, 1})->written.contains({15, 45}));
  EXPECT_FALSE(blocks.find({0, 1})->written.contains({14, 45}));
  EXPECT_FALSE(blocks.find({0, 1})->written.contains({15, 46}));
  // From anywhere else it brings all.
  blocks.copied(0x2000, 0x9000, 100);
  EXPECT_TRUE(blocks.find({0, 1})->written.contains({0, 100}));
}

TEST(LaunchEffectsParameters, AreReadFromMangledNames) {
  EXPECT_EQ(parameter_types("_Z3addPKfS0_Pfi"),
            (std::vector<std::string>{"float const*", "float const*", "float*", "int"}));
  // A template, with commas in its own arguments and in a parameter's.
  const auto types = parameter_types("_ZN2at4workILi4ESt5arrayIPcLm3EEEEviT0_PKf");
  ASSERT_EQ(types.size(), 3u);
  EXPECT_EQ(types[0], "int");
  EXPECT_EQ(types[2], "float const*");
  EXPECT_TRUE(parameter_types("gemm").empty());
  EXPECT_TRUE(parameter_types("_Znot a name").empty());
  EXPECT_TRUE(is_pointer_to_const("float const*"));
  EXPECT_TRUE(is_pointer_to_const("float const* __restrict__"));
  EXPECT_FALSE(is_pointer_to_const("float* const"));
  EXPECT_FALSE(is_pointer_to_const("float"));
}

TEST(LaunchEffectsDecisions, AreReadAsWritten) {
  Decisions decisions;
  decisions[{0, 0}] = {"_Z3addPKf", 0xfedcba9876543210u, 4096, {{0, {0, 3}, 16}, {8, {1, 0}, 0}}};
  decisions[{0, 1}] = {"empty", 1, 0, {}};
  decisions[{1, 0}] = {"_Z3addPKf", 2, 1, {{4088, {0, 4}, std::uint64_t{1} << 40}}};
  const std::string path = testing::TempDir() + "launch_effects_decisions";
  write_decisions(path, decisions);
  Decisions read;
  ASSERT_TRUE(read_decisions(path, read));
  ASSERT_EQ(read.size(), decisions.size());
  for (const auto& [id, decision] : decisions) {
    EXPECT_EQ(read[id].kernel, decision.kernel);
    EXPECT_EQ(read[id].digest, decision.digest);
    EXPECT_EQ(read[id].bytes, decision.bytes);
    EXPECT_EQ(read[id].named, decision.named);
  }
  for (const char* const wrong : {"", "something else\n", "launch-effects 1\nlaunch 0 0 0 1 1\n",
                                  "launch-effects 1\nkernel 0 k\nlaunch 0 0 0 1 1 8:0.x+1\n",
                                  "launch-effects 1\nkernel 0 k\nlaunch 0 0 0 1\n", "launch-effects 1\nkernel\n"}) {
    std::ofstream(path) << wrong;
    Decisions none;
    EXPECT_FALSE(read_decisions(path, none)) << wrong;
  }
  std::remove(path.c_str());
}

class LaunchEffectsBytes : public testing::TestWithParam<Extent> {
 protected:
  static constexpr std::size_t kSize = 3 * 4096 + 13;

  static std::uint64_t run(std::vector<unsigned char>& in, std::vector<unsigned char>& out, std::uint64_t digest) {
    Sums sums;
    Effect effect;
    effect.digest = digest;
    effect.extent = GetParam();
    effect.sums = &sums;
    effect.operands = {{in.data(), in.size(), true, false, {}},
                       {out.data(), out.size(), false, true, {{0, out.size()}}}};
    effect.read();
    effect.write();
    EXPECT_EQ(sums.effects.load(), 1u);
    return sums.hash.load();
  }
};

TEST_P(LaunchEffectsBytes, DependOnWhatIsReadAndOnTheDigest) {
  std::vector<unsigned char> in(kSize, 1), out(kSize, 0xaa), again(kSize, 0xbb);
  const std::uint64_t hash = run(in, out, 5);
  EXPECT_EQ(run(in, again, 5), hash) << "what was in a fresh block does not matter";
  EXPECT_EQ(std::memcmp(again.data(), out.data(), 64), 0);
  // In both extents the first 64 bytes of each page.
  for (const std::size_t at : {std::size_t{0}, std::size_t{63}, std::size_t{4096}, std::size_t{3 * 4096}}) {
    in[at] ^= 1;
    EXPECT_NE(run(in, again, 5), hash) << at;
    EXPECT_NE(std::memcmp(again.data(), out.data(), 64), 0);
    in[at] ^= 1;
  }
  EXPECT_NE(run(in, again, 6), hash);
  if (GetParam() == Extent::kAll) {
    run(in, again, 5);
    EXPECT_EQ(again, out) << "to the last byte";
    in.back() ^= 1;
    EXPECT_NE(run(in, again, 5), hash);
  } else {
    EXPECT_EQ(out[64], 0) << "no more than is asked for, but nothing that was there before";
  }
}

// A kernel may be given a fresh block by a pointer to const. From then on it counts as written.
TEST_P(LaunchEffectsBytes, OfAFreshBlockThatIsOnlyReadAreZero) {
  Sums sums;
  std::vector<unsigned char> fresh(kSize, 0xaa), part(kSize, 0xbb);
  Effect effect;
  effect.extent = GetParam();
  effect.sums = &sums;
  effect.operands = {{fresh.data(), kSize, false, false, {{0, kSize}}},
                     {part.data(), kSize, true, false, {{100, kSize}}}};
  effect.read();
  effect.write();
  EXPECT_EQ(fresh, std::vector<unsigned char>(kSize, 0));
  EXPECT_EQ(part[99], 0xbb);
  EXPECT_EQ(part[100], 0);
  EXPECT_EQ(part.back(), 0);
}

TEST_P(LaunchEffectsBytes, AreFiniteNumbersOfEveryType) {
  std::vector<unsigned char> in(kSize, 1), out(kSize, 0);
  run(in, out, 5);
  for (std::size_t at = 0; at + 8 <= 64; at += 8) {
    float single = 0;
    double twice = 0;
    std::memcpy(&single, out.data() + at, sizeof single);
    std::memcpy(&twice, out.data() + at, sizeof twice);
    EXPECT_GE(std::abs(single), 0.5f);
    EXPECT_LT(std::abs(single), 2.0f);
    EXPECT_LT(std::abs(twice), 2.0);
    EXPECT_GT(std::abs(twice), 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Extents, LaunchEffectsBytes, testing::Values(Extent::kAll, Extent::kSome));

TEST(TensorLists, WhatNoThreadBlockReadsIsNotNamed) {
  struct Lists {
    std::uint64_t addresses[2][64];
    std::int64_t elements[64];
    unsigned char block_to_tensor[320];
    int block_to_chunk[320];
    int first;
  } lists{};
  const std::string type = "at::native::(anonymous namespace)::TensorListMetadata<2>";
  const auto found = TensorLists::of(type, sizeof lists);
  ASSERT_TRUE(found);
  EXPECT_FALSE(TensorLists::of(type, sizeof lists - 8));
  EXPECT_FALSE(TensorLists::of("apex::TensorListMetadata<2>", sizeof lists));
  lists.block_to_tensor[1] = 1;
  lists.block_to_tensor[2] = 2;
  const auto named = found->addresses(std::as_bytes(std::span(&lists, 1)), 2);
  EXPECT_EQ(named, (std::set<std::size_t>{0, 8, 8 * 64, 8 * 65}));
}

TEST(TensorLists, WithScalarsAndSteps) {
  struct Steps {
    std::uint64_t addresses[4][36];
    std::int64_t elements[36];
    std::uint64_t steps[36];
    unsigned char block_to_tensor[320];
    int block_to_chunk[320];
    int first;
  } steps{};
  const auto of_optimizer =
      TensorLists::of("at::native::(anonymous namespace)::FusedOptimizerTensorListMetadata<4>", sizeof steps);
  ASSERT_TRUE(of_optimizer);
  EXPECT_EQ(of_optimizer->addresses(std::as_bytes(std::span(&steps, 1)), 1),
            (std::set<std::size_t>{0, 8 * 36, 8 * 72, 8 * 108, offsetof(Steps, steps)}));
  struct Scalars {
    std::uint64_t addresses[1][96];
    std::int64_t elements[96];
    float scalars[96];
    unsigned char block_to_tensor[320];
    int block_to_chunk[320];
  } scalars{};
  const auto of_scalars =
      TensorLists::of("at::native::(anonymous namespace)::TensorListScalarListMetadata<float, 1>", sizeof scalars);
  ASSERT_TRUE(of_scalars);
  EXPECT_EQ(of_scalars->addresses(std::as_bytes(std::span(&scalars, 1)), 320), (std::set<std::size_t>{0}));
  struct Large {
    std::uint64_t addresses[1][770];
    std::int64_t elements[770];
    std::uint16_t block_to_tensor[2240];
    int block_to_chunk[2240];
    int first;
  };
  const auto large = std::make_unique<Large>();
  const auto of_large = TensorLists::of("at::native::(anonymous namespace)::TensorListMetadata<1>", sizeof(Large));
  ASSERT_TRUE(of_large);
  large->block_to_tensor[1] = 700;
  const auto named = of_large->addresses(std::as_bytes(std::span(large.get(), 1)), 2);
  EXPECT_EQ(named, (std::set<std::size_t>{0, 8 * 700}));
}

TEST(CatInputs, AsManyAsTheGridHas) {
  const std::string type =
      "at::native::(anonymous namespace)::CatArrInputTensorMetadata<at::native::(anonymous "
      "namespace)::OpaqueType<4u>, unsigned int, ";
  struct Inputs {
    std::uint64_t addresses[128];
    unsigned numbers[3][128];
    bool contiguous[128];
    unsigned strides[1][2][4];
  };
  const auto found = CatInputs::of(type + "128, 1>", sizeof(Inputs));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->addresses(3), (std::set<std::size_t>{0, 8, 16}));
  EXPECT_EQ(found->addresses(1000).size(), 128u);
  EXPECT_FALSE(CatInputs::of(type + "128, 2>", sizeof(Inputs)));
  EXPECT_FALSE(CatInputs::of(type + "128, 1", sizeof(Inputs)));
  EXPECT_FALSE(CatInputs::of("CatArrInputTensorMetadata<float, unsigned int, 128, 1>", sizeof(Inputs)));
}

}  // namespace
}  // namespace launch_effects
