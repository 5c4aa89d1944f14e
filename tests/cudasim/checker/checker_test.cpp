// Races found and not found, through the engine, with real memory.
#include "checker/checker.h"

#include <thread>

#include "random_program.h"
#include "simulation.h"

namespace cudasim::test {
namespace {

class CheckerTest : public testing::Test {
 protected:
  CheckerTest() { EXPECT_EQ(sim.memory.allocate(kContext, 2u << 20, &block), CUDA_SUCCESS); }

  void reads(Stream& stream, std::uint64_t begin, std::uint64_t end, std::string name = "reader") {
    sim.pieces(
        stream, 1, [at = block + begin, size = end - begin](std::uint32_t, AccessLog& log) { log.read(at, size); },
        std::move(name));
  }
  void writes(Stream& stream, std::uint64_t begin, std::uint64_t end, std::string name = "writer") {
    sim.pieces(
        stream, 1, [at = block + begin, size = end - begin](std::uint32_t, AccessLog& log) { log.write(at, size); },
        std::move(name));
  }
  void edge(Stream& from, Stream& to) {
    const EventPtr event = sim.event();
    sim.engine.impl().record(*event, from);
    sim.engine.impl().wait_event(to, *event);
  }
  std::uint64_t races() {
    EXPECT_EQ(sim.engine.wait_context(kContext), CUDA_SUCCESS);
    EXPECT_EQ(sim.counters.totals.races, sim.checker.races());
    return sim.checker.races();
  }
  bool reported(const std::string& text) { return sim.checker.last_race().find(text) != std::string::npos; }

  Simulation sim;
  CUdeviceptr block = 0;
  Stream &a = sim.stream(), &b = sim.stream();
};

TEST_F(CheckerTest, NamesBothOperationsTheBytesAndTheMissingEdge) {
  writes(a, 0, 4096, "kernel a");
  reads(b, 1024, 8192, "cuMemcpyDtoHAsync 7168 bytes");
  EXPECT_EQ(races(), 1u);
  EXPECT_TRUE(reported("not ordered: 'kernel a' on stream " + std::to_string(a.id) +
                       " (writes) and 'cuMemcpyDtoHAsync 7168 bytes' on stream " + std::to_string(b.id) +
                       " (reads): 3072 bytes of device memory at physical offset 0x"))
      << sim.checker.last_race();
  char address[32];
  std::snprintf(address, sizeof address, "accessed at 0x%llx;", static_cast<unsigned long long>(block + 1024));
  EXPECT_TRUE(reported(address)) << sim.checker.last_race();
  EXPECT_TRUE(reported("nothing makes stream " + std::to_string(b.id) + " wait for stream " + std::to_string(a.id)));
}

TEST_F(CheckerTest, AnEventIsAnEdge) {
  writes(a, 0, 4096);
  edge(a, b);
  reads(b, 0, 4096);
  edge(b, a);
  writes(a, 0, 4096);
  EXPECT_EQ(races(), 0u);
  EXPECT_EQ(sim.checker.last_race(), "");
}

TEST_F(CheckerTest, EdgesAreTransitive) {
  Stream& c = sim.stream();
  writes(a, 0, 64);
  edge(a, b);
  edge(b, c);
  reads(c, 0, 64);
  EXPECT_EQ(races(), 0u);
}

TEST_F(CheckerTest, AWaitBeforeTheRecordIsNoEdge) {
  const EventPtr event = sim.event();
  sim.engine.impl().wait_event(b, *event);
  writes(a, 0, 64);
  sim.engine.impl().record(*event, a);
  reads(b, 0, 64);
  EXPECT_EQ(races(), 1u);
}

TEST_F(CheckerTest, ReadersNeedNoOrder) {
  reads(a, 0, 4096);
  reads(b, 0, 4096);
  EXPECT_EQ(races(), 0u);
}

TEST_F(CheckerTest, AWriteIsCheckedAgainstEveryReader) {
  Stream& c = sim.stream();
  reads(a, 0, 64, "reader a");
  reads(b, 0, 64, "reader b");
  edge(b, c);
  writes(c, 0, 64);
  EXPECT_EQ(races(), 1u);
  EXPECT_TRUE(reported("'reader a'"));
}

TEST_F(CheckerTest, OtherBytesAreNoRace) {
  writes(a, 0, 100);
  writes(b, 100, 200);
  EXPECT_EQ(races(), 0u);
}

TEST_F(CheckerTest, TheQueueOfACopyEngineIsNoOrder) {
  const auto copy = [&](Stream& stream) {
    sim.pieces(
        stream, 1, [at = block](std::uint32_t, AccessLog& log) { log.write(at, 64); }, "copy", Resource::kCopyIn);
  };
  copy(a);
  copy(b);
  EXPECT_EQ(races(), 1u);
}

TEST_F(CheckerTest, LegacyStreamOrdersBlockingStreamsOnly) {
  Stream &blocking = sim.stream(CU_STREAM_DEFAULT), &other = sim.stream(CU_STREAM_DEFAULT);
  writes(blocking, 0, 64);
  reads(sim.legacy(), 0, 64);
  writes(other, 0, 64);
  writes(sim.legacy(), 0, 64);
  EXPECT_EQ(races(), 0u);
  writes(a, 0, 64);  // after the wait in races()
  reads(sim.legacy(), 0, 64);
  EXPECT_EQ(races(), 1u);
}

TEST_F(CheckerTest, AWaitOrdersWhatTheHostQueuesNext) {
  writes(a, 0, 64);
  EXPECT_EQ(sim.engine.wait(a), CUDA_SUCCESS);
  reads(b, 0, 64);
  EXPECT_EQ(races(), 0u);
}

TEST_F(CheckerTest, ASuccessfulQueryOrdersAnUnsuccessfulOneDoesNot) {
  writes(a, 0, 64);
  EXPECT_EQ(sim.engine.query(a), CUDA_ERROR_NOT_READY);
  reads(b, 0, 64);
  EXPECT_EQ(races(), 1u);
  writes(a, 64, 128);
  sim.engine.charge(Duration(1000));
  EXPECT_EQ(sim.engine.query(a), CUDA_SUCCESS);
  reads(b, 64, 128);
  EXPECT_EQ(races(), 1u);
}

TEST_F(CheckerTest, HostAccessesAreChecked) {
  void* const bytes = reinterpret_cast<void*>(block);
  writes(a, 0, 64, "copy");
  sim.engine.host_access(bytes, 4, false);
  EXPECT_EQ(races(), 1u);
  EXPECT_TRUE(reported("'access by thread 1' on the host (reads)")) << sim.checker.last_race();
  sim.engine.host_access(bytes, 4, false);  // after the wait
  sim.engine.host_access(bytes, 4, true);
  reads(a, 0, 64);  // queued behind the host's write
  EXPECT_EQ(races(), 1u);
  reads(a, 0, 64);
  sim.engine.host_access(bytes, 64, false);  // two readers
  EXPECT_EQ(races(), 1u);
  reads(a, 0, 64);
  sim.engine.host_access(bytes, 1, true);  // while the copy may still read
  EXPECT_EQ(races(), 2u);
}

TEST_F(CheckerTest, HostThreadsAreOrderedByTheirCalls) {
  writes(a, 0, 64);
  sim.lock_.unlock();
  std::thread([&] {  // waits; the main thread, told by means that can't be seen, reads
    const std::lock_guard lock(sim.mutex);
    EXPECT_EQ(sim.engine.wait(a), CUDA_SUCCESS);
  })
      .join();
  sim.engine.host_access(reinterpret_cast<void*>(block), 64, false);
  sim.engine.host_access(reinterpret_cast<void*>(block), 64, true);
  std::thread([&] {  // queues what reads the main thread's write
    const std::lock_guard lock(sim.mutex);
    reads(b, 0, 64);
  })
      .join();
  sim.lock_.lock();
  EXPECT_EQ(races(), 0u);
}

TEST_F(CheckerTest, AHostFunctionTellsTheHost) {
  bool told = false;
  writes(a, 0, 64);
  sim.host_function(a, [&] { told = true; });
  sim.engine.charge(Duration(1000));
  while (sim.engine.query(a) != CUDA_SUCCESS) {
  }
  EXPECT_TRUE(told);
  sim.engine.host_access(reinterpret_cast<void*>(block), 64, false);
  EXPECT_EQ(races(), 0u);
}

TEST_F(CheckerTest, AliasesAreTheSameBytes) {
  const ByteRange bytes{ByteRange::Space::kDevice, 4096, 8192};
  const ByteRange pinned{ByteRange::Space::kPinned, 4096, 8192};
  VectorClock first, second;
  const ActorId x = sim.checker.add_actor("x"), y = sim.checker.add_actor("y");
  first.set(x, 1);
  second.set(y, 1);
  sim.checker.check_bytes(x, first, "one", {}, {&bytes, 1});
  sim.checker.check_bytes(y, second, "two", {&pinned, 1}, {});  // another space
  EXPECT_EQ(sim.checker.races(), 0u);
  sim.checker.check_bytes(y, second, "two", {&bytes, 1}, {});
  EXPECT_EQ(sim.checker.races(), 1u);
}

TEST_F(CheckerTest, FreeMustBeOrderedAndForgets) {
  const ByteRange bytes{ByteRange::Space::kPinned, 0, 64};
  VectorClock writer, freer, next;
  const ActorId x = sim.checker.add_actor("x"), y = sim.checker.add_actor("y");
  writer.set(x, 1);
  freer.set(y, 1);
  next.set(y, 2);
  sim.checker.check_bytes(x, writer, "write", {}, {&bytes, 1});
  sim.checker.forget(y, freer, "cuMemFreeHost", {&bytes, 1});
  EXPECT_EQ(sim.checker.races(), 1u);
  EXPECT_TRUE(reported("'cuMemFreeHost' on y (frees)")) << sim.checker.last_race();
  sim.checker.check_bytes(y, next, "write", {}, {&bytes, 1});
  EXPECT_EQ(sim.checker.races(), 1u);
}

TEST_F(CheckerTest, EngineForgetsByTheClockOfWhoFrees) {
  const ByteRange bytes{ByteRange::Space::kPinned, 0, 64};
  VectorClock writer;
  const ActorId x = sim.checker.add_actor("x");
  writer.set(x, 1);
  sim.checker.check_bytes(x, writer, "write", {}, {&bytes, 1});
  sim.pieces(a, 1, [&](std::uint32_t, AccessLog&) { sim.engine.forget("free in stream order", {&bytes, 1}); });
  EXPECT_EQ(races(), 1u);
  EXPECT_TRUE(reported("on stream " + std::to_string(a.id) + " (frees)")) << sim.checker.last_race();
  sim.checker.check_bytes(x, writer, "write", {}, {&bytes, 1});
  sim.engine.forget("cuMemFreeHost", {&bytes, 1});
  EXPECT_TRUE(reported("'cuMemFreeHost' on the host (frees)")) << sim.checker.last_race();
}

TEST_F(CheckerTest, APairIsCountedOnceAndTheFirstTenAreShown) {
  testing::internal::CaptureStderr();
  sim.pieces(
      a, 4, [&](std::uint32_t piece, AccessLog& log) { log.write(block + piece * 64, 64); }, "many pieces");
  sim.pieces(
      b, 4, [&](std::uint32_t piece, AccessLog& log) { log.write(block + piece * 64, 64); }, "many pieces");
  EXPECT_EQ(races(), 1u);
  for (int i = 0; i < 14; ++i) {
    writes(a, 0, 64, "a" + std::to_string(i));
    writes(b, 0, 64, "b" + std::to_string(i));
    EXPECT_EQ(races(), std::uint64_t(2 + i));
  }
  const std::string text = testing::internal::GetCapturedStderr();
  std::size_t lines = 0;
  for (std::size_t at = text.find("not ordered"); at != std::string::npos; at = text.find("not ordered", at + 1))
    ++lines;
  EXPECT_EQ(lines, 10u);
  EXPECT_NE(text.find("counted only"), std::string::npos);
}

TEST_F(CheckerTest, ANumberIsUsedAgainOnlyWhenThatHidesNothing) {
  CUstream handle = nullptr;
  ASSERT_EQ(sim.engine.create_stream(kContext, CU_STREAM_NON_BLOCKING, 0, &handle), CUDA_SUCCESS);
  Stream* first = sim.engine.find_stream(kContext, handle, StreamMode::kLegacy);
  const ActorId number = first->actor;
  writes(*first, 0, 64);
  ASSERT_EQ(sim.engine.destroy_stream(handle), CUDA_SUCCESS);
  Stream& second = sim.stream();
  EXPECT_NE(second.actor, number);  // the host has not waited
  reads(second, 0, 64);
  EXPECT_EQ(races(), 1u);
  EXPECT_EQ(sim.stream().actor, number);
}

// Bytes that queued operations give out and free.
class PooledBytesTest : public CheckerTest {
 protected:
  std::vector<ByteRange> bytes() {
    std::vector<ByteRange> ranges;
    sim.memory.for_each_byte_range(block, 4096, [&](ByteRange range) { ranges.push_back(range); });
    return ranges;
  }
  OperationPtr allocates(Stream& stream, const std::vector<OperationPtr>& ran_before = {}) {
    return queue(stream, &Engine::allocate, "cuMemAllocAsync", ran_before);
  }
  OperationPtr frees(Stream& stream) { return queue(stream, &Engine::free_in_order, "cuMemFreeAsync", {}); }

 private:
  OperationPtr queue(Stream& stream, void (Engine::*what)(const std::string&, std::span<const ByteRange>),
                     const char* name, const std::vector<OperationPtr>& ran_before) {
    Work work;
    work.name = name;
    work.run = [this, what, name](std::uint32_t, AccessLog&) {
      (sim.engine.*what)(name, bytes());
      return CUDA_SUCCESS;
    };
    return sim.engine.impl().queue_marker(stream, std::move(work), {}, ran_before);
  }
};

TEST_F(PooledBytesTest, UseBetweenTheTwoIsRight) {
  sim.engine.reserve("a memory pool", bytes());
  for (int i = 0; i < 3; ++i) {
    allocates(a);
    writes(a, 0, 4096);
    edge(a, b);
    reads(b, 0, 4096);
    edge(b, a);
    frees(a);
  }
  EXPECT_EQ(races(), 0u) << sim.checker.last_race();
}

TEST_F(PooledBytesTest, UseThatIsNotOrderedBehindTheAllocation) {
  allocates(a);
  writes(b, 0, 64, "kernel");
  EXPECT_EQ(races(), 1u);
  EXPECT_TRUE(
      reported("not ordered: 'cuMemAllocAsync' on stream " + std::to_string(a.id) + " (allocates) and 'kernel'"))
      << sim.checker.last_race();
}

TEST_F(PooledBytesTest, UseThatIsNotOrderedBeforeTheFree) {
  allocates(a);
  edge(a, b);
  reads(b, 0, 64, "kernel");
  frees(a);
  EXPECT_EQ(races(), 1u);
  EXPECT_TRUE(reported("'kernel'") && reported("'cuMemFreeAsync' on stream " + std::to_string(a.id)))
      << sim.checker.last_race();
}

TEST_F(PooledBytesTest, UseBehindTheFree) {
  allocates(a);
  frees(a);
  writes(a, 100, 200, "kernel");
  EXPECT_EQ(races(), 1u);
  EXPECT_TRUE(reported("used after it was freed: 'cuMemFreeAsync' on stream " + std::to_string(a.id) +
                       " (frees) and 'kernel' on stream " + std::to_string(a.id) + " (writes): 100 bytes"))
      << sim.checker.last_race();
  allocates(a);
  writes(a, 0, 4096);
  EXPECT_EQ(races(), 1u) << "it is somebody's again";
}

TEST_F(PooledBytesTest, UseOfWhatNobodyHasAllocated) {
  sim.engine.reserve("a memory pool", bytes());
  reads(a, 4000, 5000, "kernel");
  EXPECT_EQ(races(), 1u);
  EXPECT_TRUE(reported("not allocated: 'a memory pool' on the host (reserves) and 'kernel' on stream " +
                       std::to_string(a.id) + " (reads): 96 bytes"))
      << sim.checker.last_race();
}

TEST_F(PooledBytesTest, ReuseOfWhatIsOverIsRight) {
  allocates(a);
  writes(a, 0, 4096, "first user");
  allocates(b, {frees(a)});  // the driver has seen that it is over
  writes(b, 0, 4096, "second user");
  EXPECT_EQ(races(), 0u) << sim.checker.last_race();
}

TEST_F(PooledBytesTest, ReuseOfWhatIsOverGivesTheProgramNoEdge) {
  CUdeviceptr other = 0;
  ASSERT_EQ(sim.memory.allocate(kContext, 4096, &other), CUDA_SUCCESS);
  allocates(a);
  sim.pieces(
      a, 1, [&](std::uint32_t, AccessLog& log) { log.write(other, 64); }, "writer");
  allocates(b, {frees(a)});
  sim.pieces(
      b, 1, [&](std::uint32_t, AccessLog& log) { log.read(other, 64); }, "reader");
  EXPECT_EQ(races(), 1u);
  EXPECT_TRUE(reported("'writer'") && reported("'reader'")) << sim.checker.last_race();
}

TEST(CheckerOff, FindsNothing) {
  Config config = small_config();
  config.check = false;
  Simulation sim(config);
  CUdeviceptr block = 0;
  ASSERT_EQ(sim.memory.allocate(kContext, 4096, &block), CUDA_SUCCESS);
  for (Stream* stream : {&sim.stream(), &sim.stream()}) {
    sim.pieces(*stream, 1, [&](std::uint32_t, AccessLog& log) { log.write(block, 64); });
  }
  EXPECT_EQ(sim.engine.wait_context(kContext), CUDA_SUCCESS);
  EXPECT_EQ(sim.checker.races(), 0u);
}

// A race is found exactly if there is one, in whatever order the bytes have changed.
TEST(CheckerOracle, AgreesWithHappensBeforeByBruteForce) {
  int with = 0, without = 0;
  for (std::uint64_t program = 0; program < 200; ++program) {
    RandomProgram::Shape shape;
    shape.calls = 20 + int(program % 60);
    shape.host_accesses = true;
    shape.bytes = program % 2 == 0 ? 64 : 4096;
    shape.most_accesses = 2;
    for (const std::optional<std::uint64_t> seed :
         {std::optional<std::uint64_t>(), std::optional<std::uint64_t>(program)}) {
      RandomProgram run(program, seed, shape);
      testing::internal::CaptureStderr();
      run.run();
      testing::internal::GetCapturedStderr();
      ASSERT_TRUE(run.violations().empty()) << run.violations().front();
      ASSERT_EQ(run.simulation().checker.races() != 0, run.has_race())
          << "program " << program << ", " << run.simulation().checker.last_race();
      ++(run.has_race() ? with : without);
    }
  }
  EXPECT_GT(with, 50);
  EXPECT_GT(without, 50);
}

}  // namespace
}  // namespace cudasim::test
