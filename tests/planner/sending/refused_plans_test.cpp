// What a program is offered whose agent does not take a plan: a layout of the same iteration that is small enough,
// once, and nothing that would be refused again.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "planner/iteration/record_builder.h"
#include "planner/layout/files/csv.h"
#include "planner/program.h"
#include "shm/channel.h"
#include "shm/plan.h"

namespace memopt::planner {
namespace {

using Plan = std::vector<std::byte>;

shm::PlanHeader header_of(const Plan& plan) {
  shm::PlanHeader header{};
  std::memcpy(&header, plan.data(), sizeof(header));
  return header;
}

// A program whose iteration is an instance of MiniMalloc's benchmark, D: its best layout, at the load, takes seconds to
// find; the first one is a tenth above it.
class Hard {
 public:
  explicit Hard(bool waited_for = false) : program(waited_for) {
    input::File file(MEMOPT_TEST_INSTANCE);
    const layout::Problem problem = layout::read_csv(file).problem;
    for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
      const layout::Interval when = problem.hull(i);
      const std::uint64_t bytes = problem.buffers[i].bytes;
      moments_[{when.begin, 1, i}] = bytes;
      moments_[{when.end, 0, i}] = bytes;
    }
    blocks_.resize(problem.buffers.size());
  }

  // The plan that comes of it, numbered.
  std::optional<Plan> iterate(int times, std::uint64_t stack = 1) {
    std::optional<Plan> found;
    for (int i = 0; i < times; ++i) {
      for (const auto& [moment, bytes] : moments_) {
        const auto& [time, begins, buffer] = moment;
        if (begins != 0) {
          blocks_[buffer] = next_block_++;
          program.add(0, builder.malloc(blocks_[buffer], bytes, stack + buffer, 7));
        } else {
          program.add(0, builder.free(blocks_[buffer]));
        }
        if (builder.sequence() < check_point_) continue;
        check_point_ = shm::next_check_point(check_point_);
        if (auto plan = program.plan()) found = keep(std::move(*plan));
      }
    }
    return found;
  }
  // A better one beside the records: waited for.
  std::optional<Plan> improve(std::chrono::seconds longest) {
    const auto deadline = std::chrono::steady_clock::now() + longest;
    do {
      if (auto plan = program.improved()) return keep(std::move(*plan));
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    } while (std::chrono::steady_clock::now() < deadline);
    return std::nullopt;
  }

  Program program;
  RecordBuilder builder;
  std::uint64_t sent = 0;

 private:
  Plan keep(Plan plan) {
    set_generation(plan, ++sent);
    program.sent(sent);
    return plan;
  }

  std::map<std::tuple<std::uint64_t, int, std::size_t>, std::uint64_t> moments_;
  std::vector<std::uint64_t> blocks_;
  std::uint64_t next_block_ = 1;
  std::uint64_t check_point_ = shm::kFirstCheckPoint;
};

// A search that finds nothing has ended by then.
constexpr std::chrono::seconds kLong{25};

TEST(RefusedPlans, ALayoutThatWouldDoIsStillOffered) {
  // The search has its time by the clock, at the lowest priority: on a loaded machine it may have no processor in it,
  // and is made again. So little is asked for that it is found by the first of the search's layouts.
  constexpr int kAttempts = 8;
  for (int attempt = 1;; ++attempt) {
    Hard hard;
    const std::optional<Plan> first = hard.iterate(6);
    ASSERT_TRUE(first) << hard.program.note();
    const shm::PlanHeader refused = header_of(*first);
    const std::uint64_t excess = refused.slab_bytes / 200;
    ASSERT_LT(refused.lower_bound, refused.slab_bytes - excess) << "this instance is not hard any more";
    hard.program.refused(hard.sent, excess);
    EXPECT_NE(hard.program.note().find("refused"), std::string::npos);
    const std::optional<Plan> second = hard.improve(kLong);
    if (!second && attempt < kAttempts) continue;
    ASSERT_TRUE(second);
    EXPECT_LE(header_of(*second).slab_bytes, refused.slab_bytes - excess);
    EXPECT_EQ(header_of(*second).signature, refused.signature);
    return;
  }
}

TEST(RefusedPlans, NothingIsSentWhereNoLayoutWouldDo) {
  Hard hard;
  const std::optional<Plan> first = hard.iterate(6);
  ASSERT_TRUE(first);
  const shm::PlanHeader refused = header_of(*first);
  hard.program.refused(hard.sent, refused.slab_bytes - refused.lower_bound + 1);
  EXPECT_FALSE(hard.improve(std::chrono::seconds(1)));
  EXPECT_FALSE(hard.iterate(10));
}

TEST(RefusedPlans, TheSameIterationByOtherCallStacksIsNotSentAgain) {
  Hard hard(true);
  const std::optional<Plan> first = hard.iterate(6);
  ASSERT_TRUE(first);
  hard.program.refused(hard.sent, header_of(*first).slab_bytes / 25);
  EXPECT_FALSE(hard.iterate(10, 1000));
  EXPECT_FALSE(hard.iterate(10, 1));
  EXPECT_FALSE(hard.iterate(10, 2000));
}

TEST(RefusedPlans, ALoopInsideDoesNotTakeThePlaceOfTheIteration) {
  Program program;
  RecordBuilder builder;
  std::uint64_t next = 1, plans = 0, check = shm::kFirstCheckPoint;
  const auto tell = [&](const shm::RecordView& record) {
    program.add(0, record);
    if (builder.sequence() < check) return;
    check = shm::next_check_point(check);
    const auto plan = program.plan();
    if (!plan) return;
    ++plans;
    program.sent(plans);
    // The iteration's, or the loop's where that was found first.
    program.refused(plans, 4096);
  };
  for (int step = 0; step < 200; ++step) {
    const std::uint64_t weights = next++;
    tell(builder.malloc(weights, 1 << 20, 1, 7));
    for (int i = 0; i < 12; ++i) {
      const std::uint64_t block = next++;
      tell(builder.malloc(block, 1 << 18, 2, 8));
      tell(builder.free(block));
    }
    tell(builder.free(weights));
  }
  EXPECT_GE(plans, 1u);
  EXPECT_LE(plans, 2u);
}

TEST(RefusedPlans, AnotherIterationIsPlanned) {
  Hard hard(true);
  ASSERT_TRUE(hard.iterate(6));
  hard.program.refused(hard.sent, 1 << 20);
  std::uint64_t next = 1'000'000;
  std::optional<Plan> other;
  for (int i = 0; i < 4000 && !other; ++i) {
    hard.program.add(0, hard.builder.malloc(next, 3 << 20, 5, 9));
    hard.program.add(0, hard.builder.memset(next, 4096));
    hard.program.add(0, hard.builder.free(next++));
    if (i % 100 == 99) other = hard.program.plan();
  }
  ASSERT_TRUE(other) << hard.program.note();
  EXPECT_EQ(header_of(*other).slab_bytes, std::uint64_t{3} << 20);
}

}  // namespace
}  // namespace memopt::planner
