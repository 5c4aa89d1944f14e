#include "agent/order/in_flight.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <future>
#include <thread>

#include "tests/agent/order/fake_streams.h"

namespace memopt::agent {
namespace {

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

// Threads that wait for room look at what others have in flight.
TEST(InFlight, WhoIsStuckIsNotWaitedFor) {
  constexpr std::uint64_t kTheirs = 7;
  std::promise<void> announced, stuck, over;
  std::promise<void> may_be_stuck, may_end;
  std::thread other([&] {
    announce_ticket(kTheirs);
    announced.set_value();
    may_be_stuck.get_future().wait();
    {
      StuckInFlight waits;
      waits.set();
      // One within it changes nothing.
      StuckInFlight().set();
      stuck.set_value();
      may_end.get_future().wait();
    }
    queued();
    over.set_value();
  });
  announced.get_future().wait();
  EXPECT_TRUE(others_are_in_flight());
  EXPECT_TRUE(others_get_on());
  EXPECT_FALSE(others_come_before(kTheirs));
  EXPECT_TRUE(others_come_before(kTheirs + 1));
  may_be_stuck.set_value();
  stuck.get_future().wait();
  EXPECT_TRUE(others_are_in_flight());
  EXPECT_FALSE(others_get_on());
  may_end.set_value();
  over.get_future().wait();
  EXPECT_FALSE(others_are_in_flight());
  EXPECT_FALSE(others_come_before(kTheirs + 1));
  other.join();
  // Its own is none of others'.
  announce_ticket(kTheirs);
  EXPECT_FALSE(others_are_in_flight());
  EXPECT_FALSE(others_get_on());
  queued();
}

// One that gives way begins again later, and keeps its turn meanwhile.
TEST(InFlight, ATurnIsKept) {
  constexpr std::uint64_t kFirst = 7, kLater = 19;
  std::promise<void> given_up, seen_waiting, again, seen_again, over;
  std::thread other([&] {
    announce_ticket(kFirst);
    queued();
    {
      const TurnInFlight turn(kFirst);
      given_up.set_value();
      seen_waiting.get_future().wait();
    }
    announce_ticket(kLater);
    const TurnInFlight turn(kFirst);
    again.set_value();
    seen_again.get_future().wait();
    queued();
  });
  given_up.get_future().wait();
  EXPECT_FALSE(others_are_in_flight());
  EXPECT_EQ(first_turn_of_others(), kFirst);
  EXPECT_TRUE(others_come_before(kFirst + 1));
  seen_waiting.set_value();
  again.get_future().wait();
  EXPECT_EQ(count_others_in_flight(), 1u);
  EXPECT_EQ(oldest_in_flight(), kLater);
  EXPECT_EQ(first_turn_of_others(), kFirst);
  EXPECT_FALSE(others_come_before(kFirst));
  seen_again.set_value();
  other.join();
  EXPECT_EQ(first_turn_of_others(), kNoneInFlight);
  EXPECT_FALSE(others_come_before(kNoneInFlight));
}

// The operations are not known one by one, but whose they are is.
TEST_F(StreamTableTest, AThreadWithOperationsOnSeveralStreamsIsInFlight) {
  constexpr std::uint64_t kTheirs = 7;
  std::promise<void> announced, seen;
  std::thread other([&] {
    table_.begin({stream(1), false});
    table_.begin({stream(2), false});
    announce_ticket(kTheirs);
    announced.set_value();
    seen.get_future().wait();
    queued();
  });
  announced.get_future().wait();
  EXPECT_TRUE(others_are_in_flight());
  EXPECT_TRUE(others_get_on());
  EXPECT_EQ(oldest_in_flight(), kTheirs);
  EXPECT_TRUE(others_come_before(kTheirs + 1));
  seen.set_value();
  other.join();
  EXPECT_FALSE(others_are_in_flight());
}

// Queued without the lock, at any moment, in several steps.
TEST_F(StreamTableTest, OfThreadsThatAreNotInFlightAllIsQueued) {
  constexpr int kRounds = 20'000;
  lock_.unlock();
  std::atomic<bool> goes_on = true;
  std::atomic<std::uint64_t> last = 0;
  std::thread other([&] {
    for (std::uint64_t ticket = 1; goes_on; ++ticket) {
      {
        ArenaLock lock;
        last = table_.begin({stream(1), false}).position;
        table_.begin({stream(2), false});
        announce_ticket(ticket);
      }
      queued();
    }
  });
  bool all_queued = true;
  for (int looks = 0; looks < kRounds && all_queued;) {
    ArenaLock lock;
    if (last == 0 || others_are_in_flight()) continue;
    ++looks;
    Release release;
    release.add(StreamUse{table_.slot_of({stream(1), false}), last});
    all_queued = table_.is_queued(release);
  }
  EXPECT_TRUE(all_queued);
  goes_on = false;
  other.join();
  lock_.lock();
}

}  // namespace
}  // namespace memopt::agent
