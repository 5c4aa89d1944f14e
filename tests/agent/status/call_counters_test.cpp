#include "agent/status/call_counters.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

namespace memopt::agent {
namespace {

// As the trampolines count: in the block if there is one, else the slow way.
void count(std::size_t entry_point) {
  if (memopt_thread_counters == nullptr) return count_first_call(entry_point);
  asm volatile("incq %0" : "+m"(memopt_thread_counters[entry_point]));
}

TEST(CallCounters, CountsOfEndedThreadsStay) {
  const std::uint64_t before = calls_of(1);
  std::thread([] {
    for (int i = 0; i < 1000; ++i) count(1);
  }).join();
  EXPECT_EQ(calls_of(1), before + 1000);
  count(1);
  EXPECT_EQ(calls_of(1), before + 1001);
}

TEST(CallCounters, BlocksAreUsedAgain) {
  for (int i = 0; i < 100; ++i) std::thread([] { count(2); }).join();
  EXPECT_EQ(calls_of(2), 100u);
  EXPECT_LE(counter_blocks(), 4u) << "a hundred threads, one after the other";
}

TEST(CallCounters, NothingIsLostWhileSomebodyReads) {
  constexpr int kThreads = 8;
  constexpr int kRounds = 10;
  constexpr int kCalls = 20000;
  std::atomic<bool> done{false};
  std::thread reader([&] {
    std::uint64_t last = 0;
    while (!done) {
      const std::uint64_t now = calls_of(3);
      ASSERT_GE(now, last);
      last = now;
    }
  });
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([] {
        for (int call = 0; call < kCalls; ++call) count(3);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  done = true;
  reader.join();
  EXPECT_EQ(calls_of(3), std::uint64_t{kThreads} * kRounds * kCalls);
}

TEST(CallCounters, AChildBeginsAtZero) {
  count(4);
  const pid_t child = fork();
  if (child == 0) {
    reset_counters_after_fork();
    const bool empty = calls_of(4) == 0 && memopt_thread_counters == nullptr;
    count(4);
    _exit(empty && calls_of(4) == 1 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(calls_of(4), 1u);
}

}  // namespace
}  // namespace memopt::agent
