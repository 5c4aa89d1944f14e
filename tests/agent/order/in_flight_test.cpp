#include "agent/order/in_flight.h"

#include <gtest/gtest.h>

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
  EXPECT_FALSE(older_is_in_flight(kTheirs));
  EXPECT_TRUE(older_is_in_flight(kTheirs + 1));
  may_be_stuck.set_value();
  stuck.get_future().wait();
  EXPECT_TRUE(others_are_in_flight());
  EXPECT_FALSE(others_get_on());
  may_end.set_value();
  over.get_future().wait();
  EXPECT_FALSE(others_are_in_flight());
  EXPECT_FALSE(older_is_in_flight(kTheirs + 1));
  other.join();
  // Its own is none of others'.
  announce_ticket(kTheirs);
  EXPECT_FALSE(others_are_in_flight());
  EXPECT_FALSE(others_get_on());
  queued();
}

}  // namespace
}  // namespace memopt::agent
