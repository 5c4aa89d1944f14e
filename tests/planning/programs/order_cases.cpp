// Programs that rely on what CUDA says of order, and of memopt only on that: streams and threads, frees as barriers,
// host functions that wait. Each prints what it has seen, the same with and without memopt.
//
//   order_cases CASE [N [ROUNDS]]
//
//   streams N         blocks filled on one of N streams, copied on another, freed
//   other-thread N    blocks used on the default stream of one thread, freed by another
//   host-function N   a host function waits for another thread, while a third frees
//   threads N         N threads at once, each with blocks and a stream of its own, for so many rounds (40)
//   in-turn N         N threads one after the other, each on its own default stream
//   barrier           what can be seen after a free without waiting for anything else
//   failure           what is answered after a fault
#include <cuda.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "driver_program.h"

const char* const kProgram = "order_cases";

namespace {

constexpr std::size_t kBytes = std::size_t{3} << 20;
constexpr std::size_t kSmall = 4096;

CUdeviceptr allocate(std::size_t bytes) {
  CUdeviceptr address = 0;
  check(cuMemAlloc(&address, bytes), "cuMemAlloc");
  return address;
}

CUstream make_stream(unsigned int flags = CU_STREAM_NON_BLOCKING) {
  CUstream stream = nullptr;
  check(cuStreamCreate(&stream, flags), "cuStreamCreate");
  return stream;
}

CUevent make_event() {
  CUevent event = nullptr;
  check(cuEventCreate(&event, CU_EVENT_DEFAULT), "cuEventCreate");
  return event;
}

void fill(CUdeviceptr address, unsigned int word, std::size_t bytes, CUstream stream) {
  check(cuMemsetD32Async(address, word, bytes / 4, stream), "cuMemsetD32Async");
}

void copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  check(cuMemcpyDtoDAsync(to, from, bytes, stream), "cuMemcpyDtoDAsync");
}

// Words of the block that are not `word`.
std::size_t others(CUdeviceptr address, unsigned int word, std::size_t bytes) {
  std::vector<unsigned int> seen(bytes / 4);
  check(cuMemcpyDtoH(seen.data(), address, bytes), "cuMemcpyDtoH");
  std::size_t count = 0;
  for (const unsigned int one : seen) count += one != word ? 1 : 0;
  return count;
}

void streams(int count) {
  std::vector<CUstream> all;
  std::vector<CUevent> events;
  for (int i = 0; i < count; ++i) {
    all.push_back(make_stream());
    events.push_back(make_event());
  }
  const CUdeviceptr results = allocate(static_cast<std::size_t>(count) * kSmall);
  std::size_t wrong = 0;
  for (unsigned int round = 0; round < 6; ++round) {
    for (int i = 0; i < count; ++i) {
      const int next = (i * 7 + 3) % count;
      const unsigned int word = round * 1000 + static_cast<unsigned int>(i);
      const CUdeviceptr block = allocate(kSmall + static_cast<std::size_t>(i % 5) * kBytes);
      fill(block, word, kSmall, all[i]);
      check(cuEventRecord(events[i], all[i]), "cuEventRecord");
      check(cuStreamWaitEvent(all[next], events[i], 0), "cuStreamWaitEvent");
      copy(results + static_cast<std::size_t>(i) * kSmall, block, kSmall, all[next]);
      if (round % 2 == 0) {
        check(cuMemFree(block), "cuMemFree");
      } else {
        check(cuMemFreeAsync(block, all[next]), "cuMemFreeAsync");
      }
    }
    check(cuCtxSynchronize(), "cuCtxSynchronize");
    for (int i = 0; i < count; ++i) {
      wrong +=
          others(results + static_cast<std::size_t>(i) * kSmall, round * 1000 + static_cast<unsigned int>(i), kSmall);
    }
  }
  std::printf("wrong words: %zu\n", wrong);
}

// Hands over from one thread to another, round by round.
class Turns {
 public:
  void done(int turn) {
    const std::lock_guard<std::mutex> guard(mutex_);
    turn_ = turn + 1;
    changed_.notify_all();
  }
  void await(int turn) {
    std::unique_lock<std::mutex> guard(mutex_);
    changed_.wait(guard, [&] { return turn_ >= turn; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int turn_ = 0;
};

void other_thread(CUcontext context, int rounds) {
  Turns turns;
  const CUdeviceptr results = allocate(static_cast<std::size_t>(rounds) * kSmall);
  CUdeviceptr block = 0;
  std::thread user([&] {
    check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    for (int i = 0; i < rounds; ++i) {
      turns.await(2 * i);
      block = allocate(kBytes);
      fill(block, static_cast<unsigned int>(i), kBytes, CU_STREAM_PER_THREAD);
      copy(results + static_cast<std::size_t>(i) * kSmall, block + kBytes - kSmall, kSmall, CU_STREAM_PER_THREAD);
      turns.done(2 * i);
    }
    check(cuStreamSynchronize(CU_STREAM_PER_THREAD), "cuStreamSynchronize");
  });
  for (int i = 0; i < rounds; ++i) {
    turns.await(2 * i + 1);
    check(cuMemFree(block), "cuMemFree");
    const CUdeviceptr mine = allocate(kBytes);
    fill(mine, 0xffffffffu, kBytes, CU_STREAM_PER_THREAD);
    check(cuMemFree(mine), "cuMemFree");
    turns.done(2 * i + 1);
  }
  user.join();
  std::size_t wrong = 0;
  for (int i = 0; i < rounds; ++i) {
    wrong += others(results + static_cast<std::size_t>(i) * kSmall, static_cast<unsigned int>(i), kSmall);
  }
  std::printf("wrong words: %zu\n", wrong);
}

void CUDA_CB wait_for_flag(void* flag) {
  while (!static_cast<std::atomic<bool>*>(flag)->load()) std::this_thread::yield();
}

// The free waits for the host function; the host function for a thread that needs memory and the device.
void host_function(CUcontext context, int rounds) {
  const CUstream waiting = make_stream();
  std::size_t wrong = 0;
  for (int i = 0; i < rounds; ++i) {
    std::atomic<bool> flag = false, freeing = false;
    const CUdeviceptr block = allocate(kBytes);
    const CUdeviceptr result = allocate(kSmall);
    fill(block, 1, kBytes, waiting);
    check(cuLaunchHostFunc(waiting, wait_for_flag, &flag), "cuLaunchHostFunc");
    std::thread helper([&] {
      check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
      const CUstream own = make_stream();
      while (!freeing) std::this_thread::yield();
      // The free, natively and here, has not come back by then, as a rule.
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      const CUdeviceptr mine = allocate(kBytes);
      fill(mine, 7, kBytes, own);
      copy(result, mine, kSmall, own);
      check(cuStreamSynchronize(own), "cuStreamSynchronize");
      flag = true;
      check(cuMemFree(mine), "cuMemFree");
      check(cuStreamDestroy(own), "cuStreamDestroy");
    });
    freeing = true;
    check(cuMemFree(block), "cuMemFree");
    if (!flag) ++wrong;  // it has not waited
    helper.join();
    wrong += others(result, 7, kSmall);
    check(cuMemFree(result), "cuMemFree");
  }
  std::printf("wrong: %zu\n", wrong);
}

void threads(CUcontext context, int count, int rounds) {
  std::atomic<std::size_t> wrong = 0;
  std::vector<std::thread> all;
  for (int i = 0; i < count; ++i) {
    all.emplace_back([&, i] {
      check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
      const CUstream stream = make_stream();
      for (int round = 0; round < rounds; ++round) {
        const unsigned int word = static_cast<unsigned int>(i * 1000 + round);
        const CUdeviceptr first = allocate(kSmall), second = allocate(kSmall);
        fill(first, word, kSmall, stream);
        copy(second, first, kSmall, stream);
        check(cuMemFree(first), "cuMemFree");
        if (round % 8 == 7) {
          check(cuStreamSynchronize(stream), "cuStreamSynchronize");
          wrong += others(second, word, kSmall);
        }
        check(cuMemFreeAsync(second, stream), "cuMemFreeAsync");
      }
      check(cuStreamDestroy(stream), "cuStreamDestroy");
    });
  }
  for (std::thread& thread : all) thread.join();
  std::printf("wrong words: %zu\n", wrong.load());
}

void in_turn(CUcontext context, int count) {
  constexpr int kLooks = 100;
  const CUdeviceptr results = allocate(kSmall);
  std::size_t wrong = 0;
  for (int i = 0; i < count; ++i) {
    std::thread([&] {
      check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
      const CUdeviceptr block = allocate(kSmall);
      fill(block, static_cast<unsigned int>(i), kSmall, CU_STREAM_PER_THREAD);
      copy(results, block, kSmall, CU_STREAM_PER_THREAD);
      check(cuMemFree(block), "cuMemFree");
    }).join();
    if (i % kLooks == kLooks - 1) wrong += others(results, static_cast<unsigned int>(i), kSmall);
  }
  std::printf("wrong words: %zu\n", wrong);
}

void barrier() {
  const CUstream first = make_stream(), second = make_stream();
  const CUevent begin = make_event(), end = make_event();
  const CUdeviceptr unrelated = allocate(kSmall), block = allocate(std::size_t{64} << 20), result = allocate(kSmall);
  for (int round = 0; round < 3; ++round) {
    const unsigned int word = static_cast<unsigned int>(round) + 5;
    const CUdeviceptr freed = round == 0 ? unrelated : allocate(kSmall * static_cast<std::size_t>(round));
    fill(freed, 1, kSmall, second);
    check(cuEventRecord(begin, first), "cuEventRecord");
    for (int i = 0; i < 5; ++i) fill(block, word, std::size_t{64} << 20, first);
    check(cuEventRecord(end, first), "cuEventRecord");
    const CUresult before = cuEventQuery(end);
    check(cuMemFree(freed), "cuMemFree");
    // No edge of the program's: the free was one.
    copy(result, block + (std::size_t{64} << 20) - kSmall, kSmall, second);
    const CUresult stream = cuStreamQuery(first), event = cuEventQuery(end);
    float milliseconds = 0;
    const CUresult elapsed = cuEventElapsedTime(&milliseconds, begin, end);
    check(cuStreamSynchronize(second), "cuStreamSynchronize");
    std::printf("before the free %d, after it: stream %d, event %d, elapsed %d (%s); wrong words: %zu\n",
                static_cast<int>(before), static_cast<int>(stream), static_cast<int>(event), static_cast<int>(elapsed),
                milliseconds > 0.1f ? "a time" : "none", others(result, word, kSmall));
  }
}

void failure() {
  const CUdeviceptr block = allocate(kBytes), other = allocate(kBytes);
  const CUstream stream = make_stream();
  check(cuMemFree(block), "cuMemFree");
  // Of an address that never was one.
  const CUresult copied = cuMemcpyDtoDAsync(0x1234567000, other, kSmall, stream);
  const CUresult waited = cuStreamSynchronize(stream);
  CUdeviceptr more = 0;
  const CUresult allocated = cuMemAlloc(&more, kBytes);
  const CUresult freed = cuMemFree(other);
  std::printf("copy %d, wait %d, allocation %d, free %d\n", static_cast<int>(copied), static_cast<int>(waited),
              static_cast<int>(allocated), static_cast<int>(freed));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  const int count = argc > 2 ? number(argv[2], "N") : 1;
  CUdevice device = 0;
  const CUcontext context = open_device(&device);
  if (name == "streams") {
    streams(count);
  } else if (name == "other-thread") {
    other_thread(context, count);
  } else if (name == "host-function") {
    host_function(context, count);
  } else if (name == "threads") {
    threads(context, count, argc > 3 ? number(argv[3], "ROUNDS") : 40);
  } else if (name == "in-turn") {
    in_turn(context, count);
  } else if (name == "barrier") {
    barrier();
  } else if (name == "failure") {
    failure();
  } else {
    std::fprintf(stderr, "order_cases: unknown case '%s'\n", name.c_str());
    return 2;
  }
  return 0;
}
