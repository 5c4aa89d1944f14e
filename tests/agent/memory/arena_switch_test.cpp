// When a plan of two threads goes live: the arena over a driver that knows what is mapped where.
#include <gtest/gtest.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <utility>

#include "agent/memory/arena.h"
#include "agent/memory/arena_state.h"
#include "tests/agent/memory/plans_of_the_arena.h"

namespace memopt::agent {
namespace {

// Two threads: this one makes two blocks in an iteration, then another one makes one.
class PlansOfTwoThreads : public PlansOfTheArena {
 protected:
  PlansOfTwoThreads() : thread_([this] { run(); }) {}
  ~PlansOfTwoThreads() override {
    do_there(nullptr);
    thread_.join();
  }
  void there() {
    do_there([this] {
      free(allocate(kOther));
      lane_ = current_lane();
    });
  }
  static void here() {
    iterate();
    iterate();
  }
  void send_for_both() {
    auto plan = std::make_unique<Plan>();
    plan->generation = 1;
    plan->mallocs = {{kBlock, 0, 0, 1, 0, 1}, {kBlock, 0, 0, 1, 2, 3}, {kOther, 0, 1, 1, 4, 5}};
    plan->places = {{0, kBlock}, {0, kOther}};
    plan->slab_bytes = kOther;
    plan->peak_load = kOther;
    plan->operations = 6;
    const std::span<const shm::PlannedMalloc> mallocs(plan->mallocs);
    plan->lanes.push_back({current_lane(), 2, mallocs.first(2)});
    plan->lanes.push_back({lane_, 1, mallocs.subspan(2)});
    ArenaLock lock;
    arena_adopt(*arena(), *plan);
    while (arena()->phase == Arena::Phase::kBuilding) arena_build(*arena());
  }
  // Of the other thread's block, and then this one's two.
  void send_two_iterations() {
    auto plan = std::make_unique<Plan>();
    plan->generation = 1;
    plan->mallocs = {{kBlock, 0, 0, 1, 2, 3},   {kBlock, 0, 0, 1, 4, 5}, {kBlock, 0, 0, 1, 8, 9},
                     {kBlock, 0, 0, 1, 10, 11}, {kOther, 0, 1, 1, 0, 1}, {kOther, 0, 1, 1, 6, 7}};
    plan->places = {{0, kBlock}, {0, kOther}};
    plan->slab_bytes = kOther;
    plan->peak_load = kOther;
    plan->operations = 12;
    const std::span<const shm::PlannedMalloc> mallocs(plan->mallocs);
    plan->lanes.push_back({current_lane(), 2, mallocs.first(4), 2});
    plan->lanes.push_back({lane_, 1, mallocs.subspan(4), 2});
    ArenaLock lock;
    arena_adopt(*arena(), *plan);
    while (arena()->phase == Arena::Phase::kBuilding) arena_build(*arena());
  }
  // Sends them, and is in so many alone before the other one comes.
  void begin_two_iterations_behind(int others) {
    there();
    here();
    send_two_iterations();
    for (int i = 0; i < others; ++i) here();
    there();
    here();
    there();
    EXPECT_NE(arena()->plan, nullptr);
    here();
    EXPECT_EQ(arena()->displaced, 0u);
  }

  std::uint32_t lane_ = 0;

 private:
  void run() {
    for (;;) {
      std::unique_lock guard(mutex_);
      changed_.wait(guard, [this] { return pending_; });
      if (work_) work_();
      const bool more = work_ != nullptr;
      pending_ = false;
      changed_.notify_all();
      if (!more) return;
    }
  }
  void do_there(std::function<void()> work) {
    std::unique_lock guard(mutex_);
    work_ = std::move(work);
    pending_ = true;
    changed_.notify_all();
    changed_.wait(guard, [this] { return !pending_; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> work_;
  bool pending_ = false;
  std::thread thread_;
};

TEST_F(PlansOfTwoThreads, APlanWaitsUntilBothAreInStep) {
  here();
  there();
  here();
  send_for_both();
  there();  // in step from here on
  here();   // in step behind its second block
  there();
  here();
  EXPECT_NE(arena()->plan, nullptr);
  there();
  EXPECT_EQ(arena()->displaced, 0u);
}

TEST_F(PlansOfTwoThreads, WhileOneIsNotInStepTheOtherDoesNotBegin) {
  here();
  there();
  send_for_both();
  here();
  here();
  EXPECT_EQ(arena()->plan, nullptr) << "the other one has not been seen since";
  there();
  here();
  EXPECT_NE(arena()->plan, nullptr);
  there();
  EXPECT_EQ(arena()->displaced, 0u);
}

// Two iterations planned as one begin with the other thread, and this one's position says in which of them that is:
// either of them may be the first.
TEST_F(PlansOfTwoThreads, OfTwoIterationsThatArePlannedAsOneTheFirstMayBeFirst) { begin_two_iterations_behind(2); }
TEST_F(PlansOfTwoThreads, OfTwoIterationsThatArePlannedAsOneTheSecondMayBeFirst) { begin_two_iterations_behind(3); }

// At its beginning there is what the first one has made, which would cross the switch.
TEST_F(PlansOfTwoThreads, TheOneThatComesLaterDoesNotBegin) {
  here();
  there();
  send_for_both();
  here();
  there();
  there();
  EXPECT_EQ(arena()->plan, nullptr);
  here();
  EXPECT_NE(arena()->plan, nullptr);
  there();
  EXPECT_EQ(arena()->displaced, 0u);
}

TEST_F(PlansOfTwoThreads, OneThatNeverComesAgainIsNotWaitedForLong) {
  here();
  there();
  send_for_both();
  for (int i = 0; i < 6; ++i) here();
  EXPECT_NE(arena()->plan, nullptr);
}

// A thread that waits for its next point of a plan makes its next block when another one is followed, and the first is
// gone.
TEST_F(PlansOfTwoThreads, APointOfAPlanThatIsGoneIsNotLookedFor) {
  here();
  there();
  EXPECT_EQ(arena_set_limit("64MiB").error, "");
  const auto send_swaps = [&](std::uint64_t generation) {
    Plan plan;
    plan.generation = generation;
    plan.mallocs = {{kBlock, 0, 0, 1, 0, 1}, {kBlock, 0, 0, 1, 2, 3}, {kOther, 0, 1, 1, 4, 7}};
    plan.places = {{0, kBlock}, {0, kOther}};
    plan.slab_bytes = kOther;
    plan.peak_load = kOther;
    plan.operations = 8;
    plan.chunk_bytes = kChunk;
    // It would leave behind an operation that never comes.
    plan.swaps = {{2, shm::kSwapCopies, 5, shm::kNoPosition, shm::kNoPosition, 0}};
    plan.points = {{5, lane_, 0, 1, 0}};
    const std::span<const shm::PlannedMalloc> mallocs(plan.mallocs);
    plan.lanes.push_back({current_lane(), 2, mallocs.first(2)});
    plan.lanes.push_back({lane_, 1, mallocs.subspan(2)});
    ArenaLock lock;
    arena_adopt(*arena(), plan);
    for (int i = 0; i < 8 && arena()->phase == Arena::Phase::kBuilding; ++i) {
      arena_build(*arena());
      if (arena()->wanted_pieces != 0) arena_make_pieces(*arena(), lock);
    }
  };
  const auto follows = [](std::uint64_t generation) {
    ArenaLock lock;
    return arena()->plan != nullptr && arena()->plan->generation == generation;
  };
  for (const std::uint64_t generation : {1, 2, 3}) {
    start_recording(false);
    send_swaps(generation);
    // Where the next one goes live, this thread has an iteration behind it, and the other none.
    for (int i = 0; i < 8 && !follows(generation); ++i) {
      here();
      if (!follows(generation)) there();
    }
    ASSERT_TRUE(follows(generation)) << status().note;
    there();
  }
  EXPECT_EQ(arena_set_limit("none").error, "");
}

}  // namespace
}  // namespace memopt::agent
