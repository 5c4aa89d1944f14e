// A planned iteration as the swap planner's problem: it holds with the places of its layout, and through a file it is
// the same.
#include "planner/sending/iteration_problem.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "planner/iteration/trace_file.h"
#include "planner/sending/timed_iteration.h"
#include "planner/swap/files/plan_file.h"
#include "planner/swap/model/liveness.h"
#include "planner/swap/simulation/verify.h"
#include "tests/planner/iteration/stream.h"
#include "tests/planner/sending/told.h"
#include "tests/planner/sending/training.h"

namespace memopt::planner {
namespace {

using swap::Kind;

// Ten ticks between two records.
class TimedStream : public Stream {
 public:
  using Stream::Stream;

  std::uint64_t malloc(std::uint64_t bytes, std::uint64_t stack = 1) {
    builder.ticks += 10;
    return Stream::malloc(bytes, stack);
  }
  void free(std::uint64_t block) {
    builder.ticks += 10;
    Stream::free(block);
  }
  void launch(std::uint32_t function, std::initializer_list<std::uint64_t> blocks) {
    builder.ticks += 10;
    Stream::launch(function, blocks);
  }
};

// Whatever the form of the file. Ranks are no part of it.
void expect_same_through_files(const IterationProblem& iteration) {
  swap::PlanFile file{.problem = iteration.problem, .decisions = {{}, iteration.places}, .comment = {}, .spelling = {}};
  for (const auto form : {swap::Spelling::Form::kPlanned, swap::Spelling::Form::kObserved}) {
    file.spelling.form = form;
    std::ostringstream text;
    swap::write_plan(file, text);
    const swap::PlanFile read = swap::parse_plan(text.str());
    EXPECT_EQ(read.problem, iteration.problem);
    EXPECT_EQ(read.decisions, file.decisions);
  }
  EXPECT_EQ(iteration.ranks.size(), iteration.problem.operations.size());
}

// Two ticks are a nanosecond. The store must be as it was when the plan was found.
IterationProblem built(const Stream& stream, Named named = Named::kEver) {
  return IterationProblemBuilder(stream.planner.store(), *stream.planner.plan(), "a \"name\"")
      .build([](std::uint64_t ticks) { return ticks / 2; }, named);
}

// And is the same when it was written and read.
void expect_to_hold(const IterationProblem& iteration) {
  const swap::Report report = swap::verify(iteration.problem, {{}, iteration.places});
  EXPECT_FALSE(report.fault.has_value()) << *report.fault;
  EXPECT_EQ(report.timing.added_ns, 0);
  expect_same_through_files(iteration);
}

const swap::Block& block_of(const IterationProblem& iteration, std::uint64_t bytes) {
  return *std::find_if(iteration.problem.blocks.begin(), iteration.problem.blocks.end(),
                       [&](const swap::Block& block) { return block.bytes == bytes; });
}

std::vector<swap::Operation> of_block(const IterationProblem& iteration, std::uint64_t bytes) {
  const auto index = static_cast<std::uint32_t>(&block_of(iteration, bytes) - iteration.problem.blocks.data());
  std::vector<swap::Operation> found;
  for (const swap::Operation& operation : iteration.problem.operations) {
    if (operation.block == index) found.push_back(operation);
  }
  return found;
}

IterationPlanner::Options unrolled() {
  IterationPlanner::Options options;
  options.planning.unroll = true;
  options.planning.pools = false;
  return options;
}

IterationPlanner::Options in_turn() {
  IterationPlanner::Options options;
  options.planning.pools = false;
  return options;
}

TEST(IterationProblem, AnOperationHasItsRecord) {
  TimedStream stream;
  const std::uint64_t weight = stream.malloc(1000, 9);
  const std::uint64_t unknown = weight + 1'000'000;  // its malloc was not seen
  do {
    const std::uint64_t block = stream.malloc(1 << 20);
    stream.launch(1, {weight, block});
    stream.launch(2, {unknown, block});
    stream.free(block);
  } while (stream.plans.empty());
  const IterationProblem iteration = built(stream);
  ASSERT_EQ(iteration.origins.size(), 4u);
  for (std::size_t i = 0; i < iteration.problem.operations.size(); ++i) {
    const IterationProblem::Origin origin = iteration.origins[iteration.ranks[i]];
    EXPECT_LE(origin.sequence, stream.builder.sequence());
    // Four records an iteration, behind the weight's malloc: a malloc, two launches, a free.
    const std::uint64_t place = (origin.sequence - 2) % 4;
    const Kind kind = iteration.problem.operations[i].kind;
    EXPECT_EQ(kind, place == 0 ? Kind::kMalloc : place == 3 ? Kind::kFree : Kind::kWrite) << i;
    EXPECT_EQ(origin.elsewhere, place == 2) << i;
  }
}

TEST(IterationProblem, BlocksOfALaunchStayUntilItIsOver) {
  TimedStream stream;
  const std::uint64_t weight = stream.malloc(1000, 9);
  do {
    const std::uint64_t block = stream.malloc(1 << 20);
    stream.launch(1, {weight, block});
    stream.free(block);
    stream.launch(2, {weight});
  } while (stream.plans.empty() && stream.builder.sequence() < 1000);
  ASSERT_FALSE(stream.plans.empty());
  const IterationProblem iteration = built(stream);
  expect_to_hold(iteration);
  EXPECT_EQ(iteration.problem.name, "a \"name\"");
  EXPECT_EQ(iteration.problem.period, 20) << "four records, five nanoseconds each";
  // The launch of both begins with one access of each, and ends with another of the first: it has the weight while it
  // runs. That of the weight alone needs no second one.
  const auto block = of_block(iteration, 1 << 20);
  ASSERT_EQ(block.size(), 3u);
  EXPECT_EQ(block[0].kind, Kind::kMalloc);
  EXPECT_EQ(block[1].kind, Kind::kWrite);
  EXPECT_EQ(block[2].kind, Kind::kFree);
  const auto accesses = of_block(iteration, 1000);
  ASSERT_EQ(accesses.size(), 3u);
  const double launched = block[1].time;
  const auto at = [&](double time) {
    return std::count_if(accesses.begin(), accesses.end(), [&](const auto& one) { return one.time == time; });
  };
  EXPECT_EQ(at(launched), 1);
  EXPECT_EQ(at(launched + 5), 1) << "its end";
}

TEST(IterationProblem, ALaunchAtTheEndOfTheIterationEndsWithIt) {
  TimedStream stream;
  const std::uint64_t weight = stream.malloc(1000, 9), other = stream.malloc(2000, 8);
  // Nothing lives across the launch, so the iteration ends with it.
  do {
    const std::uint64_t block = stream.malloc(1 << 20);
    stream.launch(1, {block});
    stream.free(block);
    stream.launch(2, {weight, other});
  } while (stream.plans.empty() && stream.builder.sequence() < 1000);
  ASSERT_FALSE(stream.plans.empty());
  const IterationProblem iteration = built(stream);
  expect_to_hold(iteration);
  EXPECT_EQ(of_block(iteration, 1000).size(), 2u);
  EXPECT_EQ(of_block(iteration, 2000).size(), 1u);
  double last = 0;
  for (const swap::Operation& operation : iteration.problem.operations) last = std::max(last, operation.time);
  EXPECT_LE(last, iteration.problem.period);
}

// Freed two iterations after it was allocated, and accessed in each.
TEST(IterationProblem, BlocksThatLiveForIterations) {
  for (const bool unroll : {false, true}) {
    TimedStream stream(unroll ? unrolled() : in_turn());
    std::vector<std::uint64_t> old;
    do {
      const std::uint64_t block = stream.malloc(1 << 20);
      stream.launch(1, {block});
      const std::uint64_t scratch = stream.malloc(1 << 18, 2);
      stream.launch(2, {block, scratch});
      for (const std::uint64_t one : old) stream.launch(3, {one});
      stream.free(scratch);
      old.push_back(block);
      if (old.size() <= 2) continue;
      stream.free(old.front());
      old.erase(old.begin());
    } while (stream.plans.empty() && stream.builder.sequence() < 1000);
    ASSERT_FALSE(stream.plans.empty());
    const IterationProblem iteration = built(stream);
    expect_to_hold(iteration);
    std::uint32_t oldest = 0;
    for (const swap::Operation& operation : of_block(iteration, 1 << 20)) oldest = std::max(oldest, operation.age);
    EXPECT_GE(oldest, 2u);
    const swap::Liveness liveness = swap::find_liveness(iteration.problem);
    EXPECT_EQ(liveness.peak, stream.planner.plan()->lifetimes.peak_load);
  }
}

// A stale word of a launch's parameters names a block in every third iteration only, whichever the last one is.
TEST(IterationProblem, WhatALaunchHasNamedItMayNameAgain) {
  for (const int phase : {0, 1, 2}) {
    TimedStream stream;
    const std::uint64_t weight = stream.malloc(1000, 9);
    for (int i = 0; stream.plans.empty() && i < 100; ++i) {
      const std::uint64_t kept = stream.malloc(1 << 20, 1);
      stream.launch(1, {weight, kept});
      const std::uint64_t scratch = stream.malloc(1 << 18, 2);
      if ((i + phase) % 3 == 0) {
        stream.launch(2, {scratch, kept});
      } else {
        stream.launch(2, {scratch});
      }
      stream.free(scratch);
      const std::uint64_t last = stream.malloc(1 << 17, 3);
      stream.launch(3, {weight, last});
      // One that names nothing else at all.
      if ((i + phase) % 3 == 0) {
        stream.launch(5, {kept});
      } else {
        stream.launch(5, {});
      }
      stream.free(last);
      stream.launch(4, {weight, kept});
      stream.free(kept);
    }
    ASSERT_FALSE(stream.plans.empty());
    const IterationProblem found = built(stream);
    expect_to_hold(found);
    const auto scratch = of_block(found, 1 << 18);
    const auto launch = std::find_if(scratch.begin(), scratch.end(), swap::is_access);
    ASSERT_NE(launch, scratch.end());
    const auto last = of_block(found, 1 << 17);
    const auto freed = std::find_if(last.begin(), last.end(), [](const auto& one) { return one.kind == Kind::kFree; });
    ASSERT_NE(freed, last.end());
    const auto kept = of_block(found, 1 << 20);
    for (const double time : {launch->time, freed->time - 5}) {
      EXPECT_TRUE(std::any_of(kept.begin(), kept.end(),
                              [&](const auto& one) { return swap::is_access(one) && one.time == time; }))
          << "phase " << phase << ", at " << time;
    }
  }
}

// Where what a launch has ever named has no room, that counts which it names as a rule, whichever repeat is the last.
TEST(IterationProblem, WhatALaunchSeldomNamesMayBeLeftOut) {
  for (const int phase : {0, 1, 2, 3, 4}) {
    TimedStream stream;
    const std::uint64_t weight = stream.malloc(1000, 9);
    for (int i = 0; stream.plans.size() < 2 && i < 200; ++i) {
      // Found once, and once more when it has been seen often.
      if (i == 40) stream.planner.plan_again();
      const std::uint64_t kept = stream.malloc(1 << 20, 1);
      stream.launch(1, {weight, kept});
      const std::uint64_t scratch = stream.malloc(1 << 18, 2);
      if ((i + phase) % 5 == 0) {
        stream.launch(2, {scratch, kept});
        stream.launch(5, {kept});
      } else {
        stream.launch(2, {scratch});
        stream.launch(5, {});
      }
      stream.free(scratch);
      stream.launch(4, {weight, kept});
      stream.free(kept);
    }
    ASSERT_EQ(stream.plans.size(), 2u);
    const IterationProblem ever = built(stream);
    const IterationProblem often = built(stream, Named::kOften);
    expect_to_hold(ever);
    expect_to_hold(often);
    EXPECT_EQ(largest_launch(ever), (std::uint64_t{1} << 20) + (1 << 18)) << phase;
    EXPECT_EQ(largest_launch(often), (std::uint64_t{1} << 20) + 1024) << phase;
    EXPECT_EQ(often.problem.period, ever.problem.period);
    EXPECT_EQ(often.ranks.back(), ever.ranks.back());
    const auto accesses = [](const IterationProblem& iteration) {
      const auto all = of_block(iteration, 1 << 20);
      return std::count_if(all.begin(), all.end(), [](const auto& one) { return swap::is_access(one); });
    };
    EXPECT_GT(accesses(ever), accesses(often));
    EXPECT_GE(accesses(often), 2);
  }
}

// What such a word names may have been freed by then in the last repeat.
TEST(IterationProblem, WhatIsGoneInTheLastRepeatIsNotNamed) {
  for (const int phase : {0, 1, 2}) {
    TimedStream stream;
    const std::uint64_t weight = stream.malloc(1000, 9);
    for (int i = 0; stream.plans.empty() && i < 100; ++i) {
      const bool late = (i + phase) % 3 == 0;
      const std::uint64_t kept = stream.malloc(1 << 20, 1);
      stream.lane = 3;
      const std::uint64_t other = stream.malloc(1 << 18, 2);
      stream.launch(1, {weight, other});
      stream.lane = 0;
      if (!late) stream.free(kept);
      stream.lane = 3;
      if (late) {
        stream.launch(2, {other, kept});
      } else {
        stream.launch(2, {other});
      }
      stream.free(other);
      stream.lane = 0;
      if (late) stream.free(kept);
      stream.launch(4, {weight});
    }
    ASSERT_FALSE(stream.plans.empty());
    expect_to_hold(built(stream));
  }
}

// Threads whose order is another one in each iteration, and launches that name other blocks now and then.
TEST(IterationProblem, SeveralLanes) {
  std::mt19937 random(3);
  for (int round = 0; round < 20; ++round) {
    TimedStream stream;
    std::vector<std::uint64_t> weights;
    for (std::uint64_t i = 0; i < 5; ++i) weights.push_back(stream.malloc((i + 1) << 12, 100 + i));
    while (stream.plans.empty() && stream.builder.sequence() < 5000) {
      std::vector<std::uint64_t> activations;
      stream.lane = 0;
      for (const std::uint64_t weight : weights) {
        activations.push_back(stream.malloc((activations.size() + 1) << 16, 2));
        stream.launch(1, {weight, activations.back()});
      }
      for (std::size_t i = weights.size(); i-- > 0;) {
        stream.lane = 5;
        const std::uint64_t scratch = stream.malloc((i + 1) << 15, 3 + i);
        if (round % 2 != 0 && random() % 8 == 0) {
          stream.launch(2, {weights[i], activations[i], scratch, activations[random() % (i + 1)]});
        } else {
          stream.launch(2, {weights[i], activations[i], scratch});
        }
        const bool first = random() % 2 == 0;
        stream.lane = first ? 0 : 5;
        first ? stream.launch(4, {weights[i]}) : stream.free(scratch);
        stream.lane = first ? 5 : 0;
        first ? stream.free(scratch) : stream.launch(4, {weights[i]});
        stream.lane = 5;
        stream.free(activations[i]);
      }
    }
    ASSERT_FALSE(stream.plans.empty());
    ASSERT_EQ(stream.planner.plan()->lifetimes.lanes.size(), 2u);
    expect_to_hold(built(stream));
  }
}

// Device times, of programs that are made up, with idle times between operations and without.
TEST(IterationProblem, IsTheSameThroughAFile) {
  int planned = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    class Kept final : public Told {
     public:
      IterationPlanner planner{unrolled()};
      TimedIteration iteration{"made up"};

     private:
      void add(const shm::RecordView& record) override {
        iteration.add(0, record, false);
        planner.add(0, record);
        if (builder_.sequence() < check_point_) return;
        check_point_ = shm::next_check_point(check_point_);
        planner.check();
        iteration.look(planner);
      }
      std::uint64_t check_point_ = shm::kFirstCheckPoint;
    };
    Training<Kept> training(seed);
    if (seed % 3 == 1) training.told.measured = [](std::uint64_t operation) { return operation % 3 == 0; };
    for (int k = 0; k < 30; ++k) training.iterate();
    if (!training.told.iteration) continue;
    ++planned;
    const IterationTimes times = training.told.iteration.times();
    EXPECT_TRUE(times.known());
    const IterationProblem iteration = training.told.iteration.problem(times);
    expect_to_hold(iteration);
    EXPECT_EQ(iteration.problem.name, "made up");
  }
  EXPECT_GE(planned, 10);
}

// Traces of programs that ran.
class OfPublishedTrace : public testing::TestWithParam<const char*> {};

TEST_P(OfPublishedTrace, IsTheSameThroughAFile) {
  const char* shared = std::getenv("MEMOPT_SHARED");
  if (shared == nullptr) GTEST_SKIP() << "MEMOPT_SHARED is not set: the published traces are not here";
  const std::string path = std::string(shared) + "/traces/" + GetParam();
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not here";
  const Trace trace = read_trace(path);
  Stream stream(unrolled());
  std::optional<IterationProblemBuilder> builder;
  for (const TraceOperation& operation : trace.operations) {
    stream.add(record_of(operation, stream.builder));
    if (!builder && !stream.plans.empty()) builder.emplace(stream.planner.store(), *stream.planner.plan(), GetParam());
  }
  ASSERT_TRUE(builder.has_value());
  const IterationProblem iteration = builder->build([](std::uint64_t ticks) { return ticks; });
  EXPECT_GE(iteration.problem.operations.size(), stream.planner.plan()->lifetimes.operations);
  expect_to_hold(iteration);
}

INSTANTIATE_TEST_SUITE_P(Zhang2019, OfPublishedTrace,
                         testing::Values("memInfo_alex_20itr_100size.text", "memInfo_vgg_20itr_100size.text",
                                         "memInfo_resnet_20itr_100size.text", "blockInfo_Alex_316.text",
                                         "blockInfo_VGG_315.text", "blockInfo_resnet_315.text",
                                         "vec_block_fresh_vgg.csv"),
                         [](const auto& trace) {
                           std::string name = trace.param;
                           for (char& c : name) c = c == '.' || c == '_' ? 'X' : c;
                           return name;
                         });

}  // namespace
}  // namespace memopt::planner
