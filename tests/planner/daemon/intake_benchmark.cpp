// What a record costs memoptd, from the ring to the store of operations, with the checks for an iteration at their
// points: processor time of one thread, per record. For numbers: --benchmark_min_time=1
//
// A ring of the default size is filled, outside the measured time, and read empty, again and again. The streams:
//  - fills: a launch that names a block and a fill in turn, as agent_throughput writes them. Nothing is ever allocated.
//  - training: an iteration of 3,000 operations, planned early and seen to go on.
//  - unlike: the same kinds, but nothing repeats: checks never end well.
//  - threads: `fills`, each operation by another of four threads.
#include <benchmark/benchmark.h>

#include <ctime>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "planner/daemon/intake.h"
#include "planner/program.h"
#include "tests/shm/test_ring.h"

namespace memopt::planner {
namespace {

constexpr std::size_t kRingBytes = std::size_t{16} << 20;

double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

struct NoSink final : Sink {
  void record(std::uint32_t /*lane*/, const shm::RecordView& record) override {
    benchmark::DoNotOptimize(record.header.sequence);
  }
  void records(std::uint32_t /*lane*/, const shm::RecordRun& run) override { benchmark::DoNotOptimize(run.begin()); }
  void gap() override {}
};

struct PlanningSink final : Sink {
  void record(std::uint32_t lane, const shm::RecordView& record) override { program.add(lane, record); }
  void records(std::uint32_t lane, const shm::RecordRun& run) override { program.add(lane, run); }
  void gap() override { program.add_gap(); }
  std::optional<std::vector<std::byte>> check_point() override { return program.plan(); }
  std::string note() override { return program.note(); }
  Program program;
};

struct NoOutbox final : Outbox {
  void send_plan(std::vector<std::byte> /*plan*/) override {}
  void send_note(std::string_view /*note*/) override {}
};

// Writes records with growing numbers into one ring or several.
class Stream {
 public:
  explicit Stream(std::uint32_t lanes) {
    for (std::uint32_t lane = 0; lane < lanes; ++lane) {
      rings_.push_back(std::make_unique<test::TestRing>(lane, kRingBytes / lanes));
    }
  }
  virtual ~Stream() = default;
  virtual void write() = 0;  // one record

  std::uint64_t sequence() const { return sequence_; }
  const std::vector<std::unique_ptr<test::TestRing>>& rings() const { return rings_; }

 protected:
  void launch(std::uint32_t function, std::span<const std::uint64_t> blocks) {
    shm::LaunchBody body{};
    body.accesses = static_cast<std::uint32_t>(blocks.size());
    put(shm::RecordKind::kLaunch, function, body, blocks);
  }
  void memset(std::uint64_t block) { put(shm::RecordKind::kMemset, 0, shm::MemsetBody{0, block, 4096}); }
  void malloc(std::uint64_t block, std::uint64_t bytes, std::uint64_t stack) {
    put(shm::RecordKind::kMalloc, 0, shm::MallocBody{block, bytes, stack, 0x1234, 0, block << 9});
  }
  void free(std::uint64_t block) { put(shm::RecordKind::kFree, 0, shm::FreeBody{block, 0}); }

 private:
  template <typename Body>
  void put(shm::RecordKind kind, std::uint32_t aux, const Body& body, std::span<const std::uint64_t> behind = {}) {
    const std::size_t bytes = sizeof(shm::RecordHeader) + sizeof(Body) + behind.size_bytes();
    shm::RingWriter& writer = rings_[++sequence_ % rings_.size()]->writer;
    std::byte* const at = writer.reserve(bytes);
    if (at == nullptr) std::abort();
    const shm::RecordHeader header{
        static_cast<std::uint8_t>(kind), 0, static_cast<std::uint16_t>(bytes / 8), aux, sequence_, sequence_ * 500};
    std::memcpy(at, &header, sizeof(header));
    std::memcpy(at + sizeof(header), &body, sizeof(body));
    if (!behind.empty()) std::memcpy(at + sizeof(header) + sizeof(body), behind.data(), behind.size_bytes());
    writer.commit(bytes);
  }

  std::vector<std::unique_ptr<test::TestRing>> rings_;
  std::uint64_t sequence_ = 0;
};

class Fills final : public Stream {
 public:
  explicit Fills(std::uint32_t lanes = 1) : Stream(lanes) {}
  void write() override {
    const std::uint64_t block = 1 + step_ / 2 % 64;
    if (step_++ % 2 == 0) {
      launch(1, {&block, 1});
    } else {
      memset(block);
    }
  }

 private:
  std::uint64_t step_ = 0;
};

// 1,000 times: allocate, launch on it and on three others, free the one of 500 allocations ago.
class Training final : public Stream {
 public:
  explicit Training(bool repeats) : Stream(1), repeats_(repeats) {}
  void write() override {
    const std::uint64_t turn = step_ / 3, place = turn % 1000;
    const std::uint64_t newest = 1 + turn;
    switch (step_++ % 3) {
      case 0:
        malloc(newest, 512 * (1 + place), repeats_ ? place : random_());
        break;
      case 1: {
        const std::uint64_t blocks[] = {newest, newest > 1 ? newest - 1 : 1, newest > 20 ? newest - 20 : 1,
                                        newest > 400 ? newest - 400 : 1};
        launch(static_cast<std::uint32_t>(place % 100), blocks);
        break;
      }
      default:
        if (newest > 500) {
          free(newest - 500);
        } else {
          memset(newest);
        }
    }
  }

 private:
  const bool repeats_;
  std::mt19937_64 random_;
  std::uint64_t step_ = 0;
};

void measure(benchmark::State& state, Stream& stream, Sink& sink) {
  auto control = std::make_unique<shm::Control>();
  NoOutbox outbox;
  Intake intake(*control, false, sink, outbox);
  for (std::uint32_t lane = 0; lane < stream.rings().size(); ++lane) {
    std::string why;
    if (!intake.add_ring(stream.rings()[lane]->map(), lane, &why)) return state.SkipWithError(why.c_str());
  }
  // What waits in the rings stays below the half at which checks are passed over.
  const std::uint64_t batch = kRingBytes / 2 / 128;
  double longest = 0;
  for (auto _ : state) {
    for (std::uint64_t i = 0; i < batch; ++i) stream.write();
    const double begun = thread_seconds();
    while (intake.step({}) != Intake::Progress::kNothing) {
    }
    const double took = thread_seconds() - begun;
    state.SetIterationTime(took);
    longest = std::max(longest, took);
  }
  if (intake.next() != stream.sequence() + 1) state.SkipWithError("records are missing");
  const auto records = static_cast<double>(stream.sequence());
  state.counters["time/record"] =
      benchmark::Counter(records, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["longest_ms"] = longest * 1e3;
}

void intake_alone(benchmark::State& state) {
  Fills stream(static_cast<std::uint32_t>(state.range(0)));
  NoSink sink;
  measure(state, stream, sink);
}
BENCHMARK(intake_alone)->Arg(1)->Arg(4)->UseManualTime();

void fills(benchmark::State& state) {
  Fills stream;
  PlanningSink sink;
  measure(state, stream, sink);
}
BENCHMARK(fills)->UseManualTime();

void threads(benchmark::State& state) {
  Fills stream(4);
  PlanningSink sink;
  measure(state, stream, sink);
}
BENCHMARK(threads)->UseManualTime();

void training(benchmark::State& state) {
  Training stream(true);
  PlanningSink sink;
  measure(state, stream, sink);
}
BENCHMARK(training)->UseManualTime();

void unlike(benchmark::State& state) {
  Training stream(false);
  PlanningSink sink;
  measure(state, stream, sink);
}
BENCHMARK(unlike)->UseManualTime();

}  // namespace
}  // namespace memopt::planner

BENCHMARK_MAIN();
