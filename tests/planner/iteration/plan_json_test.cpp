// A planned iteration as a file: read back, it is an iteration that holds, with the planner's own places.
#include "planner/iteration/plan_json.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "planner/swap/lives.h"
#include "planner/swap/plan_file.h"
#include "planner/swap/verify.h"
#include "stream.h"

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

// Two ticks are a nanosecond. The store must be as it was when the plan was found.
swap::PlanFile written(const Stream& stream) {
  std::ostringstream text;
  const PlanJson json(stream.planner.store(), *stream.planner.plan(), "a \"name\"");
  json.write([](std::uint64_t ticks) { return ticks / 2; }, text);
  return swap::parse_plan(text.str());
}

void expect_to_hold(const swap::PlanFile& file) {
  const swap::Report report = swap::verify(file.problem, file.decisions);
  EXPECT_FALSE(report.fault.has_value()) << *report.fault;
  EXPECT_EQ(report.timing.added_ns, 0);
}

const swap::Block& block_of(const swap::PlanFile& file, std::uint64_t bytes) {
  return *std::find_if(file.problem.blocks.begin(), file.problem.blocks.end(),
                       [&](const swap::Block& block) { return block.bytes == bytes; });
}

std::vector<swap::Operation> of_block(const swap::PlanFile& file, std::uint64_t bytes) {
  const auto index = static_cast<std::uint32_t>(&block_of(file, bytes) - file.problem.blocks.data());
  std::vector<swap::Operation> found;
  for (const swap::Operation& operation : file.problem.operations) {
    if (operation.block == index) found.push_back(operation);
  }
  return found;
}

IterationPlanner::Options unrolled() {
  IterationPlanner::Options options;
  options.planning.unroll = true;
  return options;
}

TEST(PlanJson, BlocksOfALaunchStayUntilItIsOver) {
  TimedStream stream;
  const std::uint64_t weight = stream.malloc(1000, 9);
  do {
    const std::uint64_t block = stream.malloc(1 << 20);
    stream.launch(1, {weight, block});
    stream.free(block);
    stream.launch(2, {weight});
  } while (stream.plans.empty() && stream.builder.sequence() < 1000);
  ASSERT_FALSE(stream.plans.empty());
  const swap::PlanFile file = written(stream);
  expect_to_hold(file);
  EXPECT_EQ(file.problem.name, "a \"name\"");
  EXPECT_EQ(file.problem.period, 20) << "four records, five nanoseconds each";
  // The launch of both begins with one access of each, and ends with another of the first: it has the weight while it
  // runs. That of the weight alone needs no second one.
  const auto block = of_block(file, 1 << 20);
  ASSERT_EQ(block.size(), 3u);
  EXPECT_EQ(block[0].kind, Kind::kMalloc);
  EXPECT_EQ(block[1].kind, Kind::kWrite);
  EXPECT_EQ(block[2].kind, Kind::kFree);
  const auto accesses = of_block(file, 1000);
  ASSERT_EQ(accesses.size(), 3u);
  const double launched = block[1].time;
  const auto at = [&](double time) {
    return std::count_if(accesses.begin(), accesses.end(), [&](const auto& one) { return one.time == time; });
  };
  EXPECT_EQ(at(launched), 1);
  EXPECT_EQ(at(launched + 5), 1) << "its end";
}

TEST(PlanJson, ALaunchAtTheEndOfTheIterationEndsWithIt) {
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
  const swap::PlanFile file = written(stream);
  expect_to_hold(file);
  EXPECT_EQ(of_block(file, 1000).size(), 2u);
  EXPECT_EQ(of_block(file, 2000).size(), 1u);
  double last = 0;
  for (const swap::Operation& operation : file.problem.operations) last = std::max(last, operation.time);
  EXPECT_LE(last, file.problem.period);
}

// Freed two iterations after it was allocated, and accessed in each.
TEST(PlanJson, BlocksThatLiveForIterations) {
  for (const bool unroll : {false, true}) {
    TimedStream stream(unroll ? unrolled() : IterationPlanner::Options());
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
    const swap::PlanFile file = written(stream);
    expect_to_hold(file);
    std::uint32_t oldest = 0;
    for (const swap::Operation& operation : of_block(file, 1 << 20)) oldest = std::max(oldest, operation.age);
    EXPECT_GE(oldest, 2u);
    const swap::Lives lives = swap::find_lives(file.problem);
    EXPECT_EQ(lives.peak, stream.planner.plan()->lifetimes.peak_load);
  }
}

// Threads whose order is another one in each iteration.
TEST(PlanJson, SeveralLanes) {
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
        stream.launch(2, {weights[i], activations[i], scratch});
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
    expect_to_hold(written(stream));
  }
}

}  // namespace
}  // namespace memopt::planner
