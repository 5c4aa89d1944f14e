// The schedule with real threads: who goes on must follow from the seed alone.
#include "device/host_schedule.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "cudasim/cudasim.h"
#include "device/schedule_choice.h"
#include "simulation.h"

namespace cudasim::test {
namespace {

using namespace std::chrono_literals;

// The schedule of this process for as long as it lives.
struct Scheduled {
  explicit Scheduled(std::uint64_t seed, std::chrono::milliseconds patience = HostSchedule::kPatience,
                     const std::string& at = {})
      : schedule(seed, {}, patience, at) {
    HostSchedule::set_current(&schedule);
  }
  ~Scheduled() { HostSchedule::set_current(nullptr); }

  std::thread start(std::function<void()> body) {
    const std::uint64_t number = schedule.expect_thread();
    return std::thread([this, number, body = std::move(body)] {
      schedule.start_thread(number);
      body();
      schedule.end_thread();
    });
  }

  bool wait(const char* what, const std::atomic<bool>& flag, const void* object = nullptr) {
    CudasimWait wait{};
    wait.what = what;
    wait.object = object;
    wait.deadline_ns = -1;
    wait.argument = const_cast<std::atomic<bool>*>(&flag);
    wait.ready = [](void* argument) { return int(static_cast<std::atomic<bool>*>(argument)->load()); };
    return schedule.wait(wait);
  }

  // From the test's own thread, which is one of them.
  void join(std::vector<std::thread>& threads) {
    schedule.wait_for_quiet("all others", [] { return false; });
    for (std::thread& thread : threads) thread.join();
  }

  HostSchedule schedule;
};

struct Order {
  std::string steps;  // a letter for each step of a thread
  std::uint64_t hash;
};

Order order_of(std::uint64_t seed, int threads, int steps) {
  Scheduled scheduled(seed);
  Order order;
  scheduled.schedule.point("begins");
  std::vector<std::thread> all;
  for (int id = 0; id < threads; ++id) {
    all.push_back(scheduled.start([&, id] {
      for (int step = 0; step < steps; ++step) {
        order.steps += char('a' + id);  // exactly one runs
        scheduled.schedule.point("step");
        // Work between the steps, of an amount that has nothing to do with the order.
        volatile int sink = 0;
        for (int i = 0; i < (id * 7919 + step * 104729) % 20'000; ++i) sink = sink + i;
      }
    }));
  }
  scheduled.join(all);
  order.hash = scheduled.schedule.trace_hash();
  return order;
}

int switches(const std::string& steps) {
  int count = 0;
  for (std::size_t i = 1; i < steps.size(); ++i) count += steps[i] != steps[i - 1];
  return count;
}

TEST(HostSchedule, OneSeedIsOneOrder) {
  std::set<std::string> orders;
  std::set<std::uint64_t> hashes;
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    const Order order = order_of(seed, 3, 30);
    EXPECT_EQ(order.steps.size(), 90u);
    const Order again = order_of(seed, 3, 30);
    EXPECT_EQ(again.steps, order.steps) << seed;
    EXPECT_EQ(again.hash, order.hash) << seed;
    orders.insert(order.steps);
    hashes.insert(order.hash);
  }
  EXPECT_GT(orders.size(), 12u);  // few preemptions leave few orders of so small a program
  EXPECT_GE(hashes.size(), orders.size());
}

TEST(HostSchedule, LowSeedsPreemptSoManyTimes) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const std::string steps = order_of(seed, 3, 50).steps;
    EXPECT_LE(switches(steps), 2 + 2 * int(seed)) << steps;  // each preemption goes away from a thread and back to it
  }
}

TEST(ScheduleChoice, LowSeedsPreemptSoManyTimes) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    ScheduleChoice choice(seed);
    std::int64_t priority = choice.first_priority();
    for (int step = 0; step < 10'000; ++step) priority = choice.step(priority);
    EXPECT_EQ(choice.preemptions(), seed);
  }
}

TEST(ScheduleChoice, AThreadThatFallsBehindIsBehindAllOthers) {
  ScheduleChoice choice(1);
  const std::int64_t other = choice.first_priority();
  std::int64_t priority = choice.first_priority();
  for (int step = 0; step < 10'000; ++step) priority = choice.step(priority);
  const ScheduleChoice::Candidate both[] = {{1, priority, true}, {2, other, false}};
  EXPECT_EQ(choice.choose(both), 1u);
}

// Where a call is named, no thread goes before it has come to that call, and there about every second one does.
TEST(HostSchedule, ThreadsArePreemptedAtOneCallAlone) {
  int at_call = 0;
  for (std::uint64_t seed = 0; seed < 16; ++seed) {
    Scheduled scheduled(seed, HostSchedule::kPatience, "call");
    std::string steps;  // a capital letter for the call
    scheduled.schedule.point("begins");
    std::vector<std::thread> all;
    for (int id = 0; id < 2; ++id) {
      all.push_back(scheduled.start([&, id] {
        for (int step = 0; step < 40; ++step) {
          const bool calls = step % 8 == 0;
          steps += char((calls ? 'A' : 'a') + id);
          scheduled.schedule.point("step", calls ? "call" : step % 2 == 0 ? nullptr : "other");
        }
      }));
    }
    scheduled.join(all);
    for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
      const bool called = steps[i] < 'a';
      const bool switched = (steps[i] | 0x20) != (steps[i + 1] | 0x20);
      const bool ended = !called && std::count(steps.begin(), steps.begin() + std::ptrdiff_t(i) + 1, steps[i]) == 35;
      if (switched && !ended) {
        EXPECT_TRUE(called) << steps;
      }
      at_call += int(switched && called);
    }
  }
  EXPECT_GT(at_call, 16 * 2);
}

TEST(HostSchedule, AWaitEndsWhenAnotherThreadHasCaredForIt) {
  for (std::uint64_t seed = 0; seed < 16; ++seed) {
    Scheduled scheduled(seed);
    std::atomic<bool> flag{false};
    bool seen = false;
    scheduled.schedule.point("begins");
    std::vector<std::thread> all;
    all.push_back(scheduled.start([&] {
      EXPECT_TRUE(scheduled.wait("the flag", flag));
      seen = flag;
    }));
    all.push_back(scheduled.start([&] {
      for (int step = 0; step < 5; ++step) scheduled.schedule.point("step");
      flag = true;
      for (int step = 0; step < 5; ++step) scheduled.schedule.point("step");
    }));
    scheduled.join(all);
    EXPECT_TRUE(seen);
  }
}

TEST(HostSchedule, TheLongestWaitingIsNotifiedFirst) {
  Scheduled scheduled(9);
  const int object = 0;
  std::string order;
  const auto waiter = [&](char name) {
    return scheduled.start([&, name] {
      CudasimWait wait{};
      wait.what = "a notice";
      wait.object = &object;
      wait.deadline_ns = -1;
      EXPECT_TRUE(scheduled.schedule.wait(wait));
      order += name;
    });
  };
  const auto let_it_wait = [&] { scheduled.schedule.wait_for_quiet("the others to wait", [] { return false; }); };
  scheduled.schedule.point("begins");
  std::vector<std::thread> all;
  for (const char name : {'a', 'b', 'c'}) {
    all.push_back(waiter(name));
    let_it_wait();
  }
  EXPECT_EQ(scheduled.schedule.notify(&order, 1), 0);
  EXPECT_EQ(scheduled.schedule.notify(&object, 1), 1);
  let_it_wait();
  EXPECT_EQ(order, "a");
  EXPECT_EQ(scheduled.schedule.notify(&object, 5), 2);
  scheduled.join(all);
  EXPECT_EQ(order.size(), 3u);
}

TEST(HostSchedule, ADeadlineEndsAWait) {
  Scheduled scheduled(3);
  CudasimWait wait{};
  wait.what = "nothing";
  wait.deadline_ns = (std::chrono::steady_clock::now().time_since_epoch() + 5ms) / 1ns;
  EXPECT_FALSE(scheduled.schedule.wait(wait));
  EXPECT_GE(std::chrono::steady_clock::now().time_since_epoch() / 1ns, wait.deadline_ns);
}

// A lock that looks again after a nap, held by a thread that has been preempted.
TEST(HostSchedule, AThreadThatNapsDoesNotKeepTheOwnerFromGoingOn) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    Scheduled scheduled(seed);
    std::atomic<bool> taken{false};
    int inside = 0;
    scheduled.schedule.point("begins");
    std::vector<std::thread> all;
    for (int id = 0; id < 3; ++id) {
      all.push_back(scheduled.start([&] {
        for (int round = 0; round < 4; ++round) {
          while (taken.exchange(true)) scheduled.schedule.nap("a lock", nullptr, 200us);
          EXPECT_EQ(++inside, 1);
          scheduled.schedule.point("with the lock");
          --inside;
          taken = false;
          scheduled.schedule.point("without");
        }
      }));
    }
    scheduled.join(all);
  }
}

// In a child, whose end is looked at.
void two_that_wait_for_each_other() {
  Scheduled scheduled(11, 100ms);
  static std::atomic<bool> never{false};
  static const int mutex = 0;
  scheduled.schedule.point("begins");
  std::vector<std::thread> all;
  all.push_back(scheduled.start([&] { scheduled.wait("a mutex", never, &mutex); }));
  all.push_back(scheduled.start([&] {
    while (!never) scheduled.schedule.nap("a lock", nullptr, 20us);
  }));
  for (std::thread& thread : all) {
    scheduled.wait("the end of a thread", never);
    thread.join();
  }
}

TEST(HostScheduleDeathTest, ADeadlockIsReportedThreadByThread) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(two_that_wait_for_each_other(), testing::ExitedWithCode(CUDASIM_DEADLOCK_EXIT_CODE),
              "deadlock with CUDASIM_SCHEDULE=11: thread 1 waits for the end of a thread, thread 2 waits for a mutex "
              "0x.*, thread 3 sleeps again and again in a lock");
}

TEST(HostSchedule, AThreadThatWaitsUnseenLosesItsTurn) {
  Scheduled scheduled(0, 50ms);
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  scheduled.schedule.point("begins");
  std::vector<std::thread> all;
  for (const bool reads : {true, false}) {
    all.push_back(scheduled.start([&, reads] {
      char byte = 'x';
      EXPECT_EQ(reads ? read(pipes[0], &byte, 1) : write(pipes[1], &byte, 1), 1);
      scheduled.schedule.point("step");
    }));
  }
  testing::internal::CaptureStderr();
  // Not by wait_for_quiet: that would be over as soon as the reader has lost its turn.
  for (std::thread& thread : all) thread.join();
  testing::internal::GetCapturedStderr();
  close(pipes[0]);
  close(pipes[1]);
}

// The host waits for the device, which waits for a host function, which waits for another host thread.
TEST(HostSchedule, AHostFunctionMayWaitForAHostThread) {
  for (std::uint64_t seed = 0; seed < 16; ++seed) {
    Scheduled scheduled(seed);
    std::atomic<bool> flag{false};
    std::string order;
    {
      Simulation sim;
      Stream& stream = sim.stream();
      sim.host_function(stream, [&] {
        scheduled.wait("the flag", flag);
        order += 'f';
      });
      sim.lock_.unlock();
      scheduled.schedule.point("begins");
      std::vector<std::thread> all;
      all.push_back(scheduled.start([&] {
        for (int step = 0; step < 3; ++step) scheduled.schedule.point("step");
        order += 's';
        flag = true;
      }));
      sim.lock_.lock();
      EXPECT_EQ(sim.engine.wait(stream), CUDA_SUCCESS);
      order += 'w';
      sim.lock_.unlock();
      scheduled.join(all);  // and the callback thread ends in its turn
    }
    EXPECT_EQ(order, "sfw");
  }
}

}  // namespace
}  // namespace cudasim::test
