// The gate with real threads. What may differ from run to run without it is the order in which threads pass.
#include "device/serialize_gate.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "simulation.h"

namespace cudasim::test {
namespace {

TEST(SerializeGate, DisabledOrAloneEverybodyPasses) {
  SerializeGate off(false), on(true);
  for (SerializeGate* gate : {&off, &on}) {
    for (int i = 0; i < 1000; ++i) {
      gate->enter();
      gate->leave();
    }
    EXPECT_EQ(gate->timeouts(), 0u);
  }
}

// Each thread's calls cost virtual time of its own; the order must be that of the virtual clocks, ties by registration.
std::vector<int> order_of_calls(int threads, int calls) {
  Simulation sim;
  SerializeGate gate(true, std::chrono::seconds(60));
  std::vector<int> order;
  std::mutex start_mutex;
  std::condition_variable start;
  int registered = 0;
  bool go = false;
  sim.lock_.unlock();
  std::vector<std::thread> all;
  for (int id = 0; id < threads; ++id) {
    all.emplace_back([&, id] {
      {
        // Registered one after the other, so that ties are decided alike in each run.
        std::unique_lock lock(start_mutex);
        start.wait(lock, [&] { return registered == id; });
        lock.unlock();
        gate.enter();
        {
          const std::lock_guard driver(sim.mutex);
          sim.engine.charge(Duration(0));
        }
        gate.leave();
        lock.lock();
        ++registered;
        start.notify_all();
        start.wait(lock, [&] { return go; });
      }
      for (int call = 0; call < calls; ++call) {
        gate.enter();
        {
          const std::lock_guard driver(sim.mutex);
          order.push_back(id);
          sim.engine.charge(Duration(10 + 7 * id));
        }
        gate.leave();
        // Work of the host between calls, of an amount that has nothing to do with virtual time.
        volatile int sink = 0;
        for (int i = 0; i < (id * 7919 + call * 104729) % 20'000; ++i) sink = sink + i;
      }
    });
  }
  {
    std::unique_lock lock(start_mutex);
    start.wait(lock, [&] { return registered == threads; });
    go = true;
    start.notify_all();
  }
  for (std::thread& thread : all) thread.join();
  sim.lock_.lock();
  EXPECT_EQ(gate.timeouts(), 0u);
  return order;
}

std::vector<int> expected_order(int threads, int calls) {
  std::vector<int> order, made(std::size_t(threads), 0);
  std::vector<long> clock(std::size_t(threads), 0);
  while (int(order.size()) < threads * calls) {
    int best = -1;
    for (int id = 0; id < threads; ++id) {
      if (made[std::size_t(id)] < calls && (best < 0 || clock[std::size_t(id)] < clock[std::size_t(best)])) best = id;
    }
    order.push_back(best);
    ++made[std::size_t(best)];
    clock[std::size_t(best)] += 10 + 7 * best;
  }
  return order;
}

TEST(SerializeGate, OrderFollowsVirtualTime) {
  for (int run = 0; run < 3; ++run) EXPECT_EQ(order_of_calls(4, 25), expected_order(4, 25));
}

TEST(SerializeGate, AThreadAsleepIsNotWaitedFor) {
  SerializeGate gate(true, std::chrono::seconds(60));
  std::mutex mutex;
  std::condition_variable wake;
  bool over = false;
  std::thread sleeper([&] {
    std::unique_lock lock(mutex);
    wake.wait(lock, [&] { return over; });
  });
  gate.enter();  // returns, or the test times out
  gate.leave();
  EXPECT_EQ(gate.timeouts(), 0u);
  {
    const std::lock_guard lock(mutex);
    over = true;
  }
  wake.notify_all();
  sleeper.join();
}

TEST(SerializeGate, ASpinningThreadDoesNotHangIt) {
  SerializeGate gate(true, std::chrono::milliseconds(50));
  std::atomic<bool> over{false}, spinning{false};
  std::thread spinner([&] {
    spinning = true;
    while (!over) {
    }
  });
  while (!spinning) std::this_thread::yield();
  testing::internal::CaptureStderr();
  gate.enter();
  gate.leave();
  gate.enter();
  gate.leave();
  const std::string text = testing::internal::GetCapturedStderr();
  over = true;
  spinner.join();
  EXPECT_EQ(gate.timeouts(), 2u);
  EXPECT_EQ(text.find("serialize"), text.rfind("serialize"));  // one warning
  EXPECT_NE(text.find("serialize"), std::string::npos);
}

TEST(SerializeGate, TheSimulatorsOwnThreadsDoNotCount) {
  SerializeGate gate(true, std::chrono::seconds(60));
  std::atomic<bool> over{false}, excluded{false};
  std::thread own([&] {
    SerializeGate::exclude_this_thread(true);
    excluded = true;
    while (!over) {
    }
    SerializeGate::exclude_this_thread(false);
  });
  while (!excluded) std::this_thread::yield();
  gate.enter();
  gate.leave();
  EXPECT_EQ(gate.timeouts(), 0u);
  over = true;
  own.join();
}

}  // namespace
}  // namespace cudasim::test
