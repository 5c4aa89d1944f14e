#include "agent/order/known_streams.h"

#include <gtest/gtest.h>

#include <set>

namespace memopt::agent {
namespace {

std::set<CUstream> g_real;
int g_asked = 0;
CUresult g_without_context = CUDA_SUCCESS;

CUresult stream_flags(CUstream stream, unsigned int* flags) {
  ++g_asked;
  if (g_without_context != CUDA_SUCCESS) return g_without_context;
  *flags = 0;
  return g_real.contains(stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUstream stream(std::uintptr_t number) { return reinterpret_cast<CUstream>(0x10000 + number * 64); }

class KnownStreamsTest : public testing::Test {
 protected:
  KnownStreamsTest() {
    g_real.clear();
    g_asked = 0;
    g_without_context = CUDA_SUCCESS;
    driver_.stream_flags = stream_flags;
  }

  Driver driver_;
  KnownStreams streams_{driver_};
};

TEST_F(KnownStreamsTest, DefaultStreamsAreNotAskedFor) {
  for (const CUstream handle : {CUstream{nullptr}, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD}) {
    EXPECT_EQ(streams_.check(handle), CUDA_SUCCESS);
    streams_.destroyed(handle);
    EXPECT_EQ(streams_.check(handle), CUDA_SUCCESS);
  }
  EXPECT_EQ(g_asked, 0);
}

TEST_F(KnownStreamsTest, AStreamIsAskedForOnce) {
  g_real = {stream(1)};
  EXPECT_EQ(streams_.check(stream(1)), CUDA_SUCCESS);
  EXPECT_EQ(streams_.check(stream(1)), CUDA_SUCCESS);
  EXPECT_EQ(g_asked, 1);
  streams_.created(stream(2));
  EXPECT_EQ(streams_.check(stream(2)), CUDA_SUCCESS);
  EXPECT_EQ(g_asked, 1);
}

TEST_F(KnownStreamsTest, WhatIsNotThereIsTheDriversAnswer) {
  EXPECT_EQ(streams_.check(stream(1)), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(streams_.check(stream(1)), CUDA_ERROR_INVALID_HANDLE);
  streams_.created(stream(3));
  streams_.destroyed(stream(3));
  EXPECT_EQ(streams_.check(stream(3)), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(KnownStreamsTest, WithoutAContextNothingIsConcluded) {
  g_without_context = CUDA_ERROR_INVALID_CONTEXT;
  EXPECT_EQ(streams_.check(stream(1)), CUDA_SUCCESS);
  g_without_context = CUDA_SUCCESS;
  EXPECT_EQ(streams_.check(stream(1)), CUDA_ERROR_INVALID_HANDLE);
}

// More streams than places: each is right, whichever shares a place with which.
TEST_F(KnownStreamsTest, ManyStreams) {
  for (std::uintptr_t i = 0; i < 2000; i += 2) g_real.insert(stream(i));
  for (int round = 0; round < 2; ++round) {
    for (std::uintptr_t i = 0; i < 2000; ++i) {
      EXPECT_EQ(streams_.check(stream(i)), i % 2 == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE) << i;
    }
  }
}

}  // namespace
}  // namespace memopt::agent
