// Device times as the records tell them, of a device that does what the test says. Functions of the driver that wait
// for it are not there: to call one would end the test.
#include "agent/recording/device_times.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <deque>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "agent/operations/operations.h"
#include "agent/process/driver.h"
#include "agent/recording/recorder.h"
#include "tests/agent/fake_arena.h"
#include "tests/agent/fake_link.h"

namespace memopt::agent {
namespace {

using shm::RecordKind;

CUstream stream(std::uintptr_t number) { return reinterpret_cast<CUstream>(number * 0x100); }

struct Event {
  std::uint64_t time = 0;
  unsigned int flags = 0;
};

struct Device {
  std::map<CUstream, std::uint64_t> clock;  // when the work of each stream that is queued will be over
  std::uint64_t now = ~std::uint64_t{0};
  std::deque<Event> events;
  std::vector<CUstream> recorded_on;
  std::set<CUstream> not_blocking;
  int calls = 0;
  CUresult refuses = CUDA_SUCCESS;
};
Device* g_device = nullptr;

Event& event_of(CUevent event) { return g_device->events.at(reinterpret_cast<std::uintptr_t>(event) - 1); }

Driver make_driver() {
  Driver driver;
  driver.event_create = [](CUevent* event, unsigned int flags) {
    ++g_device->calls;
    errno = 7;
    if (g_device->refuses != CUDA_SUCCESS) return g_device->refuses;
    g_device->events.push_back({0, flags});
    *event = reinterpret_cast<CUevent>(g_device->events.size());
    return CUDA_SUCCESS;
  };
  driver.event_record = [](CUevent event, CUstream on) {
    ++g_device->calls;
    errno = 7;
    if (g_device->refuses != CUDA_SUCCESS) return g_device->refuses;
    event_of(event).time = g_device->clock[on];
    g_device->recorded_on.push_back(on);
    return CUDA_SUCCESS;
  };
  driver.event_query = [](CUevent event) {
    ++g_device->calls;
    errno = 7;
    if (g_device->refuses != CUDA_SUCCESS) return g_device->refuses;
    return event_of(event).time <= g_device->now ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  };
  driver.event_elapsed = [](float* milliseconds, CUevent from, CUevent to) {
    ++g_device->calls;
    if (event_of(from).flags != CU_EVENT_DEFAULT || event_of(to).flags != CU_EVENT_DEFAULT) {
      return CUDA_ERROR_INVALID_HANDLE;
    }
    const auto between = static_cast<std::int64_t>(event_of(to).time - event_of(from).time);
    *milliseconds = static_cast<float>(static_cast<double>(between) / 1e6);
    return CUDA_SUCCESS;
  };
  driver.stream_flags = [](CUstream asked, unsigned int* flags) {
    errno = 7;
    *flags = g_device->not_blocking.count(asked) != 0 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT;
    return CUDA_SUCCESS;
  };
  driver.stream_is_capturing = [](CUstream, CUstreamCaptureStatus* status) {
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
  };
  return driver;
}

struct Measured {
  std::uint64_t operation, nanoseconds, end;
  std::uint32_t idle;
};

class DeviceTimes : public testing::Test {
 protected:
  void SetUp() override {
    g_device = &device_;
    test::reset_arena(0, 0);
    test::reset_link();
    forget_device_times_after_fork();
  }
  void TearDown() override {
    stop_recording();
    forget_device_times_after_fork();
    test::read_records();
  }

  // A memset that takes so long, on a stream that had nothing to do before. Its record's number.
  std::uint64_t memset(CUstream on, std::uint64_t nanoseconds, std::uint64_t idle = 0, CUresult result = CUDA_SUCCESS) {
    const CUstream name = on == nullptr ? CU_STREAM_LEGACY : on;
    device_.clock[name] += idle;
    const QueuedAtEnd scope;
    before_memset({1, 1, {on, false}});
    device_.clock[name] += nanoseconds;
    EXPECT_EQ(scope.ended(result), result);
    return last_sequence();
  }

  std::vector<Measured> measured() {
    std::vector<Measured> found;
    for (const test::ReadRecord& record : test::records_of_kind(test::read_records(), RecordKind::kKernelTime)) {
      const auto body = record.view().as<shm::KernelTimeBody>();
      found.push_back({body.launch, body.nanoseconds, body.end, record.view().header.aux});
    }
    return found;
  }

  Device device_;
};

TEST_F(DeviceTimes, EveryOperationGetsItsTurn) {
  start_device_times(8);
  start_recording(true);
  // A multiple of 8: counting alone would measure the same three for ever.
  constexpr std::uint64_t kIteration = 24, kIterations = 100;
  const auto takes = [](std::uint64_t place) { return 1000 + 10 * place; };
  const auto idles = [](std::uint64_t place) { return place % 3 == 0 ? place + 500 : 0; };
  std::map<std::uint64_t, std::uint64_t> places;  // by sequence
  std::map<std::uint64_t, std::uint64_t> ends;
  std::vector<Measured> found;
  for (std::uint64_t i = 0; i < kIterations * kIteration; ++i) {
    const std::uint64_t place = i % kIteration;
    const std::uint64_t before = last_sequence();
    memset(stream(1), takes(place), idles(place));
    places[before + 1] = place;  // times follow the operation itself
    ends[before + 1] = device_.clock[stream(1)];
    for (const Measured& one : measured()) found.push_back(one);
  }
  EXPECT_NEAR(static_cast<double>(found.size()), kIteration * kIterations / 8.0, 2);
  std::set<std::uint64_t> seen;
  std::size_t known_idle = 0;
  // The first record of a thread is its clock: the first operation may be taken for it.
  for (std::size_t i = 1; i < found.size(); ++i) {
    ASSERT_TRUE(places.count(found[i].operation)) << found[i].operation;
    const std::uint64_t place = places[found[i].operation];
    seen.insert(place);
    EXPECT_EQ(found[i].nanoseconds, takes(place));
    if (found[i].idle != shm::kIdleUnknown) {
      ++known_idle;
      EXPECT_EQ(found[i].idle, idles(place));
    }
    // The device's clock runs on between any two.
    EXPECT_NEAR(static_cast<double>(found[i].end - found[1].end),
                static_cast<double>(ends[found[i].operation] - ends[found[1].operation]),
                2 + 1e-6 * static_cast<double>(found[i].end));
  }
  EXPECT_EQ(seen.size(), kIteration);
  EXPECT_GE(known_idle, found.size() - 1);
}

TEST_F(DeviceTimes, AnotherPartCanBeMeasuredAtAnyTime) {
  start_recording(true);
  std::size_t count = 0;
  for (const std::uint32_t every : {16U, 4U, 16U, 1U, 16U}) {
    start_device_times(every);
    constexpr std::size_t kOperations = 320;
    const std::size_t before = count;
    for (std::size_t i = 0; i < kOperations; ++i) {
      memset(stream(1), 100);
      count += measured().size();
    }
    look_for_device_times();
    count += measured().size();
    EXPECT_NEAR(static_cast<double>(count - before), static_cast<double>(kOperations / every), 2) << every;
  }
}

TEST_F(DeviceTimes, BesideAPlannerIdleTimesAreNotKnown) {
  start_device_times(1);
  start_recording(false);
  memset(stream(1), 10);
  memset(stream(1), 11, 5);
  const auto found = measured();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[1].nanoseconds, 11u);
  EXPECT_EQ(found[1].idle, shm::kIdleUnknown);
}

TEST_F(DeviceTimes, OneOfOneIsAll) {
  start_device_times(1);
  start_recording(true);
  std::size_t count = 0;
  for (std::uint64_t i = 0; i < 500; ++i) {
    memset(stream(1), 100 + i, i);
    count += measured().size();
  }
  look_for_device_times();
  EXPECT_EQ(count + measured().size(), 500u);
}

TEST_F(DeviceTimes, NoEventsUnlessSomethingIsRecorded) {
  start_device_times(1);
  memset(stream(1), 10);
  look_for_device_times();
  EXPECT_EQ(device_.calls, 0);
  start_device_times(0);
  start_recording(true);
  memset(stream(1), 10);
  look_for_device_times();
  EXPECT_EQ(device_.calls, 0);
}

TEST_F(DeviceTimes, NothingWhileAnythingIsCaptured) {
  start_device_times(1);
  start_recording(true);
  memset(stream(1), 10);
  const int calls = device_.calls;
  before_capture(stream(2));
  memset(stream(1), 10);
  look_for_device_times();
  EXPECT_EQ(device_.calls, calls);
  capture_ended(stream(2));
  memset(stream(1), 10);
  EXPECT_GT(device_.calls, calls);
}

TEST_F(DeviceTimes, WhatTheDriverRefusedOrDidTogetherIsNotMeasured) {
  start_device_times(1);
  start_recording(true);
  memset(stream(1), 10, 0, CUDA_ERROR_INVALID_VALUE);
  {
    const QueuedAtEnd scope;
    before_memset({1, 1, {stream(1), false}});
    before_memset({1, 1, {stream(1), false}});
    forget_operation();
  }
  memset(stream(1), 12);
  look_for_device_times();
  const auto found = measured();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].nanoseconds, 12u);
}

TEST_F(DeviceTimes, ADriverThatRefusesIsNotAskedAgain) {
  start_device_times(1);
  start_recording(true);
  device_.refuses = CUDA_ERROR_OUT_OF_MEMORY;
  for (int i = 0; i < 10; ++i) memset(stream(1), 10);
  look_for_device_times();
  EXPECT_EQ(device_.calls, 1);
  EXPECT_TRUE(measured().empty());
}

TEST_F(DeviceTimes, ADeviceThatIsBehindIsNotWaitedFor) {
  start_device_times(1);
  start_recording(true);
  device_.now = 0;
  for (std::uint64_t i = 1; i <= 200; ++i) memset(stream(1), i);
  EXPECT_TRUE(measured().empty());
  EXPECT_LE(device_.events.size(), 3u * 64) << "no more are kept";
  device_.now = ~std::uint64_t{0};
  look_for_device_times();
  const auto found = measured();
  ASSERT_EQ(found.size(), 64u);
  for (std::uint64_t i = 0; i < 64; ++i) EXPECT_EQ(found[i].nanoseconds, i + 1);
}

TEST_F(DeviceTimes, AContextTakesItsEventsWithIt) {
  start_device_times(1);
  start_recording(true);
  device_.now = 0;
  memset(stream(1), 10);
  const int calls = device_.calls;
  forget_device_times();
  device_.now = ~std::uint64_t{0};
  look_for_device_times();
  EXPECT_EQ(device_.calls, calls);
  EXPECT_TRUE(measured().empty());
}

// An event there has a place in the order of all other streams.
TEST_F(DeviceTimes, NothingOnTheLegacyStreamOnceThreadsUseSeveralStreams) {
  start_device_times(1);
  start_recording(true);
  const auto on_legacy = [&] {
    return std::count(device_.recorded_on.begin(), device_.recorded_on.end(), CU_STREAM_LEGACY);
  };
  memset(nullptr, 10);
  EXPECT_GT(on_legacy(), 0) << "the only stream";
  memset(stream(1), 10);
  const auto before = on_legacy();
  memset(nullptr, 10);
  EXPECT_GT(on_legacy(), before) << "the only thread";
  std::thread([&] { memset(stream(1), 10); }).join();
  const auto last = on_legacy();
  const std::size_t all = device_.recorded_on.size();
  memset(nullptr, 10);
  memset(stream(1), 10);
  EXPECT_EQ(on_legacy(), last);
  EXPECT_GT(device_.recorded_on.size(), all);
}

TEST_F(DeviceTimes, StreamsThatTheLegacyStreamIsNotOrderedWithDoNotCount) {
  start_device_times(1);
  start_recording(true);
  const auto legacy_is_measured = [&] {
    device_.recorded_on.clear();
    memset(nullptr, 10);
    return !device_.recorded_on.empty();
  };
  device_.not_blocking = {stream(1), stream(2)};
  EXPECT_TRUE(legacy_is_measured());
  std::thread([&] {
    memset(stream(1), 10);
    memset(stream(2), 10);
  }).join();
  EXPECT_TRUE(legacy_is_measured());
  // The handle comes to mean another one.
  forget_stream(stream(2));
  device_.not_blocking = {stream(1)};
  std::thread([&] {
    memset(stream(1), 10);
    memset(stream(2), 10);
  }).join();
  EXPECT_FALSE(legacy_is_measured());
}

// Whatever is recorded: between the beginnings of two operations, as soon as the device has come to the second.
TEST_F(DeviceTimes, OperationsThatAreMarkedTellTheTimeBetweenThem) {
  start_device_times(16);
  test::reset_arena(0x1000, 0x1000);
  std::uint64_t between = 1;
  EXPECT_TRUE(time_between_marks(&between));
  EXPECT_EQ(between, 0u) << "nothing was marked";
  memset(stream(1), 500);
  mark_operation(true);
  memset(stream(1), 1000);
  for (int i = 0; i < 3; ++i) memset(stream(1), 1000, 50);
  mark_operation(false);
  memset(stream(1), 7000);
  device_.now = 500 + 4149;
  EXPECT_FALSE(time_between_marks(&between));
  device_.now = ~std::uint64_t{0};
  EXPECT_TRUE(time_between_marks(&between));
  EXPECT_EQ(between, 4150u);
  // Only of the next one.
  memset(stream(1), 1000);
  EXPECT_TRUE(time_between_marks(&between));
  EXPECT_EQ(between, 4150u);
  // The second is to come.
  mark_operation(true);
  memset(stream(1), 1000);
  mark_operation(false);
  EXPECT_TRUE(time_between_marks(&between));
  EXPECT_EQ(between, 0u);
  before_capture(stream(2));
  memset(stream(1), 1000);
  capture_ended(stream(2));
  EXPECT_TRUE(time_between_marks(&between));
  EXPECT_EQ(between, 0u) << "nothing is marked while anything is captured";
  EXPECT_TRUE(measured().empty());
}

TEST_F(DeviceTimes, ErrnoIsKept) {
  start_device_times(1);
  start_recording(true);
  memset(stream(1), 10);  // the thread has its ring
  errno = 4711;
  memset(stream(1), 10);
  look_for_device_times();
  EXPECT_EQ(errno, 4711);
}

TEST_F(DeviceTimes, ThreadsMeasureForThemselves) {
  start_device_times(2);
  start_recording(true);
  constexpr std::uintptr_t kThreads = 4;
  std::vector<std::thread> threads;
  for (std::uintptr_t t = 1; t <= kThreads; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 200; ++i) {
        const QueuedAtEnd scope;
        before_memset({1, 1, {stream(t), false}});
      }
      look_for_device_times();
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto found = measured();
  EXPECT_GT(found.size(), kThreads * 90);
  EXPECT_LE(found.size(), kThreads * 101);
}

}  // namespace

const Driver& driver() noexcept {
  static const Driver instance = make_driver();
  return instance;
}

}  // namespace memopt::agent
