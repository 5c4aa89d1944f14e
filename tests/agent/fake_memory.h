// A driver that knows what is mapped where, and the agent's memory over it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "agent/memory/bootstrap.h"

namespace memopt::agent {

inline constexpr std::uint64_t kChunk = std::uint64_t{2} << 20;
inline constexpr std::uint64_t kDevice = 256 * kChunk;

struct FakeDriver {
  std::uint64_t made = 0;
  std::set<CUmemGenericAllocationHandle> handles;
  std::map<CUdeviceptr, CUmemGenericAllocationHandle> mapped;  // by address, a chunk each
  std::uint64_t total = kDevice;
  std::uint64_t capacity = kDevice;
  std::uint64_t addresses = ~std::uint64_t{0};  // that can be had at once, in bytes
  bool busy = false;                            // no event is over until the host waits for it
  int maps_left = -1;                           // until mapping is refused; -1: it never is
  int host_waits = 0;
  int queries = 0;
};
inline FakeDriver* g_fake = nullptr;

inline Driver functions() {
  Driver driver;
  driver.mem_get_info = [](std::size_t* free, std::size_t* total) {
    *total = g_fake->total;
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
  driver.address_reserve = [](CUdeviceptr* address, std::size_t bytes, std::size_t, CUdeviceptr, unsigned long long) {
    if (bytes > g_fake->addresses) return CUDA_ERROR_OUT_OF_MEMORY;
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
    if (g_fake->maps_left == 0) return CUDA_ERROR_UNKNOWN;
    if (g_fake->maps_left > 0) --g_fake->maps_left;
    return g_fake->mapped.emplace(address, handle).second ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  };
  driver.unmap = [](CUdeviceptr address, std::size_t bytes) {
    for (std::uint64_t at = address; at < address + bytes; at += kChunk) {
      EXPECT_EQ(g_fake->mapped.erase(at), 1u) << "not mapped: " << at;
    }
    return CUDA_SUCCESS;
  };
  driver.set_access = [](CUdeviceptr, std::size_t, const CUmemAccessDesc*, std::size_t) { return CUDA_SUCCESS; };
  driver.host_register = [](void*, std::size_t, unsigned) { return CUDA_SUCCESS; };
  driver.host_unregister = [](void*) { return CUDA_SUCCESS; };
  driver.module_load = [](CUmodule*, const void*) { return CUDA_ERROR_NOT_SUPPORTED; };
  driver.exchange_capture_mode = [](CUstreamCaptureMode*) { return CUDA_SUCCESS; };
  driver.event_create = [](CUevent* event, unsigned) {
    *event = reinterpret_cast<CUevent>(0x10);
    return CUDA_SUCCESS;
  };
  driver.event_destroy = [](CUevent) { return CUDA_SUCCESS; };
  driver.event_record = [](CUevent, CUstream) { return CUDA_SUCCESS; };
  driver.event_query = [](CUevent) {
    ++g_fake->queries;
    return g_fake->busy ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
  };
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
  explicit Memory(const FakeDriver& on = {})
      : fake(on), driver(functions()), streams(driver), chunks(driver), bootstrap(chunks, streams) {
    g_fake = &fake;
    std::string why;
    EXPECT_TRUE(chunks.start(0, &why)) << why;
  }

  // The agent's memory is never destroyed; a test's is given back.
  ~Memory() { bootstrap.release_all(); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  Block* make(std::uint64_t bytes) {
    auto block = std::make_unique<Block>();
    block->bytes = bytes;
    block->number = ++numbers;
    CUresult result = bootstrap.serve(*block, false);
    while (result == CUDA_ERROR_NOT_READY) {
      ArenaLock lock;
      const Release uses = bootstrap.awaited();
      if (streams.finish(lock, uses) != CUDA_SUCCESS) return nullptr;
      result = bootstrap.serve(*block, false);
    }
    if (streams.wants_events()) {
      ArenaLock lock;
      streams.record_wanted(lock);
    }
    if (result != CUDA_SUCCESS) return nullptr;
    return blocks.emplace(block->number, std::move(block)).first->second.get();
  }
  // As the arena does it: an answer that there is no event for is to be had the next time.
  bool trim(std::size_t limit) {
    const bool more = bootstrap.trim(limit);
    ArenaLock lock;
    if (streams.wants_events()) streams.record_wanted(lock);
    return more;
  }

  // As if the block had been used on a stream.
  void free(Block* block) {
    Release uses;
    uses.add(streams.begin({}));
    queued();
    ArenaLock lock;
    streams.record_events(lock, uses);
    bootstrap.take_back(*block, uses);
    blocks.erase(block->number);
  }
  std::uint64_t held() const { return fake.handles.size() * kChunk; }

  // Of live blocks, as they are held.
  std::uint64_t owned() const {
    std::uint64_t sum = 0;
    for (const auto& [number, block] : blocks) sum += block->span->end - block->span->begin;
    return sum;
  }

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

}  // namespace memopt::agent
