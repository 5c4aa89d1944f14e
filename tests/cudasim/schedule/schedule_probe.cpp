// A program whose threads wait for each other by everything that the C library and C++ have for that, between calls of
// the driver.
//
//   schedule_probe work       prints the order in which its threads got their turns, and a sum that is the same in all
//   schedule_probe deadlock   two threads take two mutexes in different orders, again and again
//   schedule_probe function   a host function waits for a thread that waits for the first thread, which waits for it
#include <cuda.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "schedule_probe: %s: error %d\n", what, static_cast<int>(result));
  std::exit(3);
}

void call_driver() {
  int devices = 0;
  check(cuDeviceGetCount(&devices), "cuDeviceGetCount");
}

class Work {
 public:
  void run(int id) {
    for (int round = 0; round < 5; ++round) {
      {
        const std::lock_guard lock(mutex_);
        order_ += static_cast<char>('a' + id);
        call_driver();
        ++sum_;
      }
      semaphore_.acquire();
      call_driver();
      semaphore_.release();
      {
        std::shared_lock lock(shared_);
        call_driver();
      }
      {
        const std::lock_guard lock(shared_);
        call_driver();
        ++sum_;
      }
      std::this_thread::yield();
    }
    meet();
    if (id == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      __atomic_store_n(&flag_, 1, __ATOMIC_RELEASE);
      syscall(SYS_futex, &flag_, FUTEX_WAKE_PRIVATE, kThreads, nullptr, nullptr, 0);
    } else {
      while (__atomic_load_n(&flag_, __ATOMIC_ACQUIRE) == 0)
        syscall(SYS_futex, &flag_, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
      usleep(30);
    }
    std::unique_lock lock(mutex_);
    timed_out_ += changed_.wait_for(lock, std::chrono::milliseconds(1)) == std::cv_status::timeout ? 1 : 0;
    order_ += static_cast<char>('A' + id);
  }

  std::string result() const {
    return order_ + " " + std::to_string(sum_) + " " + std::to_string(timed_out_ == kThreads);
  }

  static constexpr int kThreads = 3;

 private:
  // All threads, by a condition.
  void meet() {
    std::unique_lock lock(mutex_);
    if (++there_ == kThreads) {
      changed_.notify_all();
    } else {
      changed_.wait(lock, [this] { return there_ == kThreads; });
    }
    call_driver();
  }

  std::mutex mutex_;
  std::shared_mutex shared_;
  std::condition_variable changed_;
  std::counting_semaphore<> semaphore_{1};
  int flag_ = 0;
  int there_ = 0;
  int sum_ = 0;
  int timed_out_ = 0;
  std::string order_;
};

void work() {
  Work work;
  std::vector<std::thread> threads;
  for (int id = 0; id < Work::kThreads; ++id) threads.emplace_back([&work, id] { work.run(id); });
  for (std::thread& thread : threads) thread.join();
  std::printf("%s\n", work.result().c_str());
}

void deadlock() {
  std::mutex first;
  std::mutex second;
  const auto take = [](std::mutex& one, std::mutex& other) {
    for (int i = 0; i < 1000; ++i) {
      const std::lock_guard outer(one);
      call_driver();
      const std::lock_guard inner(other);
    }
  };
  std::thread forward([&] { take(first, second); });
  std::thread backward([&] { take(second, first); });
  forward.join();
  backward.join();
}

void function() {
  std::mutex mutex;
  std::condition_variable changed;
  int stage = 0;
  const auto reach = [&](int to) {
    const std::lock_guard lock(mutex);
    stage = to;
    changed.notify_all();
  };
  const auto await = [&](int what) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return stage >= what; });
  };
  struct Context {
    decltype(await)& wait;
    decltype(reach)& go;
  } context{await, reach};
  CUstream stream = nullptr;
  check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  const auto body = [](void* argument) {
    const auto& [wait, go] = *static_cast<Context*>(argument);
    wait(2);
    go(3);
  };
  check(cuLaunchHostFunc(stream, body, &context), "cuLaunchHostFunc");
  std::thread other([&] {
    await(1);
    call_driver();
    reach(2);
  });
  reach(1);
  check(cuStreamSynchronize(stream), "cuStreamSynchronize");
  other.join();
  // The driver is not asked for this one.
  stage = 2;
  check(cuLaunchHostFunc(stream, body, &context), "cuLaunchHostFunc");
  await(3);
  std::printf("stage %d\n", stage);
}

}  // namespace

int main(int argc, char** argv) {
  CUcontext context = nullptr;
  check(cuInit(0), "cuInit");
  check(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  const std::string what = argc == 2 ? argv[1] : "";
  if (what == "work") {
    work();
  } else if (what == "deadlock") {
    deadlock();
  } else if (what == "function") {
    function();
  } else {
    std::fprintf(stderr, "usage: schedule_probe work|deadlock|function\n");
    return 2;
  }
  return 0;
}
