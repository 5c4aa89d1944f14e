// Host functions run on a thread of their own, without the driver's lock.
#include <signal.h>

#include <atomic>
#include <condition_variable>
#include <thread>

#include "simulation.h"

namespace cudasim::test {
namespace {

class HostFunction : public testing::TestWithParam<std::optional<std::uint64_t>> {
 protected:
  Simulation sim{small_config(GetParam())};
};

TEST_P(HostFunction, RunsInStreamOrderOnAnotherThread) {
  std::string order;
  std::thread::id ran_on;
  bool there = false;
  Stream& stream = sim.stream();
  sim.pieces(stream, 1, [&](std::uint32_t, AccessLog&) { order += 'a'; });
  const auto function = sim.host_function(stream, [&] {
    order += 'f';
    ran_on = std::this_thread::get_id();
    there = Engine::on_callback_thread();
  });
  sim.pieces(stream, 1, [&](std::uint32_t, AccessLog&) { order += 'b'; });
  EXPECT_EQ(sim.engine.wait(stream), CUDA_SUCCESS);
  EXPECT_EQ(order, "afb");
  EXPECT_NE(ran_on, std::this_thread::get_id());
  EXPECT_TRUE(there);
  EXPECT_FALSE(Engine::on_callback_thread());
  EXPECT_EQ(function->start, at(100));
  EXPECT_EQ(function->end, at(200));
  EXPECT_EQ(sim.engine.host_now(), at(300));
}

TEST_P(HostFunction, OtherThreadsUseTheDriverMeanwhile) {
  std::atomic<bool> running{false}, queued{false};
  Stream& stream = sim.stream();
  sim.host_function(stream, [&] {
    running = true;
    while (!queued) std::this_thread::yield();
  });
  std::thread other([&] {
    while (!running) std::this_thread::yield();
    const std::lock_guard lock(sim.mutex);  // to be had although the main thread is in a wait
    sim.work(sim.stream(), Resource::kCompute, 10);
    queued = true;
  });
  EXPECT_EQ(sim.engine.wait(stream), CUDA_SUCCESS);
  sim.lock_.unlock();
  other.join();
  sim.lock_.lock();
  EXPECT_TRUE(queued);
}

// The program holds a mutex that the function wants, and calls the driver: no call but one that waits for the function
// may wait.
TEST_P(HostFunction, MayWaitForAThreadThatCallsTheDriver) {
  std::mutex programs;
  bool ran = false;
  Stream &stream = sim.stream(), &other = sim.stream();
  {
    sim.lock_.unlock();  // the program takes its mutex outside of driver calls
    const std::lock_guard hold(programs);
    sim.lock_.lock();
    sim.host_function(stream, [&] {
      const std::lock_guard lock(programs);
      ran = true;
    });
    for (int i = 0; i < 20; ++i) {
      sim.pieces(other, 1, [](std::uint32_t, AccessLog&) {});
      sim.engine.charge(Duration(1000));
    }
    EXPECT_EQ(sim.engine.query(stream), CUDA_ERROR_NOT_READY);  // over by virtual time, but it is not
    EXPECT_EQ(sim.engine.wait(other), CUDA_SUCCESS);
    EXPECT_FALSE(ran);
  }
  EXPECT_EQ(sim.engine.wait(stream), CUDA_SUCCESS);
  EXPECT_TRUE(ran);
}

// The program waits for the function by its own means and never calls the driver again.
TEST_P(HostFunction, RunsThoughNobodyAsksTheDriver) {
  std::mutex programs;
  std::condition_variable done;
  bool before = false, ran = false;
  Stream& stream = sim.stream();
  sim.pieces(stream, 3, [&](std::uint32_t, AccessLog&) { before = true; });
  sim.host_function(stream, [&] {
    const std::lock_guard lock(programs);
    ran = true;
    done.notify_all();
  });
  sim.lock_.unlock();
  {
    std::unique_lock lock(programs);
    done.wait(lock, [&] { return ran; });
  }
  sim.lock_.lock();
  EXPECT_TRUE(before);
  EXPECT_EQ(sim.engine.host_now(), at(0));  // and time has not moved
  EXPECT_EQ(sim.engine.wait(stream), CUDA_SUCCESS);
  EXPECT_EQ(sim.engine.host_now(), at(200));
}

TEST_P(HostFunction, SignalsOfTheProgramAreBlocked) {
  sigset_t mask;
  sigemptyset(&mask);
  sim.host_function(sim.legacy(), [&] { pthread_sigmask(SIG_BLOCK, nullptr, &mask); });
  EXPECT_EQ(sim.engine.wait(sim.legacy()), CUDA_SUCCESS);
  for (const int signal : {SIGINT, SIGTERM, SIGALRM, SIGUSR1, SIGCHLD})
    EXPECT_TRUE(sigismember(&mask, signal)) << signal;
  EXPECT_FALSE(sigismember(&mask, SIGSEGV));
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  EXPECT_FALSE(sigismember(&mask, SIGALRM));
}

TEST_P(HostFunction, AnExceptionIsItsOwnMatter) {
  sim.host_function(sim.legacy(), [] { throw std::runtime_error("planted"); });
  EXPECT_EQ(sim.engine.wait(sim.legacy()), CUDA_SUCCESS);
}

TEST_P(HostFunction, CallbackThreadCannotWaitForItself) {
  CUresult result = CUDA_SUCCESS;
  Stream& stream = sim.stream();
  sim.host_function(stream, [&] {
    const std::lock_guard lock(sim.mutex);
    result = sim.engine.wait(stream);
  });
  EXPECT_EQ(sim.engine.wait(stream), CUDA_SUCCESS);
  EXPECT_EQ(result, CUDA_ERROR_NOT_PERMITTED);
}

TEST_P(HostFunction, IsSkippedAfterAnErrorButCallbacksAreNot) {
  bool function = false, callback = false;
  Work work;
  work.name = "stream callback";
  work.resource = Resource::kHostFunction;
  work.host_function = [&] { callback = true; };
  work.runs_after_error = true;
  Stream& failed = sim.stream();
  sim.engine.set_sticky_error(kContext, CUDA_ERROR_ILLEGAL_ADDRESS);
  sim.host_function(failed, [&] { function = true; });
  sim.engine.enqueue(failed, work);
  EXPECT_EQ(sim.engine.wait(failed), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_FALSE(function);
  EXPECT_TRUE(callback);
  EXPECT_EQ(sim.engine.sticky_error(kContext), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_P(HostFunction, DrainDoesNotWaitForEver) {
  std::atomic<bool> go{false}, started{false};
  bool behind = false;
  Stream& stream = sim.stream();
  sim.host_function(stream, [&] {
    started = true;
    while (!go) std::this_thread::yield();
  });
  sim.pieces(stream, 1, [&](std::uint32_t, AccessLog&) { behind = true; });
  sim.engine.drain(std::chrono::milliseconds(20));
  EXPECT_FALSE(behind);
  go = true;
  EXPECT_EQ(sim.engine.wait(stream), CUDA_SUCCESS);
  EXPECT_TRUE(behind);
}

// Asked for while the seed would have it run by itself a few calls later: those calls come while it runs.
TEST(HostFunctionSeeds, RunsOnce) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Simulation sim(small_config(seed));
    std::atomic<int> runs{0};
    std::atomic<bool> go{false};
    Stream& stream = sim.stream();
    sim.host_function(stream, [&] {
      ++runs;
      while (!go) std::this_thread::yield();
    });
    sim.engine.drain(std::chrono::milliseconds(0));
    for (int call = 0; call < 10; ++call) sim.engine.charge(Duration(0));
    go = true;
    ASSERT_EQ(sim.engine.wait(stream), CUDA_SUCCESS);
    sim.host_function(stream, [] {});  // behind whatever else the callback thread was given
    ASSERT_EQ(sim.engine.wait(stream), CUDA_SUCCESS);
    ASSERT_EQ(runs, 1) << "seed " << seed;
  }
}

std::string seed_name(const testing::TestParamInfo<std::optional<std::uint64_t>>& parameter) {
  return parameter.param ? "Seed" + std::to_string(*parameter.param) : "Nominal";
}
INSTANTIATE_TEST_SUITE_P(Seeds, HostFunction,
                         testing::Values(std::nullopt, std::optional<std::uint64_t>(1), std::optional<std::uint64_t>(2),
                                         std::optional<std::uint64_t>(3), std::optional<std::uint64_t>(4),
                                         std::optional<std::uint64_t>(5)),
                         seed_name);

}  // namespace
}  // namespace cudasim::test
