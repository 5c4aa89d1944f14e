#include "planner/daemon/intake.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <random>
#include <set>

#include "tests/shm/test_ring.h"

namespace memopt::planner {
namespace {

using std::chrono::milliseconds;
using test::TestRing;
using test::write_free;
using test::write_name;

constexpr std::uint64_t kGap = 0;

struct CountingSink final : Sink {
  void record(std::uint32_t lane, const shm::RecordView& record) override {
    seen.push_back(record.header.sequence);
    lanes.push_back(lane);
  }
  void gap() override {
    if (seen.empty() || seen.back() != kGap) seen.push_back(kGap);
  }
  std::optional<std::vector<std::byte>> check_point() override {
    points.push_back(seen.empty() ? 0 : seen.back());
    return std::nullopt;
  }
  std::string note() override { return note_text; }
  std::uint64_t framework_reserved() override { return reserved; }
  void adopted(std::uint64_t generation) override { adopted_generations.push_back(generation); }
  void refused(std::uint64_t generation, std::uint64_t excess) override {
    refused_generations.push_back(generation);
    excesses.push_back(excess);
  }
  void clock(const ClockPair& pair) override { clocks.push_back(pair); }

  std::vector<std::uint64_t> seen;  // sequence numbers, kGap for one or more gaps
  std::vector<std::uint32_t> lanes;
  std::vector<std::uint64_t> points;
  std::vector<std::uint64_t> adopted_generations;
  std::vector<std::uint64_t> refused_generations;
  std::vector<std::uint64_t> excesses;
  std::vector<ClockPair> clocks;
  std::uint64_t reserved = 0;
  std::string note_text;
};

struct CountingOutbox final : Outbox {
  void send_plan(std::vector<std::byte> plan) override { plans.push_back(std::move(plan)); }
  void send_note(std::string_view note) override { notes.emplace_back(note); }
  std::vector<std::vector<std::byte>> plans;
  std::vector<std::string> notes;
};

class IntakeTest : public testing::Test {
 protected:
  void start(bool synchronous = false) { intake = std::make_unique<Intake>(control, synchronous, sink, outbox); }
  TestRing& add_ring(std::uint32_t lane, std::size_t capacity = shm::kMinRingCapacity) {
    rings.push_back(std::make_unique<TestRing>(lane, capacity));
    std::string why;
    EXPECT_TRUE(intake->add_ring(rings.back()->map(), lane, &why)) << why;
    return *rings.back();
  }
  Intake::Progress step(milliseconds later = milliseconds(0)) { return intake->step(now += later); }

  shm::Control control{};
  CountingSink sink;
  CountingOutbox outbox;
  std::unique_ptr<Intake> intake;
  std::vector<std::unique_ptr<TestRing>> rings;
  Intake::Time now{};
};

std::vector<std::uint64_t> numbers(std::uint64_t from, std::uint64_t to) {
  std::vector<std::uint64_t> all;
  for (std::uint64_t i = from; i <= to; ++i) all.push_back(i);
  return all;
}

TEST_F(IntakeTest, RecordsOfOneLaneComeInOrder) {
  start();
  TestRing& ring = add_ring(0);
  for (std::uint64_t i = 1; i <= 5; ++i) write_free(ring.writer, i);
  EXPECT_EQ(step(), Intake::Progress::kSome);
  EXPECT_EQ(sink.seen, numbers(1, 5));
  EXPECT_EQ(control.processed.load(), 5u);
  EXPECT_EQ(step(), Intake::Progress::kNothing);
}

TEST_F(IntakeTest, ALateRecordIsWaitedForAndNoGapIsTold) {
  start();
  TestRing& a = add_ring(0);
  TestRing& b = add_ring(1);
  write_free(a.writer, 1);
  write_free(a.writer, 3);
  step();
  EXPECT_EQ(sink.seen, numbers(1, 1));
  step(Intake::kLostWhileOthersCome / 2);
  write_free(b.writer, 2);
  step();
  EXPECT_EQ(sink.seen, numbers(1, 3));
  EXPECT_EQ(sink.lanes, (std::vector<std::uint32_t>{0, 1, 0}));
}

TEST_F(IntakeTest, AMissingRecordIsGivenUpWhileOthersComeOrAfterLongSilence) {
  start();
  TestRing& ring = add_ring(0);
  write_free(ring.writer, 1);
  write_free(ring.writer, 3);
  step();
  step(Intake::kLostWhileOthersCome);
  EXPECT_EQ(sink.seen, numbers(1, 1)) << "nothing else came: the program may be stopped";
  step(Intake::kLostInSilence);
  EXPECT_EQ(sink.seen, (std::vector<std::uint64_t>{1, kGap, 3}));
  TestRing& other = add_ring(1);
  write_free(other.writer, 5);
  step();
  // Only what is at hand counts as coming: the lane of number 5 is full of later ones already.
  write_free(ring.writer, 6);
  step(Intake::kLostWhileOthersCome);
  step(Intake::kLostInSilence);
  EXPECT_EQ(sink.seen, (std::vector<std::uint64_t>{1, kGap, 3, kGap, 5, 6}));
  EXPECT_EQ(control.processed.load(), 6u);
}

TEST_F(IntakeTest, ADroppedRecordIsGivenUpSoon) {
  start(true);
  TestRing& ring = add_ring(0);
  write_free(ring.writer, 1);
  ring.header().dropped.fetch_add(1);
  write_free(ring.writer, 3);
  step();
  step(Intake::kLostAfterDrop);
  EXPECT_EQ(sink.seen, (std::vector<std::uint64_t>{1, kGap, 3}));
}

TEST_F(IntakeTest, ADroppedLastRecordIsToldAndProcessed) {
  start(true);
  TestRing& ring = add_ring(0);
  write_free(ring.writer, 1);
  ring.header().dropped.fetch_add(2);
  control.issued.store(3);
  step();
  step();
  step(Intake::kLostAfterDrop);
  EXPECT_EQ(sink.seen, (std::vector<std::uint64_t>{1, kGap}));
  EXPECT_EQ(control.processed.load(), 3u);
  write_free(ring.writer, 4);
  step();
  EXPECT_EQ(sink.seen, (std::vector<std::uint64_t>{1, kGap, 4}));
}

TEST_F(IntakeTest, ARecordThatComesAfterItWasGivenUpIsPassedOver) {
  start();
  TestRing& a = add_ring(0);
  TestRing& b = add_ring(1);
  write_free(a.writer, 2);
  step();
  step(Intake::kLostInSilence);
  EXPECT_EQ(sink.seen, (std::vector<std::uint64_t>{kGap, 2}));
  write_free(b.writer, 1);
  write_free(b.writer, 3);
  step();
  EXPECT_EQ(sink.seen, (std::vector<std::uint64_t>{kGap, 2, 3}));
  EXPECT_EQ(intake->late(), 1u);
}

TEST_F(IntakeTest, ANewPlannerGoesOnWhereTheLastOneStopped) {
  start();
  TestRing& ring = add_ring(0);
  for (std::uint64_t i = 1; i <= 10; ++i) write_free(ring.writer, i);
  step();
  for (std::uint64_t i = 11; i <= 20; ++i) write_free(ring.writer, i);
  sink = CountingSink();
  intake = std::make_unique<Intake>(control, false, sink, outbox);
  std::string why;
  ASSERT_TRUE(intake->add_ring(ring.map(), 0, &why)) << why;
  step();
  step(Intake::kLostAfterDrop);
  std::vector<std::uint64_t> expected = numbers(11, 20);
  expected.insert(expected.begin(), kGap);
  EXPECT_EQ(sink.seen, expected);
}

TEST_F(IntakeTest, CheckPointsAreExactHoweverTheRecordsArrive) {
  constexpr std::uint64_t kLast = 40'000;
  std::vector<std::uint64_t> expected;
  for (std::uint64_t at = shm::kFirstCheckPoint; at <= kLast; at = shm::next_check_point(at)) expected.push_back(at);
  std::mt19937_64 random(1);
  start(true);
  TestRing& a = add_ring(0, 4 << 20);
  TestRing& b = add_ring(1, 4 << 20);
  for (std::uint64_t i = 1; i <= kLast; ++i) {
    write_free(random() % 3 == 0 ? a.writer : b.writer, i);
    if (random() % 1000 == 0) step();
  }
  step();
  EXPECT_EQ(sink.seen, numbers(1, kLast));
  EXPECT_EQ(sink.points, expected);
}

TEST_F(IntakeTest, AnAsynchronousProgramThatRunsAheadIsNotPlannedMeanwhile) {
  start(false);
  TestRing& ring = add_ring(0, 4 << 20);
  std::uint64_t number = 0;
  while (ring.header().dropped.load() == 0) {
    if (!write_free(ring.writer, number + 1)) break;
    ++number;
  }
  step();
  // Nothing in the first half of the ring, but the last points.
  ASSERT_FALSE(sink.points.empty());
  EXPECT_GE(sink.points.front(), number / 8);
  EXPECT_EQ(sink.seen.size(), number);
}

TEST_F(IntakeTest, ClockAndDecisionsAndNotesArePassedOn) {
  control.clock_ticks.store(1000);
  control.clock_nanoseconds.store(500);
  control.adopted_generation.store(3);  // of an earlier planner
  start();
  TestRing& ring = add_ring(0);
  sink.note_text = "waiting";
  for (std::uint64_t i = 1; i <= 20; ++i) write_free(ring.writer, i);
  step();
  EXPECT_EQ(sink.clocks, (std::vector<ClockPair>{{1000, 500}}));
  EXPECT_EQ(outbox.notes, (std::vector<std::string>{"waiting"}));
  control.adopted_generation.store(4);
  control.refused_excess.store(4096);
  control.refused_generation.store(5);
  control.clock_ticks.store(2000);
  for (std::uint64_t i = 21; i <= 60; ++i) write_free(ring.writer, i);
  step();
  EXPECT_EQ(sink.adopted_generations, (std::vector<std::uint64_t>{4}));
  EXPECT_EQ(sink.refused_generations, (std::vector<std::uint64_t>{5}));
  EXPECT_EQ(sink.excesses, (std::vector<std::uint64_t>{4096}));
  EXPECT_EQ(sink.clocks.size(), 2u);
  EXPECT_EQ(outbox.notes.size(), 1u) << "an unchanged note is not sent again";
}

TEST_F(IntakeTest, WhatAFrameworkWouldHaveReservedIsTold) {
  control.framework_reserved.store(1000);  // by an earlier planner
  start();
  TestRing& ring = add_ring(0);
  write_free(ring.writer, 1);
  step();
  EXPECT_EQ(control.framework_reserved.load(), 1000u) << "it is not known to this one";
  sink.reserved = 4096;
  write_free(ring.writer, 2);
  step();
  EXPECT_EQ(control.framework_reserved.load(), 4096u);
}

TEST_F(IntakeTest, RingsThatAreNoneAreRefused) {
  start();
  add_ring(3);
  std::string why;
  EXPECT_FALSE(intake->add_ring(TestRing(3).map(), 3, &why));
  EXPECT_NE(why.find("twice"), std::string::npos) << why;
  EXPECT_FALSE(intake->add_ring(TestRing(1).map(), 2, &why));
  EXPECT_FALSE(intake->add_ring(TestRing(64).map(), 64, &why));
  EXPECT_FALSE(intake->add_ring(shm::SharedMapping(), 4, &why));
  TestRing wrong(4);
  wrong.header().wire_version += 1;
  EXPECT_FALSE(intake->add_ring(wrong.map(), 4, &why));
  TestRing large(5);
  large.header().capacity *= 2;
  EXPECT_FALSE(intake->add_ring(large.map(), 5, &why));
}

TEST_F(IntakeTest, NumbersThatDoNotGrowAreCorrupt) {
  start();
  TestRing& ring = add_ring(0);
  write_free(ring.writer, 1);
  write_free(ring.writer, 1);
  EXPECT_EQ(step(), Intake::Progress::kCorrupt);
  EXPECT_NE(intake->corruption().find("record number 1 behind 1"), std::string::npos) << intake->corruption();
}

TEST(CheckPoints, AreFoundFromAnyNumber) {
  std::uint64_t point = shm::kFirstCheckPoint;
  for (std::uint64_t i = 0; i < 2'000'000; ++i) {
    if (i >= point) point = shm::next_check_point(point);
    ASSERT_EQ(check_point_behind(i), point) << i;
  }
  for (const std::uint64_t large : {std::uint64_t{1} << 40, std::uint64_t{1} << 61}) {
    EXPECT_GT(check_point_behind(large), large);
    EXPECT_LE(check_point_behind(large), large + 4096);
  }
}

// Threads take numbers, write a little later, and sometimes drop; whatever the order of arrival, what comes out is
// every written record in order, with a gap exactly where some are missing.
TEST_F(IntakeTest, MergesAnyInterleavingWithDrops) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    sink = CountingSink();
    std::construct_at(&control);
    rings.clear();
    start(seed % 2 == 0);
    const std::uint32_t lanes = 1 + static_cast<std::uint32_t>(random() % 6);
    for (std::uint32_t lane = 0; lane < lanes; ++lane) add_ring(lane, lane % 2 == 0 ? 1 << 20 : shm::kMinRingCapacity);
    struct Pending {
      std::uint64_t sequence;
      bool dropped;
      std::size_t words;
    };
    std::vector<std::deque<Pending>> pending(lanes);
    std::vector<std::uint64_t> expected;
    const std::uint64_t count = 200 + random() % 2000;
    const std::uint64_t drop_one_in = seed % 3 == 0 ? 0 : 2 + random() % 200;
    const auto write_one = [&](std::uint32_t lane) {
      if (pending[lane].empty()) return;
      const Pending next = pending[lane].front();
      TestRing& ring = *rings[lane];
      if (next.dropped) {
        ring.header().dropped.fetch_add(1);
      } else if (!(next.words < 5 ? write_free(ring.writer, next.sequence)
                                  : write_name(ring.writer, next.sequence, next.words))) {
        return;  // no room for now (and counted as dropped, which it is not)
      }
      pending[lane].pop_front();
    };
    const auto settle = [&] {
      for (;;) {
        std::uint32_t first = lanes;
        for (std::uint32_t lane = 0; lane < lanes; ++lane) {
          if (pending[lane].empty()) continue;
          if (first == lanes || pending[lane].front().sequence < pending[first].front().sequence) first = lane;
        }
        if (first == lanes) return;
        write_one(first);
        step();
      }
    };
    for (std::uint64_t i = 1; i <= count; ++i) {
      const bool dropped = drop_one_in != 0 && random() % drop_one_in == 0;
      pending[random() % lanes].push_back({i, dropped, random() % 40});
      if (!dropped) {
        expected.push_back(i);
      } else if (expected.empty() || expected.back() != kGap) {
        expected.push_back(kGap);
      }
      control.issued.store(random() % 2 == 0 ? i : control.issued.load());
      for (std::uint64_t tries = random() % 4; tries > 0; --tries)
        write_one(static_cast<std::uint32_t>(random() % lanes));
      // A thread is never late by as much as a record is waited for.
      if (random() % 10 == 0) {
        ASSERT_NE(step(), Intake::Progress::kCorrupt) << intake->corruption();
      }
      if (random() % 50 == 0) {
        settle();
        step(Intake::kLostAfterDrop * (random() % 2));
      }
    }
    settle();
    intake->finish();
    ASSERT_EQ(sink.seen, expected) << "seed " << seed;
    EXPECT_EQ(intake->late(), 0u);
  }
}

// Whatever is in the memory, and whatever changes while it is read: no crash, no endless loop, and what is delivered is
// well formed (the sanitizers watch).
TEST_F(IntakeTest, HostileBytesDoNoHarm) {
  std::uint64_t corrupt = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    std::mt19937_64 random(seed);
    sink = CountingSink();
    std::construct_at(&control);
    rings.clear();
    start();
    TestRing& ring = add_ring(0);
    TestRing& other = add_ring(1);
    std::uint64_t number = 0;
    for (int round = 0; round < 8; ++round) {
      for (std::uint64_t i = random() % 50; i > 0; --i) {
        write_name(random() % 4 == 0 ? other.writer : ring.writer, ++number, 5 + random() % 30);
      }
      for (std::uint64_t i = random() % 4; i > 0; --i) {
        switch (random() % 6) {
          case 0:
            ring.header().head.store(random() % 3 == 0 ? random() : ring.header().head.load() + random() % 4096);
            break;
          case 1:
            ring.header().tail.store(random());
            break;
          case 2:
            ring.header().dropped.store(random());
            break;
          case 3:
            ring.header().capacity = random();
            break;
          case 4:
            control.issued.store(random());
            control.processed.store(random());
            break;
          default:
            ring.data()[shm::kRingDataOffset + random() % 8192] = static_cast<std::byte>(random());
        }
      }
      if (step(milliseconds(random() % 3000)) == Intake::Progress::kCorrupt) {
        ++corrupt;
        EXPECT_FALSE(intake->corruption().empty());
        break;
      }
    }
    if (intake->corruption().empty()) intake->finish();
  }
  EXPECT_GT(corrupt, 100u) << "the test does not reach what it is for";
}

}  // namespace
}  // namespace memopt::planner
