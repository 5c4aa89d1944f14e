#include "agent/operations/graph_uses.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "agent/operations/launch_parameters.h"
#include "agent/operations/operations.h"
#include "agent/operations/pinned_memory.h"
#include "agent/recording/recorder.h"
#include "shm/record.h"
#include "tests/agent/fake_arena.h"
#include "tests/agent/fake_kernels.h"
#include "tests/agent/fake_link.h"

namespace memopt::agent {
namespace {

constexpr std::uint64_t kRange = 0x7000'0000'0000;
constexpr std::uint64_t kRangeBytes = 1u << 30;
const CUgraphExec kGraph = reinterpret_cast<CUgraphExec>(0x9000);
const CUgraphExec kOther = reinterpret_cast<CUgraphExec>(0x9100);
const StreamName kStream{reinterpret_cast<CUstream>(0x100), false};

class Graphs : public testing::Test {
 protected:
  void SetUp() override {
    test::reset_arena(kRange, kRangeBytes);
    test::reset_link();
    test::read_records();
    forget_pinned_memory_after_fork();
    a_ = test::add_block(kRange + 0x1000, 0x1000);
    b_ = test::add_block(kRange + 0x4000, 0x2000);
    c_ = test::add_block(kRange + 0x8000, 0x1000);
  }
  void TearDown() override {
    stop_recording();
    for (CUgraphExec graph : {kGraph, kOther}) forget_graph_uses(graph);
    forget_graph_uses_after_fork();
  }

  // Of a launch that names what stands in `words`.
  static GraphUses of_launch(std::vector<std::uint64_t> words) {
    std::vector<test::FakeParameter> layout;
    std::vector<void*> parameters;
    for (std::uint64_t& word : words) {
      layout.push_back({8 * layout.size(), 8});
      parameters.push_back(&word);
    }
    GraphUses uses;
    uses.count_node();
    uses.add_launch({.function = test::make_function("k", layout), .parameters = parameters.data()});
    return uses;
  }
  static std::vector<std::uint64_t> used() {
    std::vector<std::uint64_t> numbers;
    for (const test::Use& use : test::uses()) numbers.push_back(use.block);
    return numbers;
  }
  // What one launch uses; empty and `everything` where it is not known.
  static std::vector<std::uint64_t> launched(CUgraphExec graph, bool everything = false) {
    const std::size_t before = test::uses().size();
    const int all = test::uses_of_everything();
    before_graph(graph, kStream);
    EXPECT_EQ(test::uses_of_everything() - all, everything ? 1 : 0);
    std::vector<std::uint64_t> numbers = used();
    numbers.erase(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(before));
    return numbers;
  }

  std::uint64_t a_ = 0;
  std::uint64_t b_ = 0;
  std::uint64_t c_ = 0;
};

TEST_F(Graphs, ALaunchUsesWhatItsNodesName) {
  GraphUses uses = of_launch({kRange + 0x4800, 0x1234, kRange + 0x1000, kRange + 0x1000});
  set_graph_uses(kGraph, uses);
  EXPECT_EQ(launched(kGraph), (std::vector<std::uint64_t>{a_, b_}));
  EXPECT_EQ(test::visible_operations(), 0);
  EXPECT_EQ(launched(kOther, true), std::vector<std::uint64_t>{});
  // A copy's address means the block that it lies in, not the one that ends there.
  test::add_block(kRange + 0x2000, 0x1000);
  GraphUses copy;
  copy.add_copy({.kind = shm::CopyKind::kOnDevice,
                 .to = kRange + 0x8000,
                 .from = kRange + 0x1000,
                 .bytes = 0x1000,
                 .to_extent = 0x1000,
                 .from_extent = 0x1000});
  set_graph_uses(kOther, copy);
  EXPECT_EQ(launched(kOther), (std::vector<std::uint64_t>{a_, a_, c_, c_}));
  GraphUses fill;
  fill.add_memset({kRange + 0x8000, 0x10, {}});
  set_graph_uses(kOther, fill);
  EXPECT_EQ(launched(kOther), (std::vector<std::uint64_t>{c_, c_}));
}

TEST_F(Graphs, WhatANodeIsGivenLaterIsUsedAsWell) {
  set_graph_uses(kGraph, of_launch({kRange + 0x1000}));
  add_graph_uses(kGraph, nullptr, of_launch({kRange + 0x8000}));
  add_graph_uses(kGraph, nullptr, of_launch({kRange + 0x8000}));
  EXPECT_EQ(launched(kGraph), (std::vector<std::uint64_t>{a_, c_}));
  // Of one of which nothing is known, one node says nothing.
  add_graph_uses(kOther, nullptr, of_launch({kRange + 0x8000}));
  launched(kOther, true);
  set_graph_uses(kGraph, of_launch({kRange + 0x4000}));
  EXPECT_EQ(launched(kGraph), (std::vector<std::uint64_t>{b_}));
}

TEST_F(Graphs, WhatCantBeReadIsEverything) {
  GraphUses unknown;
  unknown.known = false;
  set_graph_uses(kGraph, unknown);
  launched(kGraph, true);
  // Parameters of which the driver says nothing.
  std::uint64_t word = kRange + 0x1000;
  void* parameters[] = {&word};
  const CUfunction function = test::make_function("hidden", {{0, 8}});
  test::hide_parameters(true);
  GraphUses hidden;
  hidden.add_launch({.function = function, .parameters = parameters});
  test::hide_parameters(false);
  EXPECT_FALSE(hidden.known);

  set_graph_uses(kGraph, of_launch({word}));
  EXPECT_EQ(launched(kGraph), (std::vector<std::uint64_t>{a_}));
  add_graph_uses(kGraph, nullptr, unknown);
  launched(kGraph, true);
  set_graph_uses(kGraph, of_launch({word}));
  forget_graph_uses(kGraph);
  launched(kGraph, true);
  // Before there is anything of ours, addresses are not told apart from numbers.
  test::reset_arena(0, 0);
  set_graph_uses(kGraph, of_launch({word}));
  EXPECT_EQ(uses_of(kGraph), nullptr);
  test::reset_arena(kRange, kRangeBytes);
  set_graph_uses(kGraph, of_launch({word}));
  EXPECT_NE(uses_of(kGraph), nullptr);
  lose_all_graph_uses();
  launched(kGraph, true);
}

TEST_F(Graphs, ALaunchIsRecordedWithWhatItNames) {
  start_recording(false);
  set_graph_uses(kGraph, of_launch({kRange + 0x1000, kRange + 0x8000}));
  before_graph(kGraph, kStream);
  before_graph(kOther, kStream);
  const auto launches = test::records_of_kind(test::read_records(), shm::RecordKind::kLaunch);
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_EQ(launches[0].view().header.flags, 0);
  EXPECT_EQ(launches[0].view().header.aux, layout_of_graphs().id);
  EXPECT_EQ(launches[0].view().as<shm::LaunchBody>().accesses, 2u);
  EXPECT_EQ(launches[0].view().as<shm::LaunchBody>().grid[0], 1u);
  EXPECT_EQ(launches[1].view().header.flags, shm::kBlindLaunch);
}

TEST_F(Graphs, HostMemoryIsLookedAtWhenTheGraphIsLaunched) {
  std::uint64_t payload = 0;
  GraphUses copy;
  copy.add_copy({.kind = shm::CopyKind::kToDevice,
                 .to = kRange + 0x8000,
                 .from_host = &payload,
                 .bytes = 8,
                 .to_extent = 8,
                 .from_extent = 8});
  set_graph_uses(kGraph, copy);
  payload = kRange + 0x1000;
  EXPECT_FALSE(test::block_with(a_).escaped);
  launched(kGraph);
  EXPECT_TRUE(test::block_with(a_).escaped);

  std::uint64_t shown[16] = {};
  pinned_memory_added(reinterpret_cast<std::uint64_t>(shown), sizeof(shown));
  set_graph_uses(kOther, of_launch({reinterpret_cast<std::uint64_t>(shown)}));
  launched(kOther);
  EXPECT_EQ(test::visible_operations(), 1);
  pinned_memory_removed(reinterpret_cast<std::uint64_t>(shown));
  launched(kOther);
  EXPECT_EQ(test::visible_operations(), 1);
  GraphUses back;
  back.add_copy({.kind = shm::CopyKind::kToHost,
                 .from = kRange + 0x1000,
                 .to_host = &payload,
                 .bytes = 8,
                 .to_extent = 8,
                 .from_extent = 8});
  set_graph_uses(kOther, back);
  launched(kOther);
  EXPECT_EQ(test::visible_operations(), 2);
}

// The memory that a node copied from may be gone once it has another source.
TEST_F(Graphs, WhatACopyCameFromIsForgottenWithIt) {
  const auto node = [](std::uintptr_t number) { return reinterpret_cast<CUgraphNode>(number); };
  const auto copy = [](const std::uint64_t* from) {
    GraphUses uses;
    uses.add_copy({.kind = shm::CopyKind::kToDevice,
                   .to = kRange + 0x8000,
                   .from_host = from,
                   .bytes = 8,
                   .to_extent = 8,
                   .from_extent = 8});
    return uses;
  };
  const std::uint64_t first = 1, second = 2, third = 3;
  GraphUses uses = copy(&first);
  uses.payloads.back().node = node(1);
  set_graph_uses(kGraph, uses);
  add_graph_uses(kGraph, nullptr, of_launch({kRange + 0x1000}));
  add_graph_uses(kGraph, node(1), copy(&second));
  ASSERT_NE(uses_of(kGraph), nullptr);
  ASSERT_EQ(uses_of(kGraph)->payloads.size(), 1u);
  EXPECT_EQ(uses_of(kGraph)->payloads[0].from, &second);
  // One that is not known by this name, as after an update to another graph.
  add_graph_uses(kGraph, node(2), copy(&third));
  EXPECT_EQ(uses_of(kGraph), nullptr);
}

}  // namespace
}  // namespace memopt::agent
