#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <thread>

#include "agent/order/stream_table.h"
#include "tests/agent/order/fake_streams.h"

namespace memopt::agent {
namespace {

TEST_F(StreamTableTest, WorkBehindAFreeIsBehindWorkBeforeItOnAllStreams) {
  work(stream(1));
  work(stream(2));
  free_now();
  work(stream(1));
  order(stream(3));
  EXPECT_EQ(fake_.behind[stream(3)][stream(1)], 1u) << "and not behind what came after the free";
  EXPECT_EQ(fake_.behind[stream(3)][stream(2)], 1u);
  const int before = fake_.waits;
  order(stream(3));
  EXPECT_EQ(fake_.waits, before) << "once is enough";
  EXPECT_EQ(fake_.host_waits, 0);
}

// A stream of ours stands for all of them: what a free costs does not grow with the number of streams.
TEST_F(StreamTableTest, ManyStreamsAreFolded) {
  constexpr std::uintptr_t kMany = 100;
  for (std::uintptr_t i = 1; i <= kMany; ++i) work(stream(i));
  free_now();
  for (std::uintptr_t i = 1; i <= kMany; ++i) order(stream(i));
  for (std::uintptr_t i = 1; i <= kMany; ++i) {
    for (std::uintptr_t k = 1; k <= kMany; ++k) ASSERT_TRUE(is_behind(stream(i), stream(k), 1)) << i << ", " << k;
  }
  EXPECT_LE(fake_.waits, 2 * static_cast<int>(kMany));
  EXPECT_EQ(fake_.host_waits, 0);
  // What has been folded is not looked at again.
  free_now();
  work(stream(1));
  const int waits = fake_.waits, records = fake_.records;
  free_now();
  order(stream(2));
  EXPECT_LE(fake_.waits - waits, 3);
  EXPECT_LE(fake_.records - records, 3);
  EXPECT_TRUE(is_behind(stream(2), stream(1), 3));
}

TEST_F(StreamTableTest, WithoutAStreamOfOursTheHostWaits) {
  driver_.stream_create = [](CUstream*, unsigned int) { return CUDA_ERROR_OUT_OF_MEMORY; };
  for (std::uintptr_t i = 1; i <= 10; ++i) work(stream(i));
  free_now();
  order(stream(11));
  for (std::uintptr_t i = 1; i <= 10; ++i) EXPECT_TRUE(is_behind(stream(11), stream(i), 1));
  EXPECT_EQ(fake_.host_waits, 1);
}

TEST_F(StreamTableTest, WithOneStreamAFreeCostsNoCall) {
  for (int i = 0; i < 10; ++i) {
    order(stream(1));
    free_now();
  }
  EXPECT_EQ(fake_.records + fake_.waits + fake_.host_waits, 0);
}

TEST_F(StreamTableTest, AFreeWithOneStreamIsNoteEnoughForWhatComesLater) {
  const StreamUse use = work(stream(1));
  Release uses;
  ASSERT_TRUE(table_.free_at_once(&uses));
  ASSERT_EQ(uses.count, 1u);
  EXPECT_EQ(uses.uses[0].position, use.position);
  EXPECT_TRUE(table_.is_behind_free({stream(1), false}));
  order(stream(2));
  EXPECT_TRUE(is_behind(stream(2), stream(1), 1));
  EXPECT_FALSE(table_.free_at_once(&uses)) << "there are two by now";
}

// With so many threads at it, one call that waits is less than an event and a wait for each.
TEST_F(StreamTableTest, FreesOfManyThreadsWait) {
  const auto work_on_both = [&] {
    work(stream(1));
    work(stream(2));
  };
  // Each starts the next one and lives longer.
  std::function<void(int)> free_in_threads = [&](int threads) {
    EXPECT_EQ(fake_.host_waits, 0);
    work_on_both();
    const int calls = fake_.waits + fake_.records;
    free_now();
    if (threads > 1) {
      std::thread([&] { free_in_threads(threads - 1); }).join();
      return;
    }
    EXPECT_EQ(fake_.host_waits, 1);
    order(stream(3));
    EXPECT_TRUE(is_behind(stream(3), stream(1), 5));
    EXPECT_TRUE(is_behind(stream(3), stream(2), 5));
    EXPECT_EQ(fake_.waits + fake_.records, calls) << "what is over needs no order";
  };
  std::thread([&] { free_in_threads(5); }).join();
  // One thread alone again, for long enough.
  for (int i = 0; i < 600; ++i) free_now();
  const int waits = fake_.host_waits;
  work_on_both();
  free_now();
  EXPECT_EQ(fake_.host_waits, waits);
}

TEST_F(StreamTableTest, ABarrierHoldsForTheStreamWhenTheWaitIsThereNotBefore) {
  work(stream(1));
  work(stream(2));
  free_now();
  UseSet needs, others;
  EXPECT_FALSE(table_.add_barrier_needs(table_.slot_of({stream(2), false}), &needs));
  // Another thread, on the same stream, before this one has made it wait.
  EXPECT_FALSE(table_.add_barrier_needs(table_.slot_of({stream(2), false}), &others));
  EXPECT_FALSE(others.empty());
}

// A host function is waited for by the free, and may be waiting for what another thread does meanwhile.
TEST_F(StreamTableTest, WhatIsQueuedWhileAFreeWaitsIsNotBehindIt) {
  work(stream(1));
  work(stream(2));
  Release uses;
  const StreamTable::Free free = table_.begin_free(&uses);
  UseSet needs;
  EXPECT_TRUE(table_.add_barrier_needs(table_.slot_of({stream(2), false}), &needs));
  table_.end_free(free, uses);
  EXPECT_FALSE(table_.add_barrier_needs(table_.slot_of({stream(2), false}), &needs));
}

// What it frees may be unmapped when its release is over, which no operation then stands in the way of.
TEST_F(StreamTableTest, AFreeInTheOrderOfAStreamIsBehindPlainFreesBeforeIt) {
  work(stream(1));
  work(stream(2));
  free_now();
  Release uses = table_.release_in_order(work(stream(2)));
  table_.record_events(lock_, uses);
  finish(stream(2), 2);
  EXPECT_FALSE(table_.is_over(uses, true)) << "the first stream still works on the bytes";
  finish(stream(1), 1);
  EXPECT_TRUE(table_.is_over(uses, true));
  order(stream(2));
  EXPECT_EQ(table_.release_in_order(work(stream(2))).count, 1u) << "it waits for them itself by now";
}

TEST_F(StreamTableTest, WhatIsAskedForIsKnownToBeBehindAFree) {
  const CUevent early = reinterpret_cast<CUevent>(0x42), late = reinterpret_cast<CUevent>(0x43);
  work(stream(1));
  table_.event_recorded(table_.begin_event_record(early, {stream(1), false}), true);
  EXPECT_FALSE(table_.is_behind_free(early));
  EXPECT_FALSE(table_.is_behind_free({stream(1), false}));
  Release uses;
  const StreamTable::Free free = table_.begin_free(&uses);
  table_.event_recorded(table_.begin_event_record(late, {stream(1), false}), true);
  table_.end_free(free, uses);
  EXPECT_TRUE(table_.is_behind_free(early));
  EXPECT_FALSE(table_.is_behind_free(late)) << "it was recorded while the free had not returned";
  EXPECT_TRUE(table_.is_behind_free({stream(1), false}));
  work(stream(1));
  EXPECT_FALSE(table_.is_behind_free({stream(1), false}));
}

TEST_F(StreamTableTest, VisibleWorkThatCantBeWaitedForStaysVisible) {
  table_.host_visible(work(stream(1)), false);
  fake_.refuse_waits = true;
  EXPECT_NE(table_.finish_host_visible(lock_), CUDA_SUCCESS);
  fake_.refuse_waits = false;
  EXPECT_TRUE(table_.has_visible());
  EXPECT_EQ(table_.finish_host_visible(lock_), CUDA_SUCCESS);
  EXPECT_GE(fake_.finished[stream(1)], 1u);
  EXPECT_FALSE(table_.has_visible());
}

// The releases of a whole window, put together: which uses are in it is not known any more.
TEST_F(StreamTableTest, ManyUsesAreOverWhenEverythingIs) {
  Release all;
  for (std::uintptr_t i = 1; i <= 5; ++i) all.add(work(stream(i)));
  ASSERT_TRUE(all.everything());
  for (std::uintptr_t i = 1; i <= 4; ++i) finish(stream(i), 1);
  for (int ask = 0; ask < 10; ++ask) {
    EXPECT_FALSE(table_.is_over(all, true));
    table_.record_wanted(lock_);
  }
  finish(stream(5), 1);
  EXPECT_TRUE(table_.is_over(all, true));
}

}  // namespace
}  // namespace memopt::agent
