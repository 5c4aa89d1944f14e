// Device times of an iteration, from records as an agent writes them.
#include "planner/iteration/measured_times.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "planner/iteration/iteration_planner.h"
#include "planner/iteration/record_builder.h"
#include "planner/sending/iteration_problem.h"
#include "planner/swap/simulation/verify.h"

namespace memopt::planner {
namespace {

using Source = IterationTimes::Source;

// A program whose operations follow each other on the device, which the test lets idle now and then.
class Program {
 public:
  std::uint64_t clock = 1;  // the device's
  std::uint64_t idle = 0;   // before the next operation
  std::function<bool(std::uint64_t operation)> measured = [](std::uint64_t) { return true; };
  bool knows_idle = true;
  std::uint64_t stack = 1;  // of mallocs

  std::uint64_t malloc(std::uint64_t bytes) {
    add(builder_.malloc(next_block_, bytes, stack, 7));
    return next_block_++;
  }
  void free(std::uint64_t block) { add(builder_.free(block)); }
  void launch(std::uint32_t function, std::uint64_t block, std::uint64_t nanoseconds) {
    add(builder_.launch(function, {&block, 1}));
    took(nanoseconds);
  }
  void copy_to_device(std::uint64_t block, std::uint64_t bytes, std::uint64_t nanoseconds) {
    add(builder_.copy(block, 0, bytes, shm::CopyKind::kToDevice));
    took(nanoseconds);
  }
  void memset(std::uint64_t block, std::uint64_t bytes, std::uint64_t nanoseconds) {
    add(builder_.memset(block, bytes));
    took(nanoseconds);
  }
  void lose(std::uint64_t records) {
    builder_.skip_sequence(records);
    gap_ = true;
    planner_.add_gap();
  }

  // Looks for the iteration, as it is now.
  bool plan() {
    planner_.check();
    // As TimedIteration does: it may be laid out as the last one.
    if (!planner_.plan() || planner_.plan()->detected_at == detected_at_) return false;
    detected_at_ = planner_.plan()->detected_at;
    times_.begin(planner_.store(), *planner_.plan());
    problem_.emplace(planner_.store(), *planner_.plan(), "test");
    return true;
  }
  IterationTimes times() {
    times_.follow(planner_.store());
    return times_.of_iteration();
  }
  IterationProblem problem(const IterationTimes& times) const { return problem_->build(times); }
  // Of the iteration, by function.
  std::vector<IterationTimes::Time> on_device(const IterationTimes& times) const {
    std::vector<IterationTimes::Time> found;
    for (std::size_t k = 0; k < times.operations.size(); ++k) {
      const OperationKind kind = kinds_of_last_plan()[k];
      if (kind != OperationKind::kMalloc && kind != OperationKind::kFree) found.push_back(times.operations[k]);
    }
    return found;
  }
  void note_kinds() {
    kinds_.clear();
    for (const std::uint32_t position : planner_.plan()->lifetimes.order) {
      kinds_.push_back(planner_.store().operations()[position].kind);
    }
  }

 private:
  const std::vector<OperationKind>& kinds_of_last_plan() const { return kinds_; }

  void add(const shm::RecordView& record) {
    times_.add(0, record, std::exchange(gap_, false));
    planner_.add(0, record);
  }
  void took(std::uint64_t nanoseconds) {
    const std::uint64_t sequence = builder_.sequence();
    const std::uint64_t before = std::exchange(idle, 0);
    clock += before + nanoseconds;
    if (!measured(operations_++)) return;
    const std::uint32_t known = knows_idle ? static_cast<std::uint32_t>(before) : shm::kIdleUnknown;
    add(builder_.kernel_time({sequence, nanoseconds, clock}, known));
  }

  RecordBuilder builder_;
  IterationPlanner planner_;
  MeasuredTimes times_;
  std::optional<IterationProblemBuilder> problem_;
  std::vector<OperationKind> kinds_;
  std::uint64_t detected_at_ = 0;
  std::uint64_t next_block_ = 1;
  std::uint64_t operations_ = 0;
  bool gap_ = false;
};

// So long as nothing else is said: 2 + 3 + 4 ns, of which nothing is in between.
void iterate(Program& program, std::uint64_t slower = 0) {
  const std::uint64_t block = program.malloc(1 << 20);
  program.memset(block, 1 << 20, 2000 + slower);
  program.launch(1, block, 3000 + slower);
  program.launch(2, block, 4000 + slower);
  program.free(block);
}

void plan(Program& program) {
  for (int i = 0; i < 100; ++i) {
    iterate(program);
    if (program.plan()) break;
  }
  program.note_kinds();
}

// A program's calls may come from other places than in its first iterations.
TEST(MeasuredTimes, WhatWasMeasuredUnderOtherCallStacksCounts) {
  Program program;
  plan(program);
  program.stack = 2;
  program.measured = [](std::uint64_t) { return false; };
  bool again = false;
  for (int i = 0; i < 100 && !again; ++i) {
    iterate(program);
    again = program.plan();
  }
  ASSERT_TRUE(again) << "the planner takes it for another iteration";
  program.note_kinds();
  const IterationTimes times = program.times();
  EXPECT_EQ(times.from(Source::kMeasured), 3u);
  EXPECT_EQ(times.busy, 9000u);
}

// Iterations differ: a sum of the least times of each operation would be less than any of them takes.
TEST(MeasuredTimes, OfTimesThatDifferMuchTheMiddleOne) {
  Program program;
  plan(program);
  for (std::uint64_t i = 0; i < 100; ++i) iterate(program, 100'000 + 1000 * i);
  const IterationTimes times = program.times();
  // But for what the host may have added.
  EXPECT_NEAR(static_cast<double>(times.busy), 3 * (150'000 - 10'000) + 9000, 3 * 10'000);
}

TEST(MeasuredTimes, TheLeastOfTheIterationsThatWereSeen) {
  Program program;
  plan(program);
  for (std::uint64_t i = 0; i < 10; ++i) iterate(program, 100 - 10 * i);
  const IterationTimes times = program.times();
  EXPECT_TRUE(times.known());
  EXPECT_EQ(times.on_device, 3u);
  EXPECT_EQ(times.from(Source::kMeasured), 3u);
  EXPECT_EQ(times.busy, 9000u);
  std::vector<std::uint64_t> each;
  for (const auto& time : program.on_device(times)) each.push_back(time.busy);
  EXPECT_EQ(each, (std::vector<std::uint64_t>{2000, 3000, 4000}));
}

TEST(MeasuredTimes, NothingMeasuredIsNotKnown) {
  Program program;
  program.measured = [](std::uint64_t) { return false; };
  plan(program);
  const IterationTimes times = program.times();
  EXPECT_FALSE(times.known());
  EXPECT_EQ(times.from(Source::kUnknown), 3u);
}

TEST(MeasuredTimes, OthersSpeakForWhatWasNotMeasured) {
  Program program;
  // Before the iteration: launches of functions 1 and 9, one that is not in it, and copies of two sizes.
  const std::uint64_t block = program.malloc(4096);
  program.launch(1, block, 700);
  program.launch(9, block, 500);
  program.launch(9, block, 600);
  program.copy_to_device(block, 1000, 300);
  program.copy_to_device(block, 4000, 900);
  program.measured = [](std::uint64_t) { return false; };
  const auto one = [&](bool measured) {
    const std::uint64_t own = program.malloc(1 << 20);
    program.measured = [measured](std::uint64_t) { return measured; };
    program.launch(3, own, 5000);
    program.measured = [](std::uint64_t) { return false; };
    program.launch(1, own, 1);
    program.launch(2, own, 1);
    program.copy_to_device(own, 1000, 1);
    program.copy_to_device(own, 3000, 1);
    program.copy_to_device(own, 40000, 1);
    program.memset(own, 10, 1);
    program.free(own);
  };
  for (int i = 0; i < 20; ++i) {
    one(false);
    if (program.plan()) break;
  }
  program.note_kinds();
  one(true);
  const IterationTimes times = program.times();
  std::vector<std::pair<std::uint64_t, Source>> each;
  for (const auto& time : program.on_device(times)) each.emplace_back(time.busy, time.source);
  EXPECT_EQ(each, (std::vector<std::pair<std::uint64_t, Source>>{
                      {5000, Source::kMeasured},
                      {700, Source::kAlike},
                      {2850, Source::kGuessed},  // for as many bytes as 5000 and 700
                      {300, Source::kAlike},
                      {900, Source::kGuessed},
                      {9000, Source::kGuessed},
                      {0, Source::kUnknown}}));
  EXPECT_EQ(times.on_device, 7u);
  EXPECT_EQ(times.from(Source::kMeasured), 1u);
  EXPECT_EQ(times.from(Source::kAlike), 2u);
  EXPECT_EQ(times.from(Source::kGuessed), 3u);
}

// One function with one grid takes what its operations take on average, so that the sum is right; of the size if any of
// that size were measured.
TEST(MeasuredTimes, WhatIsAlikeTakesAsLongAsThoseInTheIterationOnAverage) {
  for (const bool same_size : {false, true}) {
    Program program;
    const auto one = [&] {
      const std::uint64_t last = program.malloc(same_size ? 2 << 20 : 5 << 20);
      const std::uint64_t other = program.malloc(3 << 20);
      for (const std::uint64_t took : {1000, 5000, 9000}) {
        const std::uint64_t block = program.malloc(2 << 20);
        program.launch(3, block, took);
        program.free(block);
      }
      program.launch(3, other, 1000);
      program.launch(3, last, 7000);
      program.free(last);
      program.free(other);
    };
    program.measured = [](std::uint64_t operation) { return operation % 5 != 4; };
    for (int i = 0; i < 20 && !program.plan(); ++i) one();
    program.note_kinds();
    one();
    std::uint64_t alike = 0;
    for (const auto& time : program.on_device(program.times())) {
      if (time.source == Source::kAlike) alike = time.busy;
    }
    EXPECT_EQ(alike, same_size ? 5000u : 4000u);
  }
}

void iterate_idling(Program& program, std::uint64_t at_the_end) {
  const std::uint64_t block = program.malloc(1 << 20);
  program.memset(block, 1 << 20, 2000);
  program.idle = 500;
  program.launch(1, block, 3000);
  program.launch(2, block, 4000);
  program.free(block);
  // What idles before an operation of which it is not known.
  program.clock += at_the_end;
}

TEST(MeasuredTimes, IdleTimesAreWhereTheyWereSeenElseTheSameEverywhere) {
  for (const bool known : {true, false}) {
    Program program;
    program.knows_idle = known;
    for (int i = 0; i < 100; ++i) {
      iterate_idling(program, 200);
      if (program.plan()) break;
    }
    program.note_kinds();
    for (int i = 0; i < 10; ++i) iterate_idling(program, 200);
    const IterationTimes times = program.times();
    EXPECT_EQ(times.period, 9700u);
    EXPECT_EQ(times.busy, 9000u);
    EXPECT_EQ(times.total(), 9700u);
    EXPECT_EQ(times.idle_at_end, known ? 200u : 1u);
    const std::vector<IterationTimes::Time> each = program.on_device(times);
    EXPECT_EQ(each[0].idle, known ? 0u : 233u);
    EXPECT_EQ(each[1].idle, known ? 500u : 233u);
    EXPECT_EQ(each[2].idle, known ? 0u : 233u);
    // Written down, the idle times are operations that do nothing.
    const IterationProblem iteration = program.problem(times);
    EXPECT_EQ(iteration.ranks, known ? (std::vector<std::uint64_t>{0, 1, 1, 2, 3, 4, 4})
                                     : (std::vector<std::uint64_t>{0, 0, 1, 1, 2, 2, 3, 4, 4}));
    EXPECT_EQ(iteration.problem.period, 9700);
    const swap::Report report = swap::verify(iteration.problem, {{}, iteration.places});
    EXPECT_FALSE(report.fault.has_value()) << *report.fault;
    std::vector<double> begins;
    for (const swap::Operation& operation : iteration.problem.operations) {
      if (operation.kind == swap::Kind::kNothing) begins.push_back(operation.time);
    }
    EXPECT_EQ(begins, known ? (std::vector<double>{2000, 9500}) : (std::vector<double>{0, 2233, 5466, 9699}));
  }
}

// Where no operation was measured in two iterations, those around where it would have been tell about how long one
// takes.
TEST(MeasuredTimes, HowLongAnIterationTakesIsAboutKnownFromOthers) {
  Program program;
  std::uint64_t operations = 0;
  std::set<std::uint64_t> wanted;
  program.measured = [&](std::uint64_t operation) {
    operations = operation + 1;
    return wanted.contains(operation);
  };
  for (int i = 0; i < 100 && !program.plan(); ++i) iterate_idling(program, 200);
  EXPECT_EQ(program.times().pace, 0u);
  // The second of three; an iteration later the first and the third.
  wanted = {operations + 1, operations + 3, operations + 5};
  for (int i = 0; i < 2; ++i) iterate_idling(program, 200);
  IterationTimes times = program.times();
  EXPECT_EQ(times.period, 0u);
  // In the middle of 3500 and 4000 ns, as the second would lie.
  EXPECT_EQ(times.pace, 9950u);
  wanted = {operations + 1};
  iterate_idling(program, 200);
  times = program.times();
  EXPECT_EQ(times.period, 9700u);
  EXPECT_EQ(times.pace, 9700u);
}

TEST(MeasuredTimes, StreamsThatRunAtTheSameTimeLeaveNoRoomForIdleTimes) {
  Program program;
  const auto one = [&] {
    const std::uint64_t block = program.malloc(1 << 20);
    program.idle = 1000;
    program.launch(1, block, 3000);
    program.clock -= 1500;  // the other one began earlier
    program.launch(2, block, 4000);
    program.free(block);
  };
  for (int i = 0; i < 100; ++i) {
    one();
    if (program.plan()) break;
  }
  program.note_kinds();
  for (int i = 0; i < 10; ++i) one();
  const IterationTimes times = program.times();
  EXPECT_EQ(times.period, 6500u);
  EXPECT_EQ(times.busy, 7000u);
  EXPECT_EQ(times.total(), 7000u);
}

TEST(MeasuredTimes, AnIterationThatIsLeftIsKnownAgain) {
  for (const bool lost : {false, true}) {
    Program program;
    program.measured = [](std::uint64_t) { return false; };
    plan(program);
    // Part of one, then something else.
    const std::uint64_t block = program.malloc(1 << 20);
    program.memset(block, 1 << 20, 2000);
    program.measured = [](std::uint64_t) { return true; };
    program.launch(7, block, 999);
    program.memset(block, 1 << 20, 1);  // not one of the iteration's
    program.free(block);
    if (lost) program.lose(3);
    for (int i = 0; i < 3; ++i) iterate(program);
    const IterationTimes times = program.times();
    EXPECT_EQ(times.from(Source::kMeasured), 3u);
    EXPECT_EQ(times.busy, 9000u);
    EXPECT_EQ(times.period, 9000u);
  }
}

TEST(MeasuredTimes, RecordsThatMakeNoSenseAreLeftOut) {
  MeasuredTimes times;
  RecordBuilder builder;
  const std::uint64_t block = 1;
  times.add(0, builder.kernel_time({99, 5, 5}, 0), false);
  times.add(~0u, builder.launch(1, {&block, 1}), false);
  times.add(0, builder.kernel_time({builder.sequence(), 5, 5}, 0), false);
  times.add(0, builder.launch(1, {&block, 1}), false);
  times.add(0, builder.kernel_time({builder.sequence(), ~std::uint64_t{0}, 5}, 0), false);
  EXPECT_FALSE(times.of_iteration().known());
}

}  // namespace
}  // namespace memopt::planner
