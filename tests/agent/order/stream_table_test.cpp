#include "agent/order/stream_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace memopt::agent {
namespace {

// A driver of streams and events only: keeps, for each stream, what is queued, and knows what each wait implies.
struct FakeDriver {
  struct Recorded {
    CUstream stream;
    std::uint64_t position;  // operations queued on the stream before it
    std::map<CUstream, std::uint64_t> behind;
  };
  std::map<CUstream, std::uint64_t> queued;                      // operations on each stream
  std::map<CUstream, std::map<CUstream, std::uint64_t>> behind;  // who waits for how much of whom
  std::map<CUevent, Recorded> events;
  std::map<CUstream, std::uint64_t> finished;
  std::set<CUstream> gone;
  std::uint64_t made = 0;
  int host_waits = 0;
  int waits = 0;
  int records = 0;
  bool refuse_records = false;
  bool refuse_waits = false;
  std::function<void()> meanwhile;  // in the midst of a driver call: what another thread does

  void run_meanwhile() {
    if (meanwhile) std::exchange(meanwhile, nullptr)();
  }
};
FakeDriver* g_fake = nullptr;
const CUstream kFold = reinterpret_cast<CUstream>(0x7);

CUresult event_create(CUevent* event, unsigned int) {
  *event = reinterpret_cast<CUevent>(0x1000 + 16 * ++g_fake->made);
  return CUDA_SUCCESS;
}
// With the lock held, another thread could not do anything.
void expect_unlocked() { EXPECT_EQ(arena_lock_word.word, 0) << "the driver may wait, and the lock is held"; }
CUresult event_record(CUevent event, CUstream stream) {
  expect_unlocked();
  g_fake->run_meanwhile();
  if (g_fake->refuse_records || g_fake->gone.contains(stream)) return CUDA_ERROR_INVALID_HANDLE;
  ++g_fake->records;
  g_fake->events[event] = {stream, g_fake->queued[stream], g_fake->behind[stream]};
  return CUDA_SUCCESS;
}
CUresult event_query(CUevent event) {
  const auto& recorded = g_fake->events.at(event);
  bool over = g_fake->finished[recorded.stream] >= recorded.position;
  for (const auto& [other, position] : recorded.behind) over = over && g_fake->finished[other] >= position;
  return over ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
void finish(CUstream stream, std::uint64_t position) {
  g_fake->finished[stream] = std::max(g_fake->finished[stream], position);
}
CUresult event_synchronize(CUevent event) {
  expect_unlocked();
  ++g_fake->host_waits;
  if (g_fake->refuse_waits) return CUDA_ERROR_UNKNOWN;
  finish(g_fake->events.at(event).stream, g_fake->events.at(event).position);
  return CUDA_SUCCESS;
}
CUresult stream_wait_event(CUstream stream, CUevent event, unsigned int) {
  expect_unlocked();
  ++g_fake->waits;
  const auto& recorded = g_fake->events.at(event);
  auto& position = g_fake->behind[stream][recorded.stream];
  position = std::max(position, recorded.position);
  // Behind what the event's stream had been made to wait for by then, too.
  for (const auto& [other, reached] : recorded.behind) {
    auto& further = g_fake->behind[stream][other];
    further = std::max(further, reached);
  }
  return CUDA_SUCCESS;
}
CUresult stream_synchronize(CUstream stream) {
  expect_unlocked();
  ++g_fake->host_waits;
  if (g_fake->refuse_waits) return CUDA_ERROR_UNKNOWN;
  finish(stream, g_fake->queued[stream]);
  return CUDA_SUCCESS;
}
CUresult synchronize_context() {
  expect_unlocked();
  ++g_fake->host_waits;
  if (g_fake->refuse_waits) return CUDA_ERROR_UNKNOWN;
  for (const auto& [stream, count] : g_fake->queued) finish(stream, count);
  return CUDA_SUCCESS;
}
CUresult is_capturing(CUstream, CUstreamCaptureStatus* status) {
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}

class StreamTableTest : public testing::Test {
 protected:
  void SetUp() override {
    g_fake = &fake_;
    driver_.event_create = event_create;
    driver_.stream_create = [](CUstream* made, unsigned int) {
      *made = kFold;
      return CUDA_SUCCESS;
    };
    driver_.event_destroy = [](CUevent) { return CUDA_SUCCESS; };
    driver_.event_record = event_record;
    driver_.event_query = event_query;
    driver_.event_synchronize = event_synchronize;
    driver_.stream_wait_event = stream_wait_event;
    driver_.stream_synchronize = stream_synchronize;
    driver_.synchronize_context = synchronize_context;
    driver_.stream_is_capturing = is_capturing;
  }
  static CUstream stream(std::uintptr_t number) { return reinterpret_cast<CUstream>(0x100 * number); }
  StreamUse work(CUstream on) {
    const StreamUse use = table_.begin({on, false});
    ++fake_.queued[on];
    queued();
    return use;
  }
  // An operation that another thread has announced, and queues when it is told to.
  class Announced {
   public:
    Announced(StreamTableTest& test, CUstream on) : test_(test), on_(on) {
      std::atomic<bool> announced = false;
      thread_ = std::thread([&] {
        use_ = test_.table_.begin({on_, false});
        announced = true;
        while (!queue_) std::this_thread::yield();
        queued();
        done_ = true;
      });
      while (!announced) std::this_thread::yield();
    }
    ~Announced() {
      queue_ = true;
      thread_.join();
    }
    void queue() {
      ++test_.fake_.queued[on_];
      queue_ = true;
      while (!done_) std::this_thread::yield();
    }
    StreamUse use() const { return use_; }

   private:
    StreamTableTest& test_;
    const CUstream on_;
    StreamUse use_;
    std::atomic<bool> queue_ = false;
    std::atomic<bool> done_ = false;
    std::thread thread_;
  };

  static Release release_of(StreamUse use) {
    Release release;
    release.add(use);
    return release;
  }
  // As the arena does it.
  void free_now() {
    Release uses;
    const StreamTable::Free free = table_.begin_free(&uses);
    if (free.needs_fold) {
      table_.fold(lock_, free, &uses);
    } else {
      table_.record_events(lock_, uses);
    }
    table_.end_free(free, uses);
  }
  void order(CUstream on) {
    UseSet needs;
    const StreamUse use = table_.begin({on, false});
    table_.add_barrier_needs(static_cast<StreamSlot>(use.slot), &needs);
    table_.wait(lock_, static_cast<StreamSlot>(use.slot), needs);
    ++fake_.queued[on];
    queued();
  }
  void synchronize() {
    for (const auto& [on, count] : fake_.queued) finish(on, count);
  }
  // Is what is queued on `later` from now on behind the first `position` operations of `earlier`?
  bool is_behind(CUstream later, CUstream earlier, std::uint64_t position) {
    return later == earlier || fake_.finished[earlier] >= position || fake_.behind[later][earlier] >= position;
  }

  FakeDriver fake_;
  Driver driver_;
  StreamTable table_{driver_};
  ArenaLock lock_;
};

TEST_F(StreamTableTest, OneStreamNeedsNothing) {
  for (int i = 0; i < 10; ++i) {
    const StreamUse use = work(stream(1));
    Release release = release_of(use);
    table_.record_events(lock_, release);
    table_.wait(lock_, use.slot, release);
  }
  EXPECT_EQ(fake_.records, 0);
  EXPECT_EQ(fake_.waits, 0);
  EXPECT_EQ(fake_.host_waits, 0);
}

TEST_F(StreamTableTest, UsesFromBeforeTheSecondStreamAreWaitedForToo) {
  const StreamUse early = work(stream(1));
  Release release = release_of(early);
  table_.record_events(lock_, release);
  const StreamUse other = work(stream(2));
  table_.wait(lock_, other.slot, release);
  EXPECT_TRUE(is_behind(stream(2), stream(1), 1));
  EXPECT_EQ(fake_.host_waits, 0);
}

TEST_F(StreamTableTest, WaitsOnlyForWhatWasQueuedAtTheFree) {
  work(stream(2));
  const StreamUse use = work(stream(1));
  Release release = release_of(use);
  table_.record_events(lock_, release);
  work(stream(1));
  const StreamUse other = work(stream(2));
  table_.wait(lock_, other.slot, release);
  EXPECT_EQ(fake_.behind[stream(2)][stream(1)], 1u) << "the second operation was queued after the free";
}

TEST_F(StreamTableTest, WaitsOnceForWhatItIsBehindAlready) {
  work(stream(2));
  Release release = release_of(work(stream(1)));
  table_.record_events(lock_, release);
  for (int i = 0; i < 3; ++i) table_.wait(lock_, table_.slot_of({stream(2), false}), release);
  EXPECT_EQ(fake_.waits, 1);
}

TEST_F(StreamTableTest, WhatTheHostHasSeenCompleteNeedsNoEvent) {
  work(stream(2));
  Release release = release_of(work(stream(1)));
  const HostWait wait = table_.begin_wait_for_stream({stream(1), false});
  finish(stream(1), 1);
  table_.completed(wait);
  const int before = fake_.records;
  table_.record_events(lock_, release);
  table_.wait(lock_, table_.slot_of({stream(2), false}), release);
  EXPECT_EQ(fake_.records, before);
  EXPECT_EQ(fake_.waits, 0);
  EXPECT_TRUE(table_.is_over(release, false));
}

TEST_F(StreamTableTest, AStreamThatEndsLeavesAnEvent) {
  work(stream(2));
  Release release = release_of(work(stream(1)));
  table_.destroyed(lock_, stream(1));
  fake_.gone.insert(stream(1));
  table_.wait(lock_, table_.slot_of({stream(2), false}), release);
  EXPECT_TRUE(is_behind(stream(2), stream(1), 1));
}

TEST_F(StreamTableTest, TheNextStreamIsNotTakenForOneThatEnded) {
  work(stream(2));
  const Release release = release_of(work(stream(1)));
  table_.destroyed(lock_, stream(1));
  fake_.gone.insert(stream(1));
  const StreamUse fresh = work(stream(3));
  const HostWait wait = table_.begin_wait_for_stream({stream(3), false});
  finish(stream(3), 1);
  table_.completed(wait);
  EXPECT_FALSE(table_.is_over(release, true)) << "stream 3 is through, stream 1 is not";
  table_.wait(lock_, fresh.slot, release);
  EXPECT_TRUE(is_behind(stream(3), stream(1), 1));
}

TEST_F(StreamTableTest, WithoutAnEventTheHostWaits) {
  work(stream(2));
  Release release = release_of(work(stream(1)));
  fake_.refuse_records = true;
  table_.record_events(lock_, release);
  EXPECT_TRUE(release.unordered);
  table_.wait(lock_, table_.slot_of({stream(2), false}), release);
  EXPECT_GE(fake_.finished[stream(1)], 1u);
}

TEST_F(StreamTableTest, HostVisibleWorkIsWaitedForAtAFree) {
  const StreamUse use = work(stream(1));
  table_.host_visible(use);
  table_.finish_host_visible(lock_);
  EXPECT_EQ(fake_.finished[stream(1)], 1u);
  const int before = fake_.host_waits;
  table_.finish_host_visible(lock_);
  EXPECT_EQ(fake_.host_waits, before) << "once is enough";
}

TEST_F(StreamTableTest, WaitsOfTheProgramCountToo) {
  const CUevent event = reinterpret_cast<CUevent>(0x42);
  work(stream(2));
  Release release = release_of(work(stream(1)));
  table_.event_recorded(table_.begin_event_record(event, {stream(1), false}), true);
  table_.event_waited(table_.begin_event_wait({stream(2), false}, event));
  table_.wait(lock_, table_.slot_of({stream(2), false}), release);
  EXPECT_EQ(fake_.waits, 0);
}

// ---- What is announced is not queued.

TEST_F(StreamTableTest, AWaitOfTheHostDoesNotCoverWhatTheWaitingThreadHasOnlyAnnounced) {
  work(stream(2));
  const StreamUse mine = table_.begin({stream(1), false});
  const HostWait wait = table_.begin_wait_for_context();
  synchronize();
  table_.completed(wait);
  EXPECT_FALSE(table_.is_over(release_of(mine), false)) << "the operation is not queued yet";
  queued();
  ++fake_.queued[stream(1)];
  Release release = release_of(mine);
  table_.record_events(lock_, release);
  table_.wait(lock_, table_.slot_of({stream(2), false}), release);
  EXPECT_TRUE(is_behind(stream(2), stream(1), 1));
}

// Two threads on one stream: the later operation is queued, the earlier one not yet. No position tells that.
TEST_F(StreamTableTest, WhatIsQueuedBehindAnAnnouncedOperationIsNotLost) {
  work(stream(2));
  Announced early(*this, stream(1));
  work(stream(1));
  EXPECT_TRUE(table_.is_mixed(table_.slot_of({stream(1), false})));
  free_now();
  order(stream(2));
  EXPECT_EQ(fake_.host_waits, 0);
  EXPECT_TRUE(is_behind(stream(2), stream(1), 1)) << "the driver's count: one operation is queued";
  // The earlier one is queued now, and no event from before stands for it.
  early.queue();
  EXPECT_FALSE(table_.is_mixed(table_.slot_of({stream(1), false})));
  free_now();
  order(stream(2));
  EXPECT_TRUE(is_behind(stream(2), stream(1), 2));
}

TEST_F(StreamTableTest, AFreeInTheOrderOfAMixedStreamIsNotLostEither) {
  work(stream(2));
  Announced early(*this, stream(1));
  Release uses = release_of(work(stream(1)));
  const StreamTable::Free free = table_.mixed_free(uses);
  table_.fold(lock_, free, &uses);
  table_.wait(lock_, table_.slot_of({stream(2), false}), uses);
  EXPECT_EQ(fake_.host_waits, 0);
  EXPECT_TRUE(is_behind(stream(2), stream(1), 1));
}

TEST_F(StreamTableTest, WhatIsAnnouncedLastIsNoneOfWhatAFreeIsBehind) {
  work(stream(2));
  work(stream(1));
  Announced late(*this, stream(1));
  EXPECT_FALSE(table_.is_mixed(table_.slot_of({stream(1), false})));
  Release uses;
  EXPECT_FALSE(table_.begin_free(&uses).needs_fold);
  for (std::uint32_t i = 0; i < uses.count; ++i) EXPECT_EQ(uses.uses[i].position, 1u);
}

TEST_F(StreamTableTest, ACopyThatTheHostWaitsForIsCovered) {
  const StreamUse mine = table_.begin({stream(1), false});
  const HostWait wait = table_.begin_wait_for_own({stream(1), false});
  table_.completed(wait);
  queued();
  EXPECT_TRUE(table_.is_over(release_of(mine), false));
}

TEST_F(StreamTableTest, OneCallThatQueuesOnSeveralStreamsAnnouncesAllOfThem) {
  const StreamUse first = table_.begin({stream(1), false});
  const StreamUse second = table_.begin({stream(2), false});
  const HostWait wait = table_.begin_wait_for_context();
  table_.completed(wait);
  EXPECT_FALSE(table_.is_over(release_of(first), false));
  EXPECT_FALSE(table_.is_over(release_of(second), false));
  queued();
  table_.completed(table_.begin_wait_for_context());
  EXPECT_TRUE(table_.is_over(release_of(first), false) && table_.is_over(release_of(second), false));
}

TEST_F(StreamTableTest, WhatAnotherThreadQueuesDuringARecordIsNotCovered) {
  const CUevent event = reinterpret_cast<CUevent>(0x42);
  work(stream(2));
  work(stream(1));
  const EventRecord record = table_.begin_event_record(event, {stream(1), false});
  // The driver's call is here, and another thread's operation behind it.
  const StreamUse late = work(stream(1));
  table_.event_recorded(record, true);
  table_.event_waited(table_.begin_event_wait({stream(2), false}, event));
  Release release = release_of(late);
  table_.record_events(lock_, release);
  table_.wait(lock_, table_.slot_of({stream(2), false}), release);
  EXPECT_TRUE(is_behind(stream(2), stream(1), 2));
}

TEST_F(StreamTableTest, AnEventThatIsRecordedAnewDuringAWaitSaysNothing) {
  const CUevent event = reinterpret_cast<CUevent>(0x42);
  const StreamUse use = work(stream(1));
  work(stream(2));
  work(stream(3));
  table_.event_recorded(table_.begin_event_record(event, {stream(1), false}), true);
  const EventWait wait = table_.begin_event_wait({stream(2), false}, event);
  table_.event_recorded(table_.begin_event_record(event, {stream(3), false}), true);
  table_.event_waited(wait);
  Release release = release_of(use);
  table_.record_events(lock_, release);
  table_.wait(lock_, table_.slot_of({stream(2), false}), release);
  EXPECT_TRUE(is_behind(stream(2), stream(1), 1));
}

TEST_F(StreamTableTest, AnEventThatAGraphRecordsSaysNothing) {
  const CUevent event = reinterpret_cast<CUevent>(0x42);
  work(stream(1));
  table_.event_in_graph(event, true);
  table_.event_recorded(table_.begin_event_record(event, {stream(1), false}), true);
  EXPECT_TRUE(table_.begin_wait_for_event(event).uses.empty());
  const CUevent other = reinterpret_cast<CUevent>(0x43);
  table_.event_recorded(table_.begin_event_record(other, {stream(1), false}), true);
  EXPECT_FALSE(table_.begin_wait_for_event(other).uses.empty());
  table_.forget_events();
  EXPECT_TRUE(table_.begin_wait_for_event(other).uses.empty()) << "a graph was launched";
}

// ---- The free as a barrier.

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
  table_.host_visible(work(stream(1)));
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
  ASSERT_TRUE(all.everything);
  for (std::uintptr_t i = 1; i <= 4; ++i) finish(stream(i), 1);
  for (int ask = 0; ask < 10; ++ask) {
    EXPECT_FALSE(table_.is_over(all, true));
    table_.record_wanted(lock_);
  }
  finish(stream(5), 1);
  EXPECT_TRUE(table_.is_over(all, true));
}

// ---- Many streams and threads.

TEST_F(StreamTableTest, ThreeHundredStreamsAtOnceNeedNoWaitOfTheHost) {
  std::vector<Release> releases;
  for (std::uintptr_t i = 1; i <= 300; ++i) {
    releases.push_back(release_of(work(stream(i))));
    table_.record_events(lock_, releases.back());
  }
  for (std::uintptr_t i = 1; i <= 300; ++i) {
    const std::uintptr_t former = i % 300 + 1;
    table_.wait(lock_, table_.slot_of({stream(i), false}), releases[former - 1]);
    EXPECT_TRUE(is_behind(stream(i), stream(former), 1));
  }
  EXPECT_EQ(fake_.host_waits, 0);
}

TEST_F(StreamTableTest, SlotsOfStreamsThatEndedAreUsedAgain) {
  for (std::uintptr_t i = 1; i <= 10'000; ++i) {
    work(stream(i));
    table_.destroyed(lock_, stream(i));
    finish(stream(i), 1);
  }
  EXPECT_LT(table_.slots(), 16u);
}

TEST_F(StreamTableTest, SlotsOfThreadsThatEndedAreUsedAgain) {
  for (int i = 0; i < 10'000; ++i) {
    std::thread([&] {
      const Unlocked not_here(lock_);
      ArenaLock lock;
      table_.begin({nullptr, true});
      queued();
    }).join();
    table_.completed(table_.begin_wait_for_context());
  }
  EXPECT_LT(table_.slots(), 100u);
}

// The number of the slot is the same, the stream is not.
TEST_F(StreamTableTest, WhatIsReadyForAStreamIsNotReadyForTheNextInItsSlot) {
  const std::uint64_t before = table_.reuses();
  const StreamSlot slot = work(stream(1)).slot;
  table_.destroyed(lock_, stream(1));
  finish(stream(1), 1);
  ASSERT_EQ(table_.slot_of({stream(2), false}), slot);
  EXPECT_NE(table_.reuses(), before);
}

// A full table falls back to waiting, and recovers.
TEST_F(StreamTableTest, MoreStreamsThanSlotsWaitOnTheHost) {
  for (std::uintptr_t i = 1; i <= kMostSlots + 10; ++i) work(stream(i));
  EXPECT_TRUE(table_.is_full());
  Release release = release_of({kOverflowSlot, 1});
  table_.wait(lock_, table_.slot_of({stream(1), false}), release);
  EXPECT_EQ(fake_.host_waits, 1);
  EXPECT_FALSE(table_.is_full());
}

TEST_F(StreamTableTest, AStreamIsNotDestroyedUnderARecordOnIt) {
  work(stream(2));
  Release release = release_of(work(stream(1)));
  std::thread other;
  std::atomic<bool> destroyed = false;
  fake_.meanwhile = [&] {
    other = std::thread([&] {
      ArenaLock lock;
      table_.destroyed(lock, stream(1));
      destroyed = true;
    });
    for (int i = 0; i < 1000 && !destroyed; ++i) std::this_thread::yield();
    EXPECT_FALSE(destroyed);
  };
  table_.record_events(lock_, release);
  {
    const Unlocked unlocked(lock_);
    other.join();
  }
  EXPECT_TRUE(destroyed);
}

// Any program on any streams: whoever takes bytes is behind everybody who used them.
class StreamTableModel : public StreamTableTest, public testing::WithParamInterface<unsigned> {};

TEST_P(StreamTableModel, TakersAreBehindFormerUsers) {
  std::mt19937 random(GetParam());
  struct Bytes {
    Release release;
    struct User {
      CUstream on;
      std::uint64_t position;  // by the driver's count; a slot's goes on from one stream to the next
      StreamUse use;
    };
    std::vector<User> users;  // since they were taken
    std::vector<User> former;
    bool taken = false;
  };
  std::vector<Bytes> all(12);
  std::uintptr_t next_stream = 6;
  std::vector<CUstream> streams{stream(1), stream(2), stream(3), stream(4), stream(5)};
  for (int step = 0; step < 4000; ++step) {
    Bytes& bytes = all[random() % all.size()];
    switch (random() % 12) {
      default: {  // taken, used, or freed
        if (bytes.taken && random() % 3 == 0) {
          Release release;
          for (const auto& user : bytes.users) release.add(user.use);
          if (bytes.users.empty()) release = bytes.release;
          table_.record_events(lock_, release);
          bytes.release = release;
          if (!bytes.users.empty()) bytes.former = bytes.users;
          bytes.users.clear();
          bytes.taken = false;
          break;
        }
        bytes.taken = true;
        const CUstream on = streams[random() % streams.size()];
        table_.wait(lock_, table_.slot_of({on, false}), bytes.release);
        for (const auto& former : bytes.former) {
          ASSERT_TRUE(is_behind(on, former.on, former.position)) << "step " << step;
        }
        const StreamUse use = work(on);
        bytes.users.push_back({on, fake_.queued[on], use});
        break;
      }
      case 0: {  // the device gets on
        const CUstream on = streams[random() % streams.size()];
        finish(on, fake_.finished[on] + random() % (fake_.queued[on] - fake_.finished[on] + 1));
        break;
      }
      case 1: {  // the host waits
        const CUstream on = streams[random() % streams.size()];
        const HostWait wait = table_.begin_wait_for_stream({on, false});
        finish(on, fake_.queued[on]);
        table_.completed(wait);
        break;
      }
      case 2: {  // a stream ends, another begins; bytes in use on it are left alone
        CUstream& old = streams[random() % streams.size()];
        bool used = false;
        for (const Bytes& other : all) {
          for (const auto& user : other.users) used = used || (other.taken && user.on == old);
        }
        if (used || next_stream > 40) break;
        table_.destroyed(lock_, old);
        fake_.gone.insert(old);
        old = stream(next_stream++);
        break;
      }
    }
  }
  EXPECT_GT(fake_.waits, 50);
}
INSTANTIATE_TEST_SUITE_P(Seeds, StreamTableModel, testing::Range(1u, 13u));

}  // namespace
}  // namespace memopt::agent
