// A program whose iteration is one block, over a driver that knows what is mapped where, and plans of it.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "agent/agent.h"
#include "agent/memory/arena.h"
#include "agent/memory/arena_state.h"
#include "agent/order/current_context.h"
#include "agent/order/in_flight.h"
#include "agent/recording/recorder.h"
#include "tests/agent/arena_calls.h"
#include "tests/agent/fake_memory.h"

namespace memopt::agent {

inline const auto kContext = reinterpret_cast<CUcontext>(0x10);

inline float g_elapsed = 0;  // milliseconds between any two events; 0: that is not known

inline Driver functions_with_context() {
  Driver driver = functions();
  driver.current_context = [](CUcontext* context) { return *context = kContext, CUDA_SUCCESS; };
  driver.current_device = [](CUdevice* device) { return *device = 0, CUDA_SUCCESS; };
  driver.context_push = [](CUcontext) { return CUDA_SUCCESS; };
  driver.context_pop = [](CUcontext* context) { return *context = kContext, CUDA_SUCCESS; };
  driver.default_pool = [](CUmemoryPool*, CUdevice) { return CUDA_ERROR_NOT_SUPPORTED; };
  driver.stream_create = [](CUstream* made, unsigned) {
    *made = reinterpret_cast<CUstream>(0x9000);
    return CUDA_SUCCESS;
  };
  driver.copy_to_host_async = [](void*, CUdeviceptr, std::size_t, CUstream) { return CUDA_SUCCESS; };
  driver.copy_to_device_async = [](CUdeviceptr, const void*, std::size_t, CUstream) { return CUDA_SUCCESS; };
  driver.event_elapsed = [](float* milliseconds, CUevent, CUevent) {
    *milliseconds = g_elapsed;
    return g_elapsed == 0 ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
  };
  return driver;
}

inline constexpr Interposer kInterposer{nullptr, 0, nullptr, nullptr, functions_with_context};

class PlansOfTheArena : public testing::Test, protected ArenaCalls {
 protected:
  static constexpr std::uint64_t kBlock = 2 * kChunk;

  static void SetUpTestSuite() { begin_without_planner(kInterposer, "off"); }
  void SetUp() override {
    note_context_change();
    g_fake = &fake;
    forget_arena_after_fork();  // each test begins anew
  }

  // An iteration of one block.
  static void iterate() {
    const CUdeviceptr block = allocate(kBlock);
    ASSERT_NE(block, 0u);
    free(block);
  }

  static std::uint64_t number_of(CUdeviceptr block) {
    ArenaLock lock;
    return arena()->blocks.find(block)->number;
  }
  // Until it is armed.
  static void adopt(const Plan& plan) {
    ArenaLock lock;
    arena_adopt(*arena(), plan);
    while (arena()->phase == Arena::Phase::kBuilding) arena_build(*arena());
  }
  // Of these iterations; `stays` are blocks that live through all of them.
  static void send(std::uint64_t generation, std::uint64_t slab_bytes, std::vector<CUdeviceptr> stays = {}) {
    auto plan = std::make_unique<Plan>();
    plan->generation = generation;
    plan->mallocs.push_back({kBlock, 0, 0, 1, 0, 1});
    plan->places.push_back({0, kBlock});
    plan->slab_bytes = slab_bytes;
    plan->peak_load = kBlock;
    plan->operations = 2;
    plan->lanes.push_back({current_lane(), 1, std::span<const shm::PlannedMalloc>(plan->mallocs)});
    for (const CUdeviceptr block : stays) plan->persistent.push_back(number_of(block));
    adopt(*plan);
  }
  // The block begins in what `weights`, which stays, leaves of its second chunk.
  static void send_keeping(std::uint64_t generation, CUdeviceptr weights, std::uint64_t offset = 0) {
    Plan plan;
    plan.generation = generation;
    plan.mallocs.push_back({kBlock, 0, 0, 1, 0, 1});
    plan.places.push_back({offset + kChunk / 2, offset + kChunk / 2 + kBlock});
    plan.slab_bytes = offset + kChunk + kBlock;
    plan.peak_load = kBlock;
    plan.operations = 2;
    plan.chunk_bytes = kChunk;
    plan.chunks.push_back({weights + kChunk, offset});
    plan.lanes.push_back({current_lane(), 1, std::span<const shm::PlannedMalloc>(plan.mallocs)});
    plan.persistent.push_back(number_of(weights));
    adopt(plan);
  }
  // Weights of which the slab of plan 1 keeps a chunk.
  static CUdeviceptr weights_in_slab() {
    const CUdeviceptr weights = allocate(kChunk * 5 / 4 - 512);
    iterate();
    send_keeping(1, weights);
    for (int i = 0; i < 3; ++i) iterate();
    EXPECT_NE(arena()->plan, nullptr);
    EXPECT_FALSE(arena()->slab.keeps_only({})) << "it keeps one";
    return weights;
  }
  // The same with another block behind every `loops` of that one: the iteration that `send` is a loop of.
  static constexpr std::uint64_t kOther = 3 * kChunk;
  static void iterate_outer(int loops, int times = 1) {
    for (int i = 0; i < times; ++i) {
      for (int j = 0; j < loops; ++j) iterate();
      free(allocate(kOther));
    }
  }
  // Of that one and the other, which has no place.
  static void send_without_place(std::uint64_t generation, std::uint64_t slab_bytes) {
    Plan plan;
    plan.generation = generation;
    plan.mallocs = {{kBlock, 0, 0, 1, 0, 1}, {kOther, 0, 0, 0, 2, 3}};
    plan.places = {{0, kBlock}};
    plan.slab_bytes = slab_bytes;
    plan.peak_load = kBlock;
    plan.operations = 4;
    plan.lanes.push_back({current_lane(), 1, std::span<const shm::PlannedMalloc>(plan.mallocs)});
    adopt(plan);
  }
  static void send_outer(std::uint64_t generation, int loops, std::uint64_t slab_bytes) {
    auto plan = std::make_unique<Plan>();
    plan->generation = generation;
    for (int i = 0; i < loops; ++i)
      plan->mallocs.push_back({kBlock, 0, 0, 1, static_cast<std::uint32_t>(2 * i), 2u * i + 1});
    plan->mallocs.push_back({kOther, 0, 1, 1, static_cast<std::uint32_t>(2 * loops), 2u * loops + 1});
    plan->places.push_back({0, kBlock});
    plan->places.push_back({kBlock, kBlock + kOther});
    plan->slab_bytes = slab_bytes;
    plan->peak_load = kOther;
    plan->operations = 2 * (static_cast<std::uint64_t>(loops) + 1);
    plan->lanes.push_back({current_lane(), 1, std::span<const shm::PlannedMalloc>(plan->mallocs)});
    adopt(*plan);
  }
  static shm::PlanStatus status() {
    shm::Status status;
    read_arena(&status);
    return *status.plan;
  }
  static std::uint64_t chunks_peak() { return arena()->chunks.counts().peak_bytes; }
  std::uint64_t held() const { return fake.handles.size() * kChunk; }

  FakeDriver fake;
};

}  // namespace memopt::agent
