#include "agent/recording/recorder.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <set>
#include <thread>

#include "tests/agent/fake_link.h"

namespace memopt::agent {
namespace {

using shm::RecordKind;

class Recorder : public testing::Test {
 protected:
  void SetUp() override {
    test::reset_link();
    test::read_records();
  }
  void TearDown() override { stop_recording(); }
};

std::vector<std::uint64_t> sequences(const std::vector<test::ReadRecord>& records) {
  std::vector<std::uint64_t> numbers;
  for (const test::ReadRecord& record : records) numbers.push_back(record.view().header.sequence);
  return numbers;
}

TEST_F(Recorder, OffMeansNothingIsWritten) {
  const std::uint64_t before = last_sequence();
  EXPECT_FALSE(recording());
  EXPECT_EQ(record_free({1, 0}, 0), 0u);
  EXPECT_EQ(record_malloc({1, 2, 3, 4, 5, 6}, 0), 0u);
  EXPECT_EQ(last_sequence(), before);
  EXPECT_EQ(recording_number(), 0u);
}

TEST_F(Recorder, EveryRecordHasItsNumberAndBody) {
  start_recording(false);
  EXPECT_TRUE(recording());
  EXPECT_FALSE(recording_fully());
  EXPECT_EQ(test::link_page().recording.load(), 1u);
  const std::uint64_t freed = record_free({17, 18}, shm::kForeign);
  const std::uint64_t copied = record_copy(shm::CopyKind::kToHost, {1, 2, 3, 4});
  const std::uint64_t set = record_memset({5, 6, 7});
  const std::uint64_t state = record_state(shm::StateChange::kDeviated, {8, 9});
  const std::uint64_t event = record_simple(RecordKind::kEventRecord, shm::EventBody{10, 11});
  const auto records = test::read_records();
  const auto find = [&](std::uint64_t sequence) {
    for (const auto& record : records) {
      if (record.view().header.sequence == sequence) return record.view();
    }
    ADD_FAILURE() << "no record " << sequence;
    return shm::RecordView{};
  };
  EXPECT_EQ(find(freed).kind(), RecordKind::kFree);
  EXPECT_EQ(find(freed).header.flags, shm::kForeign);
  EXPECT_EQ(find(freed).as<shm::FreeBody>().stream, 18u);
  EXPECT_EQ(find(copied).header.aux, static_cast<std::uint32_t>(shm::CopyKind::kToHost));
  EXPECT_EQ(find(copied).as<shm::CopyBody>().bytes, 4u);
  EXPECT_EQ(find(set).as<shm::MemsetBody>().block, 6u);
  EXPECT_EQ(find(state).header.aux, static_cast<std::uint32_t>(shm::StateChange::kDeviated));
  EXPECT_EQ(find(event).as<shm::EventBody>().stream, 11u);
  EXPECT_LT(find(freed).header.ticks, find(event).header.ticks);
  const auto clocks = test::records_of_kind(records, RecordKind::kClock);
  for (const auto& clock : clocks) EXPECT_NE(clock.view().as<shm::ClockBody>().nanoseconds, 0u);
  stop_recording();
  EXPECT_EQ(test::link_page().recording.load(), 0u);
  EXPECT_EQ(test::link_page().issued.load(), last_sequence());
  EXPECT_NE(test::link_page().clock_ticks.load(), 0u);
}

TEST_F(Recorder, NumbersHaveNoGapsOverThreads) {
  start_recording(false);
  record_free({1, 0}, 0);
  const std::uint64_t first = last_sequence();
  test::read_records();
  constexpr int kThreads = 8;
  constexpr std::uint64_t kEach = 2000;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([] {
      for (std::uint64_t i = 0; i < kEach; ++i) record_free({i, 0}, 0);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto records = test::read_records();
  ASSERT_EQ(records.size(), kThreads * (kEach + 1)) << "and a clock for each thread";
  std::set<std::uint32_t> lanes;
  for (std::size_t i = 0; i < records.size(); ++i) {
    ASSERT_EQ(records[i].view().header.sequence, first + 1 + i);
    lanes.insert(records[i].lane);
  }
  EXPECT_EQ(lanes.size(), std::size_t{kThreads});
  EXPECT_EQ(test::released_rings(), kThreads) << "given back at the end of each thread";
}

TEST_F(Recorder, AFullRingLeavesAHole) {
  test::reset_link(shm::kMinRingCapacity);
  start_recording(false);
  std::thread([] {
    const std::uint64_t first = last_sequence();
    std::uint64_t lost = 0;
    constexpr std::uint64_t kMany = 10000;
    for (std::uint64_t i = 0; i < kMany; ++i) lost += record_free({i, 0}, 0) == 0 ? 1 : 0;
    EXPECT_GT(lost, 0u);
    EXPECT_LT(lost, kMany);
    EXPECT_EQ(last_sequence(), first + kMany + 1) << "lost records use up their numbers";
    EXPECT_EQ(test::read_records().size(), kMany + 1 - lost);
    EXPECT_NE(record_free({1, 0}, 0), 0u) << "there is room again";
  }).join();
}

TEST_F(Recorder, WithoutARingNumbersAreUsedUp) {
  test::refuse_rings(true);
  start_recording(false);
  std::thread([] {
    const std::uint64_t before = last_sequence();
    EXPECT_EQ(record_free({1, 0}, 0), 0u);
    EXPECT_EQ(last_sequence(), before + 1);
    EXPECT_EQ(current_lane(), kNoLane);
    test::refuse_rings(false);
    // It asks again, but not at each record.
    std::uint64_t tries = 0;
    while (record_free({1, 0}, 0) == 0 && tries < 100000) ++tries;
    EXPECT_GT(tries, 100u);
    EXPECT_LT(tries, 100000u);
    EXPECT_NE(current_lane(), kNoLane);
  }).join();
}

// This test runs with MEMOPT_SYNC_PLAN=30.
TEST_F(Recorder, ASynchronousProgramWaitsAtTheCheckPoints) {
  start_recording(false);
  record_free({1, 0}, 0);
  std::uint64_t point = shm::kFirstCheckPoint;
  while (point <= last_sequence()) point = shm::next_check_point(point);
  test::reset_link();
  std::vector<std::uint64_t> expected;
  for (int i = 0; i < 20; ++i, point = shm::next_check_point(point)) expected.push_back(point);
  while (last_sequence() < expected.back()) {
    record_free({1, 0}, 0);
    EXPECT_LE(test::link_page().issued.load(), last_sequence());
  }
  EXPECT_EQ(test::waits(), expected);
  EXPECT_EQ(test::longest_wait(), std::chrono::seconds(30));
  EXPECT_EQ(test::link_page().issued.load(), expected.back());
}

TEST_F(Recorder, ARecordingHasANumberOfItsOwn) {
  start_recording(true);
  EXPECT_TRUE(recording_fully());
  const std::uint32_t first = recording_number();
  EXPECT_NE(first, 0u);
  stop_recording();
  start_recording(false);
  EXPECT_NE(recording_number(), first);
  EXPECT_FALSE(recording_fully());
}

TEST_F(Recorder, TextIsPaddedAndCut) {
  start_recording(false);
  const std::uint64_t short_text = record_named(RecordKind::kFunction, 3, "abc");
  const std::uint64_t long_text = record_named(RecordKind::kModule, 4, std::string(1u << 20, 'x'));
  const auto records = test::read_records();
  EXPECT_NE(short_text, 0u);
  EXPECT_NE(long_text, 0u);
  const auto modules = test::records_of_kind(records, RecordKind::kModule);
  ASSERT_EQ(modules.size(), 1u);
  EXPECT_EQ(modules[0].bytes.size(), shm::kMaxRecordBytes);
}

TEST_F(Recorder, ErrnoIsKept) {
  start_recording(false);
  std::thread([] {
    errno = 4711;
    for (int i = 0; i < 100; ++i) record_malloc({1, 2, 0, 0, 0, 0}, 0);
    EXPECT_EQ(errno, 4711);
  }).join();
}

TEST_F(Recorder, AForkedChildBeginsAnew) {
  start_recording(false);
  record_free({1, 0}, 0);
  forget_recorder_after_fork();
  EXPECT_FALSE(recording());
  EXPECT_EQ(last_sequence(), 0u);
  EXPECT_EQ(current_lane(), kNoLane);
  test::read_records();
  start_recording(false);
  EXPECT_NE(record_free({1, 0}, 0), 0u);
  EXPECT_EQ(sequences(test::read_records()), (std::vector<std::uint64_t>{1, 2})) << "the thread's clock and the free";
}

}  // namespace
}  // namespace memopt::agent
