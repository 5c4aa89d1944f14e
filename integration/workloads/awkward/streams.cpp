// Streams and events.
#include <array>
#include <thread>

#include "awkward.h"

namespace awkward {
namespace {

// The two default streams by their names, and one that waits for them.
void default_streams() {
  const CUdeviceptr a = block(1), b = block(2);
  const CUstream blocking = make_stream(CU_STREAM_DEFAULT);
  finish();
  for (int round = 0; round < 3; ++round) {
    launch(CU_STREAM_LEGACY, "add", kWords, a, b, kWords);
    launch(blocking, "add", kWords, b, a, kWords);
    launch(nullptr, "add", kWords, a, b, kWords);
    launch(CU_STREAM_PER_THREAD, "add", kWords, b, a, kWords);
    check(cuStreamSynchronize(CU_STREAM_PER_THREAD), "cuStreamSynchronize");
  }
  contents("a", a);
  contents("b", b);
  check(cuStreamDestroy(blocking), "cuStreamDestroy");
  release(a);
  release(b);
}

// Each thread's own default stream, whose blocks the others get.
void streams_of_threads() {
  CUcontext context = nullptr;
  check(cuCtxGetCurrent(&context), "cuCtxGetCurrent");
  CUdeviceptr results[3];
  for (unsigned i = 0; i < 3; ++i) results[i] = block(i);
  finish();
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
      for (unsigned round = 0; round < 5; ++round) {
        const CUdeviceptr used = block(i * 10 + round, kBytes, CU_STREAM_PER_THREAD);
        launch(CU_STREAM_PER_THREAD, "add", kWords, results[i], used, kWords);
        check(cuStreamSynchronize(CU_STREAM_PER_THREAD), "cuStreamSynchronize");
        release(used);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const CUdeviceptr result : results) {
    contents("result", result);
    release(result);
  }
}

void with_priorities() {
  int least = 0, greatest = 0;
  check(cuCtxGetStreamPriorityRange(&least, &greatest), "cuCtxGetStreamPriorityRange");
  CUstream low = nullptr, high = nullptr;
  check(cuStreamCreateWithPriority(&low, CU_STREAM_NON_BLOCKING, least), "cuStreamCreateWithPriority");
  check(cuStreamCreateWithPriority(&high, CU_STREAM_NON_BLOCKING, greatest), "cuStreamCreateWithPriority");
  int priority = 0;
  show("priority", cuStreamGetPriority(high, &priority));
  say("as asked for", priority == greatest ? 1 : 0);
  const CUdeviceptr a = block(1), b = block(2);
  finish();
  for (int round = 0; round < 3; ++round) {
    launch(low, "add", kWords, a, b, kWords);
    order(low, high);
    launch(high, "add", kWords, b, a, kWords);
    order(high, low);
  }
  contents("b", b);
  for (const CUstream stream : {low, high}) check(cuStreamDestroy(stream), "cuStreamDestroy");
  release(a);
  release(b);
}

// An event is recorded anew after it was waited for, waited for before it was recorded, and destroyed while it counts.
void events() {
  const CUstream first = make_stream(), second = make_stream();
  const CUdeviceptr a = block(1), b = block(2);
  finish();
  CUevent event = make_event();
  show("never recorded, queried", cuEventQuery(event));
  show("never recorded, waited for", cuStreamWaitEvent(second, event, 0));
  launch(first, "add", kWords, a, b, kWords);
  check(cuEventRecord(event, first), "cuEventRecord");
  check(cuStreamWaitEvent(second, event, 0), "cuStreamWaitEvent");
  launch(second, "add", kWords, b, a, kWords);
  check(cuEventRecord(event, second), "cuEventRecord");
  check(cuStreamWaitEvent(first, event, 0), "cuStreamWaitEvent");
  check(cuEventDestroy(event), "cuEventDestroy");
  launch(first, "add", kWords, a, b, kWords);
  check(cuStreamSynchronize(first), "cuStreamSynchronize");
  contents("a", a);
  CUevent begin = nullptr, end = nullptr;
  check(cuEventCreate(&begin, CU_EVENT_DEFAULT), "cuEventCreate");
  check(cuEventCreate(&end, CU_EVENT_BLOCKING_SYNC), "cuEventCreate");
  check(cuEventRecord(begin, first), "cuEventRecord");
  launch(first, "add", kWords, a, b, kWords);
  check(cuEventRecord(end, first), "cuEventRecord");
  check(cuEventSynchronize(end), "cuEventSynchronize");
  float milliseconds = -1;
  show("elapsed", cuEventElapsedTime(&milliseconds, begin, end));
  say("some time", milliseconds > 0 ? 1 : 0);
  for (const CUevent one : {begin, end}) check(cuEventDestroy(one), "cuEventDestroy");
  for (const CUstream stream : {first, second}) check(cuStreamDestroy(stream), "cuStreamDestroy");
  release(a);
  release(b);
}

// Many streams that come and go, more than any table has room for at first.
void many() {
  const CUdeviceptr a = block(1), b = block(2);
  finish();
  for (int round = 0; round < 3; ++round) {
    std::vector<CUstream> streams;
    for (int i = 0; i < 70; ++i) streams.push_back(make_stream());
    for (std::size_t i = 0; i < streams.size(); ++i) {
      if (i > 0) order(streams[i - 1], streams[i]);
      launch(streams[i], "add", 1024, a, b, 1024);
    }
    check(cuStreamSynchronize(streams.back()), "cuStreamSynchronize");
    for (const CUstream stream : streams) check(cuStreamDestroy(stream), "cuStreamDestroy");
  }
  contents("a", a);
  release(a);
  release(b);
}

}  // namespace

std::span<const Case> stream_cases() {
  static constexpr std::array kCases = {
      Case{"streams-by-default", default_streams}, Case{"streams-of-threads", streams_of_threads},
      Case{"streams-with-priorities", with_priorities}, Case{"streams-many", many}, Case{"events", events}};
  return kCases;
}

}  // namespace awkward
