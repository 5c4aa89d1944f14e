#include "agent/order/stream_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

#include "tests/agent/order/fake_streams.h"

namespace memopt::agent {
namespace {

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

// The host is always further ahead of the device than the events reach back that are kept.
TEST_F(StreamTableTest, WhatIsAskedForAgainIsSeenToBeOver) {
  constexpr std::uint64_t kAhead = 100;
  work(stream(2));
  const Release asked = release_of(work(stream(1)));
  bool over = false;
  for (std::uint64_t at = 2; at < 6 * kAhead && !over; ++at) {
    Release release = release_of(work(stream(1)));
    table_.record_events(lock_, release);
    if (at > kAhead) finish(stream(1), at - kAhead);
    if (at % kAhead == 0) over = table_.is_over(asked, true);
    if (over) {
      EXPECT_GE(fake_.finished[stream(1)], asked.uses[0].position);
    }
  }
  EXPECT_TRUE(over);
}

// Copies back, as swaps make them: each is waited for by what touches its block, much later.
TEST_F(StreamTableTest, AWaitIsForNoMoreThanWasQueuedHoweverFarTheHostIsAhead) {
  constexpr int kAhead = 500;
  work(stream(1));
  std::vector<Release> copies;
  for (int i = 0; i < kAhead; ++i) {
    copies.push_back(release_of(work(stream(2))));
    table_.record_events(lock_, copies.back());
  }
  const int records = fake_.records;
  for (const Release& copy : copies) {
    table_.wait(lock_, work(stream(1)).slot, copy);
    EXPECT_EQ(fake_.behind[stream(1)][stream(2)], copy.uses[0].position);
  }
  EXPECT_EQ(fake_.records, records);
  EXPECT_EQ(fake_.host_waits, 0);
}

// No stream is ever idle.
TEST_F(StreamTableTest, ManyUsesAreOverThoughOthersFollow) {
  constexpr std::uintptr_t kStreams = 6;
  constexpr std::uint64_t kAhead = 3;
  const auto each = [&](auto&& does) {
    for (std::uintptr_t i = 1; i <= kStreams; ++i) does(stream(i));
  };
  Release asked;
  each([&](CUstream on) { asked.add(work(on)); });
  ASSERT_TRUE(asked.everything());
  bool over = false;
  for (int step = 0; step < 10 && !over; ++step) {
    Release younger;
    each([&](CUstream on) { younger.add(work(on)); });
    over = table_.is_over(asked, true);
    EXPECT_TRUE(!over || fake_.finished[stream(kStreams)] >= 1);
    table_.record_wanted(lock_);
    EXPECT_FALSE(table_.is_over(younger, true)) << "what was before it is over, not this";
    each([&](CUstream on) { finish(on, fake_.queued[on] - std::min(kAhead, fake_.queued[on])); });
  }
  EXPECT_TRUE(over);
  EXPECT_EQ(fake_.host_waits, 0);
}

// Of any number of streams, asked for at any time.
class ReleaseModel : public StreamTableTest, public testing::WithParamInterface<unsigned> {};

TEST_P(ReleaseModel, IsOverWhenItsUsesAreAndNotBefore) {
  constexpr std::uint64_t kMostAhead = 6;
  constexpr int kMostAsks = 200;  // of one release, with as much work of others between them
  std::mt19937 random(GetParam());
  struct Asked {
    Release release;
    std::vector<std::pair<CUstream, std::uint64_t>> uses;
    int asks = 0;
  };
  std::vector<Asked> all;
  int seen = 0;
  for (int step = 0; step < 6000; ++step) {
    if (all.size() < 8) {
      Asked made;
      for (auto i = random() % 9; i-- > 0;) {
        const CUstream on = stream(1 + random() % 7);
        made.release.add(work(on));
        made.uses.emplace_back(on, fake_.queued[on]);
      }
      // As where neighbours are put together.
      if (!all.empty() && random() % 4 == 0) {
        const Asked& other = all[random() % all.size()];
        made.release.add(other.release);
        made.uses.insert(made.uses.end(), other.uses.begin(), other.uses.end());
      }
      all.push_back(std::move(made));
    }
    const CUstream on = stream(1 + random() % 7);
    work(on);
    if (fake_.queued[on] > kMostAhead) finish(on, fake_.queued[on] - random() % kMostAhead);
    const std::size_t which = random() % all.size();
    Asked& asked = all[which];
    if (table_.is_over(asked.release, random() % 4 != 0)) {
      for (const auto& [used, position] : asked.uses) ASSERT_GE(fake_.finished[used], position) << "step " << step;
      seen += asked.release.everything();
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(which));
    } else {
      ASSERT_LT(++asked.asks, kMostAsks) << "step " << step;
    }
    if (random() % 2 == 0) table_.record_wanted(lock_);
  }
  EXPECT_GT(seen, 50);
}
INSTANTIATE_TEST_SUITE_P(Seeds, ReleaseModel, testing::Range(1u, 9u));

// Events that the device is behind are used again.
TEST_F(StreamTableTest, EventsAreNoMoreThanTheHostIsAhead) {
  work(stream(2));
  for (std::uint64_t at = 1; at < 20'000; ++at) {
    Release release = release_of(work(stream(1)));
    table_.record_events(lock_, release);
    finish(stream(1), at < 100 ? 0 : at - 100);
  }
  EXPECT_LE(fake_.made, 300u);
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
  table_.host_visible(use, false);
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

// Natively an allocation in the order of a stream is work there, which the legacy stream orders. Here an event is.
class StreamTableOrders : public StreamTableTest {
 protected:
  void SetUp() override {
    StreamTableTest::SetUp();
    driver_.stream_flags = [](CUstream of, unsigned int* flags) {
      *flags = of == stream(9) ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT;
      return CUDA_SUCCESS;
    };
  }
  // How many events it leaves.
  int allocate(CUstream on) {
    const int before = fake_.records;
    const StreamUse use = table_.begin({on, false});
    queued();
    table_.order_by_legacy(lock_, use);
    return fake_.records - before;
  }
};

TEST_F(StreamTableOrders, AnAllocationOnABlockingStreamIsBehindTheLegacyOne) {
  EXPECT_EQ(allocate(stream(1)), 0) << "there is nothing else";
  work(CU_STREAM_LEGACY);
  EXPECT_EQ(allocate(stream(9)), 0) << "not ordered by the legacy stream";
  EXPECT_EQ(allocate(stream(1)), 1);
  EXPECT_EQ(allocate(stream(1)), 0) << "behind it already";
  EXPECT_EQ(allocate(stream(2)), 1) << "another stream";
  work(CU_STREAM_LEGACY);
  const HostWait wait = table_.begin_wait_for_context();
  synchronize();
  table_.completed(wait);
  EXPECT_EQ(allocate(stream(1)), 0) << "all is over";
}

TEST_F(StreamTableOrders, EventsAndWaitsOnTheLegacyStreamOrderToo) {
  const CUevent event = reinterpret_cast<CUevent>(0x42);
  work(stream(9));
  EXPECT_EQ(allocate(stream(1)), 0);
  table_.event_recorded(table_.begin_event_record(event, {stream(9), false}), true);
  EXPECT_EQ(allocate(stream(1)), 0);
  table_.event_waited(table_.begin_event_wait({CU_STREAM_LEGACY, false}, event));
  EXPECT_EQ(allocate(stream(1)), 1) << "the legacy stream is behind stream 9, and what follows here behind both";
  EXPECT_EQ(allocate(stream(1)), 0);
  table_.event_recorded(table_.begin_event_record(event, {CU_STREAM_LEGACY, false}), true);
  EXPECT_EQ(allocate(stream(1)), 1);
}

TEST_F(StreamTableOrders, WhatIsOnlyAnnouncedOnTheLegacyStreamIsNotOrderedYet) {
  work(stream(1));
  Announced announced(*this, CU_STREAM_LEGACY);
  EXPECT_EQ(allocate(stream(1)), 1);
  announced.queue();
  EXPECT_EQ(allocate(stream(1)), 1) << "queued behind the event of before";
  EXPECT_EQ(allocate(stream(1)), 0);
}

TEST_F(StreamTableOrders, AnAllocationOnTheLegacyStreamIsBehindBlockingOnes) {
  work(stream(1));
  EXPECT_EQ(allocate(CU_STREAM_LEGACY), 1);
}

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
  std::atomic<bool> begun = false, destroyed = false;
  fake_.others_lock = true;
  fake_.meanwhile = [&] {
    other = std::thread([&] {
      ArenaLock lock;
      begun = true;
      table_.destroyed(lock, stream(1));
      destroyed = true;
    });
    while (!begun) std::this_thread::yield();
    // It does not wait for ever, so not for long: this thread may be held up meanwhile.
    for (int i = 0; i < 100 && !destroyed; ++i) std::this_thread::yield();
    EXPECT_FALSE(destroyed);
  };
  table_.record_events(lock_, release);
  {
    const Unlocked unlocked(lock_);
    other.join();
  }
  EXPECT_TRUE(destroyed);
}

// An event of ours would be a part of the capture, and a stream that waits for it, too.
TEST_F(StreamTableTest, ACaptureDoesNotBeginUnderARecordOnItsStream) {
  work(stream(2));
  Release release = release_of(work(stream(1)));
  std::thread other;
  std::atomic<bool> begun = false, may_begin = false;
  fake_.others_lock = true;
  fake_.meanwhile = [&] {
    other = std::thread([&] {
      ArenaLock lock;
      begun = true;
      table_.capture_begins(lock, stream(1));
      may_begin = true;
    });
    while (!begun) std::this_thread::yield();
    for (int i = 0; i < 100 && !may_begin; ++i) std::this_thread::yield();
    EXPECT_FALSE(may_begin);
  };
  table_.record_events(lock_, release);
  {
    const Unlocked unlocked(lock_);
    other.join();
  }
  EXPECT_TRUE(may_begin);
  const auto records = fake_.records;
  Release later = release_of(work(stream(1)));
  table_.record_events(lock_, later);
  EXPECT_EQ(fake_.records, records) << "nothing is recorded on it from then on";
}

// The driver refuses a capture under which the context is waited for.
TEST_F(StreamTableTest, NoWaitForTheContextUnderACapture) {
  const StreamUse before = work(stream(1));
  table_.capture_begins(lock_, stream(1));
  const StreamUse captured = table_.begin({stream(1), false});
  work(stream(2));
  EXPECT_EQ(table_.finish(lock_, release_of(captured)), CUDA_SUCCESS);
  EXPECT_GE(fake_.finished[stream(1)], fake_.queued[stream(1)]) << "what was queued before is over";
  table_.wait(lock_, table_.slot_of({stream(2), false}), release_of(before));
  EXPECT_EQ(fake_.context_waits, 0u);
  // What follows the capture is queued again.
  table_.capture_ended(stream(1));
  const StreamUse later = work(stream(1));
  EXPECT_EQ(table_.finish(lock_, release_of(later)), CUDA_SUCCESS);
  EXPECT_GE(fake_.finished[stream(1)], fake_.queued[stream(1)]);
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
