// What a program does with the arena, for tests of it.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>

#include "agent/agent.h"
#include "agent/memory/arena.h"
#include "agent/order/in_flight.h"

namespace memopt::agent {

struct ArenaCalls {
  // Before the first test of a process: plans are made by the tests.
  static void begin_without_planner(const Interposer& interposer, const char* log_level) {
    setenv("MEMOPT_PLANNER", "/nonexistent/memoptd", 1);
    setenv("MEMOPT_LOG", log_level, 1);
    setenv("MEMOPT_SYNC_PLAN", "0", 1);
    first_call(interposer, 0);
  }
  // 0: not served.
  static CUdeviceptr allocate(std::uint64_t bytes) {
    CUdeviceptr address = 0;
    return arena_allocate(&address, bytes, nullptr).handled ? address : 0;
  }
  static void free(CUdeviceptr address) { EXPECT_EQ(arena_free(address).result, CUDA_SUCCESS); }
  // Something on the stream names it.
  static void use(CUdeviceptr address, CUstream stream = reinterpret_cast<CUstream>(0x100)) {
    const std::uint64_t addresses[] = {address};
    Operation operation;
    EXPECT_TRUE(use_addresses({stream, false}, false, addresses, &operation));
    queued();
  }
};

}  // namespace memopt::agent
