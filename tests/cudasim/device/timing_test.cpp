// Virtual times against calculation by hand. A thread's clock starts at 0; nothing but charge() and waits moves it.
#include <thread>

#include "simulation.h"

namespace cudasim::test {
namespace {

constexpr auto kCompute = Resource::kCompute, kIn = Resource::kCopyIn, kOut = Resource::kCopyOut,
               kNone = Resource::kNone;

TEST(Timing, StreamIsInOrder) {
  Simulation sim;
  Stream& stream = sim.stream();
  const auto first = sim.work(stream, kCompute, 100), second = sim.work(stream, kIn, 50);
  EXPECT_EQ(sim.engine.wait(stream), CUDA_SUCCESS);
  EXPECT_EQ(first->start, at(0));
  EXPECT_EQ(first->end, at(100));
  EXPECT_EQ(second->start, at(100));
  EXPECT_EQ(second->end, at(150));
  EXPECT_EQ(sim.engine.host_now(), at(150));
  EXPECT_EQ(sim.counters.compute_busy, Duration(100));
  EXPECT_EQ(sim.counters.copy_in_busy, Duration(50));
  EXPECT_EQ(sim.counters.totals.host_synchronizations, 1u);
}

TEST(Timing, EnginesWorkSideBySide) {
  Simulation sim;
  Stream &a = sim.stream(), &b = sim.stream(), &c = sim.stream();
  const auto kernel = sim.work(a, kCompute, 300), in = sim.work(b, kIn, 200), out = sim.work(c, kOut, 100);
  EXPECT_EQ(sim.engine.wait_context(kContext), CUDA_SUCCESS);
  for (const auto& one : {kernel, in, out}) EXPECT_EQ(one->start, at(0));
  EXPECT_EQ(sim.engine.host_now(), at(300));
}

TEST(Timing, OneEngineServesInOrderOfReadiness) {
  Simulation sim;
  Stream &a = sim.stream(), &b = sim.stream(), &c = sim.stream();
  sim.work(a, kCompute, 100);
  const auto late = sim.work(a, kIn, 40);    // ready at 100
  const auto first = sim.work(b, kIn, 30);   // ready at 0
  const auto second = sim.work(c, kIn, 90);  // ready at 0, issued later
  const auto third = sim.work(b, kIn, 10);   // ready at 30, starts at 120: before `late`, which is ready at 100
  EXPECT_EQ(sim.engine.wait_context(kContext), CUDA_SUCCESS);
  EXPECT_EQ(first->start, at(0));
  EXPECT_EQ(second->start, at(30));
  EXPECT_EQ(third->start, at(120));
  EXPECT_EQ(late->start, at(130));
  EXPECT_EQ(sim.engine.host_now(), at(170));
}

TEST(Timing, LaterCallMayOvertakeOnlyWhatHasNotStarted) {
  Simulation sim;
  Stream &a = sim.stream(), &b = sim.stream(), &c = sim.stream();
  sim.work(a, kCompute, 100);
  const auto waiting = sim.work(a, kIn, 50);  // ready at 100
  sim.engine.charge(Duration(60));
  const auto overtaking = sim.work(b, kIn, 70);  // issued at 60, ready at once
  sim.engine.charge(Duration(20));
  const auto third = sim.work(c, kIn, 10);  // issued at 80
  EXPECT_EQ(sim.engine.wait_context(kContext), CUDA_SUCCESS);
  EXPECT_EQ(overtaking->start, at(60));
  EXPECT_EQ(third->start, at(130));
  EXPECT_EQ(waiting->start, at(140));
}

TEST(Timing, WorkWithoutResourceTakesItsTimeAlone) {
  Simulation sim;
  Stream &a = sim.stream(), &b = sim.stream();
  const auto first = sim.work(a, kNone, 100), second = sim.work(b, kNone, 100);
  EXPECT_EQ(sim.engine.wait_context(kContext), CUDA_SUCCESS);
  EXPECT_EQ(first->end, at(100));
  EXPECT_EQ(second->end, at(100));
}

TEST(Timing, EventsCarryEdgesAndTimes) {
  Simulation sim;
  Stream &a = sim.stream(), &b = sim.stream();
  const EventPtr start = sim.event(), end = sim.event();
  sim.engine.charge(Duration(10));
  sim.engine.impl().record(*start, a);
  sim.work(a, kCompute, 1'234'567);
  sim.engine.impl().record(*end, a);
  sim.engine.impl().wait_event(b, *end);
  const auto copy = sim.work(b, kOut, 5);
  Duration between{0};
  EXPECT_EQ(sim.engine.impl().elapsed(*start, *end, &between), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(sim.engine.impl().synchronize(*end), CUDA_SUCCESS);
  EXPECT_EQ(sim.engine.impl().elapsed(*start, *end, &between), CUDA_SUCCESS);
  EXPECT_EQ(between, Duration(1'234'567));
  EXPECT_EQ(sim.engine.host_now(), at(1'234'577));
  EXPECT_EQ(sim.engine.wait(b), CUDA_SUCCESS);
  EXPECT_EQ(copy->start, at(1'234'577));
}

TEST(Timing, WaitTakesTheRecordOfTheCall) {
  Simulation sim;
  Stream &a = sim.stream(), &b = sim.stream();
  const EventPtr event = sim.event();
  sim.engine.impl().wait_event(b, *event);  // never recorded: nothing to wait for
  const auto free = sim.work(b, kOut, 1);
  sim.work(a, kCompute, 100);
  sim.engine.impl().record(*event, a);
  sim.engine.impl().wait_event(b, *event);
  sim.work(a, kCompute, 1000);
  sim.engine.impl().record(*event, a);  // too late for the wait above
  const auto bound = sim.work(b, kOut, 1);
  EXPECT_EQ(sim.engine.wait_context(kContext), CUDA_SUCCESS);
  EXPECT_EQ(free->start, at(0));
  EXPECT_EQ(bound->start, at(100));
}

TEST(Timing, LegacyStreamWaitsForBlockingStreamsAndTheyForIt) {
  Simulation sim;
  Stream &blocking = sim.stream(CU_STREAM_DEFAULT), &other = sim.stream(CU_STREAM_DEFAULT), &free = sim.stream();
  sim.work(blocking, kCompute, 100);
  sim.work(free, kOut, 500);
  const auto legacy = sim.work(sim.legacy(), kIn, 10);
  const auto after = sim.work(other, kCompute, 20);
  const auto per_thread = sim.work(sim.per_thread(), kCompute, 20);
  const auto untouched = sim.work(free, kOut, 1);
  EXPECT_EQ(sim.engine.wait_context(kContext), CUDA_SUCCESS);
  EXPECT_EQ(legacy->start, at(100));
  EXPECT_EQ(after->start, at(110));
  EXPECT_EQ(per_thread->start, at(130));  // behind `after` in the compute queue
  EXPECT_EQ(untouched->start, at(500));
}

TEST(Timing, WaitingForTheLegacyStreamWaitsForBlockingStreams) {
  Simulation sim;
  sim.work(sim.stream(CU_STREAM_DEFAULT), kCompute, 100);
  sim.work(sim.stream(), kOut, 500);
  EXPECT_EQ(sim.engine.wait(sim.legacy()), CUDA_SUCCESS);
  EXPECT_EQ(sim.engine.host_now(), at(100));
}

TEST(Timing, FullQueueHoldsTheHost) {
  Config config = small_config();
  config.device.launch_queue_depth = 2;
  Simulation sim(config);
  Stream& stream = sim.stream();
  sim.work(stream, kCompute, 100);
  sim.work(stream, kCompute, 100);
  EXPECT_EQ(sim.engine.host_now(), at(0));
  sim.work(stream, kCompute, 100);
  EXPECT_EQ(sim.engine.host_now(), at(100));
  sim.work(stream, kCompute, 100);
  EXPECT_EQ(sim.engine.host_now(), at(200));
  sim.engine.charge(Duration(150));  // 350: the third has ended at 300
  sim.work(stream, kCompute, 100);
  EXPECT_EQ(sim.engine.host_now(), at(350));
  EXPECT_EQ(sim.counters.totals.host_synchronizations, 0u);
}

TEST(Timing, QueryTellsByTheHostClock) {
  Simulation sim;
  Stream& stream = sim.stream();
  EXPECT_EQ(sim.engine.query(stream), CUDA_SUCCESS);
  sim.work(stream, kCompute, 100);
  EXPECT_EQ(sim.engine.query(stream), CUDA_ERROR_NOT_READY);
  sim.engine.charge(Duration(99));
  EXPECT_EQ(sim.engine.query(stream), CUDA_ERROR_NOT_READY);
  sim.engine.charge(Duration(1));
  EXPECT_EQ(sim.engine.query(stream), CUDA_SUCCESS);
  EXPECT_EQ(sim.counters.totals.host_synchronizations, 0u);
}

TEST(Timing, PollingForFreeStillEnds) {
  Simulation sim;
  Stream& stream = sim.stream();
  sim.work(stream, kCompute, 10'000);
  int polls = 0;
  while (sim.engine.query(stream) == CUDA_ERROR_NOT_READY) ASSERT_LT(++polls, 200);
  EXPECT_GE(sim.engine.host_now(), at(10'000));
}

TEST(Timing, NewThreadStartsAtTheLatestClock) {
  Simulation sim;
  sim.engine.charge(Duration(500));
  TimePoint seen{};
  sim.lock_.unlock();
  std::thread([&] {
    const std::lock_guard lock(sim.mutex);
    seen = sim.engine.host_now();
    sim.engine.charge(Duration(70));
  }).join();
  sim.lock_.lock();
  EXPECT_EQ(seen, at(500));
  EXPECT_EQ(sim.engine.host_now(), at(500));
  EXPECT_EQ(sim.engine.device_now(), at(570));
}

TEST(Timing, LaggingThreadFindsTheEngineTaken) {
  Simulation sim;
  Stream &a = sim.stream(), &b = sim.stream();
  sim.lock_.unlock();
  std::thread([&] {
    const std::lock_guard lock(sim.mutex);
    sim.work(a, kCompute, 1000);
    EXPECT_EQ(sim.engine.wait(a), CUDA_SUCCESS);
  }).join();
  sim.lock_.lock();
  EXPECT_EQ(sim.engine.host_now(), at(0));  // nothing was charged to this thread
  const auto next = sim.work(b, kCompute, 10);
  EXPECT_EQ(sim.engine.wait(b), CUDA_SUCCESS);
  EXPECT_EQ(next->start, at(1000));
}

// Threads tell each other by means that can't be seen from here.
TEST(Timing, WhatOneThreadHasSeenTheEndOfIsOverForAll) {
  Simulation sim;
  Stream &a = sim.stream(), &b = sim.stream();
  const EventPtr event = sim.event();
  const auto early = sim.work(a, kCompute, 600);
  sim.engine.impl().record(*event, a);
  sim.work(b, kIn, 5000);
  EXPECT_EQ(sim.engine.query(a), CUDA_ERROR_NOT_READY);
  sim.lock_.unlock();
  std::thread([&] {
    const std::lock_guard lock(sim.mutex);
    sim.work(a, kCompute, 400);
    EXPECT_EQ(sim.engine.wait(a), CUDA_SUCCESS);
  }).join();
  sim.lock_.lock();
  EXPECT_LT(sim.engine.host_now(), at(600));
  EXPECT_EQ(sim.engine.query(b), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(sim.engine.impl().query(*event), CUDA_SUCCESS);
  EXPECT_EQ(sim.engine.host_now(), early->end);
}

TEST(Timing, DestroyedStreamsWorkStillCounts) {
  Simulation sim;
  Stream& stream = sim.stream();
  const CUstream handle = stream.handle;
  bool ran = false;
  sim.pieces(
      stream, 1, [&](std::uint32_t, AccessLog&) { ran = true; }, "work", kCompute, 400);
  EXPECT_EQ(sim.engine.destroy_stream(handle), CUDA_SUCCESS);
  EXPECT_EQ(sim.engine.find_stream(kContext, handle, StreamMode::kLegacy), nullptr);
  EXPECT_EQ(sim.engine.destroy_stream(handle), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_FALSE(ran);
  EXPECT_EQ(sim.engine.wait_context(kContext), CUDA_SUCCESS);
  EXPECT_TRUE(ran);
  EXPECT_EQ(sim.engine.host_now(), at(400));
}

TEST(Timing, RemovedContextHasRunItsWork) {
  Simulation sim;
  bool ran = false;
  Stream& stream = sim.stream();
  const CUstream handle = stream.handle;
  sim.pieces(stream, 1, [&](std::uint32_t, AccessLog&) { ran = true; });
  sim.engine.remove_context(kContext);
  EXPECT_TRUE(ran);
  EXPECT_EQ(sim.engine.find_stream(kContext, handle, StreamMode::kLegacy), nullptr);
  EXPECT_EQ(sim.engine.find_stream(kContext, nullptr, StreamMode::kLegacy), nullptr);
}

TEST(Timing, BytesChangeAtTheVirtualEndInItsOrder) {
  Simulation sim;
  Stream &a = sim.stream(), &b = sim.stream();
  std::string order;
  const auto note = [&](char name) { return [&order, name](std::uint32_t, AccessLog&) { order += name; }; };
  sim.pieces(a, 2, note('a'), "a", kCompute, 100);
  sim.pieces(b, 2, note('b'), "b", kIn, 50);
  sim.pieces(a, 1, note('c'), "c", kCompute, 10);
  EXPECT_EQ(order, "");
  sim.engine.charge(Duration(49));
  EXPECT_EQ(order, "");
  sim.engine.charge(Duration(1));
  EXPECT_EQ(order, "bb");
  sim.engine.charge(Duration(55));
  EXPECT_EQ(order, "bbaa");
  EXPECT_EQ(sim.engine.wait(a), CUDA_SUCCESS);
  EXPECT_EQ(order, "bbaac");
}

TEST(Timing, ErrorOfAPieceSticksAndStopsTheContext) {
  Simulation sim;
  Stream& stream = sim.stream();
  Work bad;
  bad.name = "bad";
  bad.resource = kCompute;
  bad.duration = Duration(10);
  bad.run = [](std::uint32_t, AccessLog&) { return CUDA_ERROR_ILLEGAL_ADDRESS; };
  sim.engine.enqueue(stream, bad);
  bool ran = false;
  sim.pieces(stream, 1, [&](std::uint32_t, AccessLog&) { ran = true; });
  EXPECT_EQ(sim.engine.sticky_error(kContext), CUDA_SUCCESS);
  EXPECT_EQ(sim.engine.wait(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(sim.engine.sticky_error(kContext), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_FALSE(ran);
  EXPECT_EQ(sim.engine.query(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(Timing, ExceptionInAPieceIsALaunchFailure) {
  Simulation sim;
  Stream& stream = sim.stream();
  sim.pieces(stream, 1, [](std::uint32_t, AccessLog&) { throw std::runtime_error("planted"); });
  EXPECT_EQ(sim.engine.wait(stream), CUDA_ERROR_LAUNCH_FAILED);
}

TEST(Timing, BadHandlesAndFlagsAreRefused) {
  Simulation sim;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  EXPECT_EQ(sim.engine.create_stream(kContext, 2, 0, &stream), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(sim.engine.create_stream(kContext, 0, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(sim.engine.create_stream(ContextId{99}, 0, 0, &stream), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(sim.engine.impl().create_event(kContext, 8, &event), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(sim.engine.impl().create_event(kContext, CU_EVENT_INTERPROCESS, &event), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(sim.engine.impl().destroy_event(reinterpret_cast<CUevent>(0x10)), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(sim.engine.find_stream(kContext, reinterpret_cast<CUstream>(0x10), StreamMode::kLegacy), nullptr);
  const EventPtr untimed = sim.event(CU_EVENT_DISABLE_TIMING), timed = sim.event(), never = sim.event();
  sim.engine.impl().record(*untimed, sim.legacy());
  sim.engine.impl().record(*timed, sim.legacy());
  Duration between{};
  EXPECT_EQ(sim.engine.impl().elapsed(*timed, *untimed, &between), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(sim.engine.impl().elapsed(*timed, *never, &between), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(sim.engine.impl().query(*never), CUDA_SUCCESS);
}

TEST(Timing, HandlesAreNeverUsedTwice) {
  Simulation sim;
  CUstream first = nullptr, second = nullptr;
  ASSERT_EQ(sim.engine.create_stream(kContext, 0, 0, &first), CUDA_SUCCESS);
  ASSERT_EQ(sim.engine.destroy_stream(first), CUDA_SUCCESS);
  ASSERT_EQ(sim.engine.create_stream(kContext, 0, 0, &second), CUDA_SUCCESS);
  EXPECT_NE(first, second);
}

TEST(Timing, PacedWaitsTakeWallTime) {
  Config config = small_config();
  config.pace = 1;
  Simulation sim(config);
  const auto before = std::chrono::steady_clock::now();
  Stream& stream = sim.stream();
  sim.work(stream, kCompute, 30'000'000);
  EXPECT_EQ(sim.engine.wait(stream), CUDA_SUCCESS);
  // A lower bound is what pacing promises; construction lies between the two clocks' starts.
  EXPECT_GE(std::chrono::steady_clock::now() - sim.engine.impl().wall_start, std::chrono::milliseconds(30));
  EXPECT_GE(before, sim.engine.impl().wall_start);
}

TEST(Timing, LongChainsAreNoProblem) {
  Simulation sim;
  Stream& a = sim.stream();
  for (int i = 0; i < 100'000; ++i) {
    const EventPtr event = sim.event();
    sim.engine.impl().record(*event, a);
    EXPECT_EQ(sim.engine.impl().destroy_event(event->handle), CUDA_SUCCESS);
  }
  {  // …nor is ending with work still queued
    Config config = small_config(std::uint64_t{5});
    config.device.launch_queue_depth = 0;
    Simulation abandoned(config);
    Stream& stream = abandoned.stream();
    for (int i = 0; i < 100'000; ++i) abandoned.pieces(stream, 1, [](std::uint32_t, AccessLog&) {});
  }
  EXPECT_EQ(sim.engine.wait(a), CUDA_SUCCESS);
}

}  // namespace
}  // namespace cudasim::test
