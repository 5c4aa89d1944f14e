#include "memory/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <random>
#include <vector>

#include "config.h"
#include "counters.h"
#include "memory/fault_guard.h"
#include "memory/memory_impl.h"

namespace cudasim {
namespace {

constexpr ContextId kContext{1};

class MemoryTest : public ::testing::Test {
 protected:
  static Config config(std::uint64_t capacity) {
    Config made;
    made.device.capacity = capacity;
    return made;
  }
  static std::byte* bytes(CUdeviceptr address) { return reinterpret_cast<std::byte*>(address); }
  static bool faults(CUdeviceptr address) {
    return FaultGuard::run([&] { *reinterpret_cast<volatile char*>(address); }).has_value();
  }

  Counters counters;
};

TEST_F(MemoryTest, TheGranuleThatExceedsTheCapacityIsRefused) {
  Memory memory(config(5 * kGranule), counters);
  CUdeviceptr address = 0;
  std::vector<CUdeviceptr> blocks;
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(memory.allocate(kContext, kGranule, &address), CUDA_SUCCESS) << i;
    blocks.push_back(address);
  }
  EXPECT_EQ(memory.allocate(kContext, 1, &address), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(memory.held(), 5 * kGranule);
  EXPECT_EQ(counters.totals.bytes_held, 5 * kGranule);
  ASSERT_EQ(memory.free(blocks[1]), CUDA_SUCCESS);
  ASSERT_EQ(memory.free(blocks[3]), CUDA_SUCCESS);
  // One block over two granules that are no neighbours.
  ASSERT_EQ(memory.allocate(kContext, 2 * kGranule, &address), CUDA_SUCCESS);
  std::memset(bytes(address), 0x5a, 2 * kGranule);
  EXPECT_EQ(bytes(address)[2 * kGranule - 1], std::byte{0x5a});
  int ranges = 0;
  memory.for_each_byte_range(address, 2 * kGranule, [&](ByteRange) { ++ranges; });
  EXPECT_EQ(ranges, 2);
}

TEST_F(MemoryTest, SizesThatAreNoSizes) {
  Memory memory(config(4 * kGranule), counters);
  CUdeviceptr address = 77;
  EXPECT_EQ(memory.allocate(kContext, 0, &address), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(memory.allocate(kContext, UINT64_MAX, &address), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(memory.allocate(kContext, UINT64_MAX - kGranule + 2, &address), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(memory.allocate(kContext, 4 * kGranule + 1, &address), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(address, 77u);
  EXPECT_EQ(memory.held(), 0u);
}

TEST_F(MemoryTest, FreeTakesOnlyTheBaseOfALiveBlock) {
  Memory memory(config(4 * kGranule), counters);
  CUdeviceptr small = 0, large = 0;
  ASSERT_EQ(memory.allocate(kContext, 4096, &small), CUDA_SUCCESS);
  ASSERT_EQ(memory.allocate(kContext, kGranule, &large), CUDA_SUCCESS);
  for (const CUdeviceptr block : {small, large}) {
    EXPECT_EQ(memory.free(block + 512), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(memory.free(block), CUDA_SUCCESS);
    EXPECT_EQ(memory.free(block), CUDA_ERROR_INVALID_VALUE);
  }
  EXPECT_EQ(memory.free(0x1234), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(MemoryTest, SmallBlocksShareAGranuleLargeOnesDoNot) {
  Memory memory(config(64 * kGranule), counters);
  CUdeviceptr a = 0, b = 0, c = 0;
  ASSERT_EQ(memory.allocate(kContext, kSharedBelow - 1, &a), CUDA_SUCCESS);
  ASSERT_EQ(memory.allocate(kContext, kSharedBelow - 1, &b), CUDA_SUCCESS);
  EXPECT_EQ(memory.held(), kGranule);
  ASSERT_EQ(memory.allocate(kContext, kSharedBelow, &c), CUDA_SUCCESS);
  EXPECT_EQ(memory.held(), 2 * kGranule);
  ASSERT_EQ(memory.allocate(ContextId{2}, 1, &c), CUDA_SUCCESS);  // another context shares nothing
  EXPECT_EQ(memory.held(), 3 * kGranule);
}

TEST_F(MemoryTest, FreedMemoryIsPoisonedOrGone) {
  Memory memory(config(8 * kGranule), counters);
  CUdeviceptr keeper = 0, small = 0, large = 0;
  ASSERT_EQ(memory.allocate(kContext, 512, &keeper), CUDA_SUCCESS);
  ASSERT_EQ(memory.allocate(kContext, 1000, &small), CUDA_SUCCESS);
  ASSERT_EQ(memory.allocate(kContext, kGranule, &large), CUDA_SUCCESS);
  EXPECT_EQ(bytes(small)[0], kPoison);  // fresh
  EXPECT_EQ(bytes(large)[kGranule - 1], kPoison);
  std::memset(bytes(small), 1, 1000);
  ASSERT_EQ(memory.free(small), CUDA_SUCCESS);
  EXPECT_TRUE(std::all_of(bytes(small), bytes(small) + 1000, [](std::byte byte) { return byte == kPoison; }));
  ASSERT_EQ(memory.free(large), CUDA_SUCCESS);
  EXPECT_TRUE(faults(large));
  ASSERT_EQ(memory.free(keeper), CUDA_SUCCESS);  // the last of its slab
  EXPECT_TRUE(faults(keeper));
  EXPECT_EQ(memory.held(), 0u);
}

TEST_F(MemoryTest, RunningOverTheEndFaults) {
  Memory memory(config(8 * kGranule), counters);
  CUdeviceptr a = 0, b = 0;
  ASSERT_EQ(memory.allocate(kContext, kGranule, &a), CUDA_SUCCESS);
  ASSERT_EQ(memory.allocate(kContext, kGranule, &b), CUDA_SUCCESS);
  EXPECT_FALSE(faults(a + kGranule - 1));
  EXPECT_TRUE(faults(a + kGranule));
  EXPECT_TRUE(faults(b - 1));
}

TEST_F(MemoryTest, AddressesRepeatFromRunToRun) {
  std::vector<CUdeviceptr> first, second;
  for (std::vector<CUdeviceptr>* run : {&first, &second}) {
    Memory memory(config(32 * kGranule), counters);
    std::mt19937 random(3);
    for (int i = 0; i < 40; ++i) {
      CUdeviceptr address = 0;
      if (memory.allocate(kContext, 1 + random() % (2 * kGranule), &address) == CUDA_SUCCESS) run->push_back(address);
      if (i % 3 == 2) {
        ASSERT_EQ(memory.free(run->at(static_cast<std::size_t>(i / 3))), CUDA_SUCCESS);
      }
    }
  }
  EXPECT_EQ(first, second);
}

// Random allocations and frees against an oracle that knows only what was asked for.
TEST_F(MemoryTest, AgreesWithAnOracle) {
  constexpr std::uint64_t kCapacity = 24 * kGranule;
  Memory memory(config(kCapacity), counters);
  std::mt19937 random(11);
  std::map<CUdeviceptr, std::pair<std::uint64_t, std::byte>> live;  // size, first and last byte
  std::uint64_t live_bytes = 0, peak = 0, refused = 0;
  for (int step = 0; step < 6000; ++step) {
    if (random() % 5 < 3) {
      const std::uint64_t size = random() % 3 == 0 ? 1 + random() % (4 * kGranule) : 1 + random() % 70000;
      CUdeviceptr address = 0;
      const std::uint64_t held = memory.held();
      const CUresult result = memory.allocate(kContext, size, &address);
      if (result != CUDA_SUCCESS) {
        ASSERT_EQ(result, CUDA_ERROR_OUT_OF_MEMORY);
        const std::uint64_t needed = size < kSharedBelow ? kGranule : (size + kGranule - 1) / kGranule * kGranule;
        ASSERT_GT(held + needed, kCapacity) << "refused although it fits";
        ASSERT_EQ(memory.held(), held);
        ++refused;
        continue;
      }
      ASSERT_EQ(address % kBlockAlignment, 0u);
      const auto next = live.lower_bound(address);
      if (next != live.end()) {
        ASSERT_LE(address + size, next->first);
      }
      if (next != live.begin()) {
        ASSERT_LE(std::prev(next)->first + std::prev(next)->second.first, address);
      }
      const auto tag = static_cast<std::byte>(random());
      bytes(address)[0] = tag;
      bytes(address)[size - 1] = tag;
      live.emplace(address, std::pair{size, tag});
      live_bytes += size;
    } else if (!live.empty()) {
      auto it = std::next(live.begin(), static_cast<long>(random() % live.size()));
      const auto [size, tag] = it->second;
      ASSERT_EQ(bytes(it->first)[0], tag);
      ASSERT_EQ(bytes(it->first)[size - 1], tag);
      ASSERT_EQ(memory.free(it->first), CUDA_SUCCESS);
      ASSERT_EQ(memory.find_allocation(it->first), nullptr);
      live_bytes -= size;
      live.erase(it);
    }
    peak = std::max(peak, live_bytes);
    ASSERT_EQ(counters.totals.bytes_live, live_bytes);
    ASSERT_EQ(counters.totals.blocks_live, live.size());
    ASSERT_EQ(counters.totals.bytes_held, memory.held());
    ASSERT_LE(memory.held(), kCapacity);
  }
  EXPECT_EQ(counters.totals.bytes_live_peak, peak);
  EXPECT_GT(refused, 0u);  // the test went to the edge
  // Every physical byte belongs to one block.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> physical;
  for (const auto& [address, block] : live) {
    std::uint64_t covered = 0;
    memory.for_each_byte_range(address, block.first, [&](ByteRange range) {
      EXPECT_EQ(range.space, ByteRange::Space::kDevice);
      physical.emplace_back(range.begin, range.end);
      covered += range.end - range.begin;
    });
    EXPECT_EQ(covered, block.first);
    const Allocation* inside = memory.find_allocation(address + block.first - 1);
    ASSERT_NE(inside, nullptr);
    EXPECT_EQ(inside->base, address);
    EXPECT_TRUE(memory.is_device_range(address, block.first));
    EXPECT_FALSE(memory.is_device_range(address, block.first + 1));
  }
  std::sort(physical.begin(), physical.end());
  for (std::size_t i = 1; i < physical.size(); ++i) ASSERT_LE(physical[i - 1].second, physical[i].first);
  memory.release_context(kContext);
  EXPECT_EQ(memory.held(), 0u);
  EXPECT_EQ(counters.totals.blocks_live, 0u);
}

TEST_F(MemoryTest, ByteRangesOfPinnedMemoryAreItsAddresses) {
  Memory memory(config(4 * kGranule), counters);
  void* pinned = nullptr;
  ASSERT_EQ(memory.impl().host.allocate(kContext, 10000, 0, 1, &pinned), CUDA_SUCCESS);
  std::vector<char> own(5000);
  ASSERT_EQ(memory.impl().host.register_range(kContext, own.data(), own.size(), 0, 2), CUDA_SUCCESS);
  for (const auto& [base, size] : {std::pair<void*, std::size_t>{pinned, 10000}, {own.data(), own.size()}}) {
    const auto begin = reinterpret_cast<std::uintptr_t>(base);
    std::vector<ByteRange> ranges;
    memory.for_each_byte_range(begin + 10, size + 100, [&](ByteRange range) { ranges.push_back(range); });
    ASSERT_EQ(ranges.size(), 1u);
    EXPECT_EQ(ranges[0], (ByteRange{ByteRange::Space::kPinned, begin + 10, begin + size}));
    EXPECT_TRUE(memory.is_tracked(base));
    EXPECT_TRUE(memory.is_pinned_range(base, size));
    EXPECT_FALSE(memory.is_pinned_range(base, size + 1));
  }
  const char on_the_stack = 0;
  EXPECT_FALSE(memory.is_tracked(&on_the_stack));
  EXPECT_FALSE(memory.is_tracked(nullptr));
  EXPECT_FALSE(memory.is_tracked(own.data() + own.size()));
  ASSERT_EQ(memory.impl().host.unregister(own.data()), CUDA_SUCCESS);
  EXPECT_FALSE(memory.is_tracked(own.data()));
}

}  // namespace
}  // namespace cudasim
