// Blocks before there is a plan, over a driver that knows what is mapped where: whatever is served must be mapped, and
// nobody else's.
#include "agent/bootstrap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <tuple>
#include <vector>

namespace memopt::agent {
namespace {

constexpr std::uint64_t kChunk = std::uint64_t{2} << 20;
constexpr std::uint64_t kDevice = 256 * kChunk;

struct FakeDriver {
  std::uint64_t made = 0;
  std::set<CUmemGenericAllocationHandle> handles;
  std::map<CUdeviceptr, CUmemGenericAllocationHandle> mapped;  // by address, a chunk each
  std::uint64_t capacity = kDevice;
  bool busy = false;  // no event is over until the host waits for it
  int host_waits = 0;
};
FakeDriver* g_fake = nullptr;

Driver functions() {
  Driver driver;
  driver.mem_get_info = [](std::size_t* free, std::size_t* total) {
    *total = kDevice;
    *free = g_fake->capacity - g_fake->handles.size() * kChunk;
    return CUDA_SUCCESS;
  };
  driver.device_attribute = [](int* value, CUdevice_attribute, CUdevice) {
    *value = 1;
    return CUDA_SUCCESS;
  };
  driver.granularity = [](std::size_t* bytes, const CUmemAllocationProp*, CUmemAllocationGranularity_flags) {
    *bytes = kChunk;
    return CUDA_SUCCESS;
  };
  driver.address_reserve = [](CUdeviceptr* address, std::size_t, std::size_t, CUdeviceptr, unsigned long long) {
    *address = 0x7000000000;
    return CUDA_SUCCESS;
  };
  driver.create = [](CUmemGenericAllocationHandle* handle, std::size_t, const CUmemAllocationProp*,
                     unsigned long long) {
    if ((g_fake->handles.size() + 1) * kChunk > g_fake->capacity) return CUDA_ERROR_OUT_OF_MEMORY;
    *handle = ++g_fake->made;
    g_fake->handles.insert(*handle);
    return CUDA_SUCCESS;
  };
  driver.release = [](CUmemGenericAllocationHandle handle) {
    return g_fake->handles.erase(handle) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  };
  driver.map = [](CUdeviceptr address, std::size_t bytes, std::size_t, CUmemGenericAllocationHandle handle,
                  unsigned long long) {
    EXPECT_EQ(bytes, kChunk);
    EXPECT_TRUE(g_fake->handles.contains(handle));
    return g_fake->mapped.emplace(address, handle).second ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  };
  driver.unmap = [](CUdeviceptr address, std::size_t bytes) {
    for (std::uint64_t at = address; at < address + bytes; at += kChunk) {
      EXPECT_EQ(g_fake->mapped.erase(at), 1u) << "not mapped: " << at;
    }
    return CUDA_SUCCESS;
  };
  driver.set_access = [](CUdeviceptr, std::size_t, const CUmemAccessDesc*, std::size_t) { return CUDA_SUCCESS; };
  driver.event_create = [](CUevent* event, unsigned) {
    *event = reinterpret_cast<CUevent>(0x10);
    return CUDA_SUCCESS;
  };
  driver.event_destroy = [](CUevent) { return CUDA_SUCCESS; };
  driver.event_record = [](CUevent, CUstream) { return CUDA_SUCCESS; };
  driver.event_query = [](CUevent) { return g_fake->busy ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS; };
  driver.event_synchronize = [](CUevent) {
    ++g_fake->host_waits;
    return CUDA_SUCCESS;
  };
  driver.stream_wait_event = [](CUstream, CUevent, unsigned) { return CUDA_SUCCESS; };
  driver.stream_synchronize = [](CUstream) {
    ++g_fake->host_waits;
    return CUDA_SUCCESS;
  };
  driver.synchronize_context = [] {
    ++g_fake->host_waits;
    return CUDA_SUCCESS;
  };
  driver.stream_is_capturing = [](CUstream, CUstreamCaptureStatus* status) {
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
  };
  driver.stream_flags = [](CUstream, unsigned* flags) {
    *flags = 0;
    return CUDA_SUCCESS;
  };
  return driver;
}

struct Memory {
  Memory() : driver(functions()), streams(driver), chunks(driver), bootstrap(chunks, streams) {
    g_fake = &fake;
    std::string why;
    EXPECT_TRUE(chunks.start(0, &why)) << why;
  }

  Block* make(std::uint64_t bytes) {
    auto block = std::make_unique<Block>();
    block->bytes = bytes;
    block->number = ++numbers;
    if (bootstrap.serve(*block, false) != CUDA_SUCCESS) return nullptr;
    return blocks.emplace(block->number, std::move(block)).first->second.get();
  }
  // As if the block had been used on a stream.
  void free(Block* block) {
    Release uses;
    uses.add(streams.begin({}));
    queued();
    streams.record_events(uses);
    bootstrap.take_back(*block, uses);
    blocks.erase(block->number);
  }
  std::uint64_t held() const { return fake.handles.size() * kChunk; }

  // No two live blocks have an address or a byte of the device in common, and all is mapped.
  void check() {
    using Piece = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;  // where, begin, end
    std::vector<Piece> addresses;
    std::vector<Piece> bytes;
    for (const auto& [number, block] : blocks) {
      ASSERT_EQ(block->base % 512, 0u);
      const std::uint64_t end = block->base + block->bytes;
      addresses.emplace_back(0, block->base, end);
      for (std::uint64_t at = block->base; at < end;) {
        const std::uint64_t page = at / kChunk * kChunk;
        const std::uint64_t next = std::min(end, page + kChunk);
        const auto chunk = fake.mapped.find(page);
        ASSERT_NE(chunk, fake.mapped.end()) << "block " << number << " at " << at << " is not mapped";
        bytes.emplace_back(chunk->second, at - page, next - page);
        at = next;
      }
    }
    for (std::vector<Piece>* const pieces : {&addresses, &bytes}) {
      std::sort(pieces->begin(), pieces->end());
      for (std::size_t i = 1; i < pieces->size(); ++i) {
        const auto& [where, begin, end] = (*pieces)[i];
        const auto& [before, from, to] = (*pieces)[i - 1];
        ASSERT_TRUE(where != before || to <= begin) << from << " to " << to << " and " << begin << " to " << end;
      }
    }
  }

  FakeDriver fake;
  Driver driver;
  StreamTable streams;
  ChunkStore chunks;
  Bootstrap bootstrap;
  std::map<std::uint64_t, std::unique_ptr<Block>> blocks;
  std::uint64_t numbers = 0;
};

class BootstrapTest : public testing::Test, public Memory {};

TEST_F(BootstrapTest, WhatIsMadeBeforeAnythingIsFreedStandsSideBySide) {
  constexpr std::uint64_t kBytes = kChunk + kChunk / 4;
  for (int i = 0; i < 16; ++i) ASSERT_NE(make(kBytes), nullptr);
  check();
  // A window each would take 32 chunks.
  EXPECT_EQ(held(), 21 * kChunk);
}

TEST_F(BootstrapTest, ChunksOfTheRowThatAreFreeAsAWholeServeOthers) {
  Block* const first = make(kChunk + 512);
  Block* const large = make(6 * kChunk);
  Block* const last = make(kChunk + 512);
  ASSERT_NE(last, nullptr);
  EXPECT_EQ(held(), 9 * kChunk);
  free(large);
  // Whether its last use is over is asked at one allocation and answered at the next.
  ASSERT_NE(make(512), nullptr);
  ASSERT_NE(make(5 * kChunk), nullptr);
  check();
  EXPECT_EQ(held(), 10 * kChunk);
  EXPECT_EQ(fake.host_waits, 0);
  EXPECT_NE(first->window, blocks.rbegin()->second->window) << "the row takes nothing once a block was freed";
}

TEST_F(BootstrapTest, ChunksOfTheRowInUseAreWaitedForOnlyWhereThereAreNoOthers) {
  fake.capacity = 8 * kChunk;
  Block* const large = make(6 * kChunk - 512);
  fake.busy = true;
  free(large);
  ASSERT_NE(make(2 * kChunk), nullptr);
  EXPECT_EQ(fake.host_waits, 0);
  ASSERT_NE(make(4 * kChunk), nullptr);
  EXPECT_GT(fake.host_waits, 0);
  check();
  EXPECT_LE(held(), fake.capacity);
}

TEST_F(BootstrapTest, EverythingGoesBack) {
  std::vector<Block*> made;
  for (const std::uint64_t bytes : {3 * kChunk + 5, kChunk, std::uint64_t{100}, 2 * kChunk + 1}) {
    made.push_back(make(bytes));
  }
  for (Block* const block : made) free(block);
  while (bootstrap.trim(1)) {
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

TEST(Bootstrap, AnySequenceIsServedApart) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 40; ++round) {
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
      if (random() % 16 == 0) memory.bootstrap.trim(4);
      ASSERT_NO_FATAL_FAILURE(memory.check());
      ASSERT_LE(memory.held(), memory.fake.capacity);
      ASSERT_EQ(memory.held(), memory.chunks.counts().held_bytes);
    }
    while (!memory.blocks.empty()) memory.free(memory.blocks.begin()->second.get());
    memory.fake.busy = false;
    while (memory.bootstrap.trim(8)) {
    }
    ASSERT_EQ(memory.held(), 0u);
  }
}

}  // namespace
}  // namespace memopt::agent
