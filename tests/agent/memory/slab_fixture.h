// A slab over a driver that knows what is mapped where.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "agent/memory/slab.h"
#include "tests/agent/fake_memory.h"

namespace memopt::agent {

struct SlabTest : testing::Test, Memory {
  SlabTest() : slab(driver, streams, chunks, bootstrap) {}
  ~SlabTest() override { slab.release(); }

  void go_live(std::uint64_t bytes) {
    ASSERT_TRUE(slab.want(bytes, [](std::uint64_t) { return false; }));
    slab.build(~std::size_t{0});
    ASSERT_EQ(slab.go_live(nullptr), CUDA_SUCCESS);
  }
  Span* take(Block& block, std::uint64_t begin, std::uint64_t end) {
    Block* in_the_way = nullptr;
    return slab.window().map.take(begin, end, &block, nullptr, &block.former, &in_the_way);
  }
  Release used() {
    Release uses;
    uses.add(streams.begin({}));
    queued();
    ArenaLock lock;
    streams.record_events(lock, uses);
    return uses;
  }

  void give_up_idle() {
    Release awaited;
    slab.give_up_idle(&awaited);
    EXPECT_EQ(awaited.empty(), !fake.busy) << "what is not over is said";
    ArenaLock lock;
    if (streams.wants_events()) streams.record_wanted(lock);
  }

  Slab slab;
};

}  // namespace memopt::agent
