// Frees at awkward moments, from awkward places, of what is no block.
#include <array>
#include <thread>

#include "awkward.h"

namespace awkward {
namespace {

void by_another_thread() {
  CUcontext context = nullptr;
  check(cuCtxGetCurrent(&context), "cuCtxGetCurrent");
  const CUdeviceptr a = block(1), b = block(2);
  launch(nullptr, "add", kWords, a, b, kWords);
  contents("a", a);
  std::thread([&] {
    show("without a context", cuMemFree(a));
    check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    show("with it", cuMemFree(b));
  }).join();
  const CUresult again = cuMemFree(a);
  show("here", again);
}

// Others still use it: the free waits for them, and who gets the bytes next does not disturb them.
void while_in_use() {
  const CUstream streams[3] = {make_stream(), make_stream(), make_stream(CU_STREAM_DEFAULT)};
  CUdeviceptr results[3];
  for (unsigned i = 0; i < 3; ++i) results[i] = block(10 + i);
  finish();
  for (unsigned round = 0; round < 4; ++round) {
    const CUdeviceptr used = block(round);
    finish();
    for (int i = 0; i < 3; ++i) {
      launch(streams[i], "add", kWords, results[i], used, kWords);
      launch(streams[i], "add", kWords, results[i], used, kWords);
    }
    release(used);
    const CUdeviceptr next = block(round + 50);
    finish();
    release(next);
  }
  for (const CUdeviceptr result : results) {
    contents("result", result);
    release(result);
  }
  for (const CUstream stream : streams) check(cuStreamDestroy(stream), "cuStreamDestroy");
}

void twice() {
  const CUdeviceptr a = block(1), small = block(2, 4096);
  finish();
  for (const CUdeviceptr address : {a, small}) {
    show("once", cuMemFree(address));
    show("twice", cuMemFree(address));
    show("in a stream's order", cuMemFreeAsync(address, nullptr));
  }
  CUdeviceptr ordered = 0;
  check(cuMemAllocAsync(&ordered, kBytes, nullptr), "cuMemAllocAsync");
  show("ordered, once", cuMemFreeAsync(ordered, nullptr));
  show("ordered, twice", cuMemFreeAsync(ordered, nullptr));
  finish();
}

void of_no_block() {
  const CUdeviceptr a = block(1);
  finish();
  unsigned on_stack = 5;
  std::vector<unsigned> on_heap(1024);
  void* pinned = nullptr;
  check(cuMemAllocHost(&pinned, 4096), "cuMemAllocHost");
  show("null", cuMemFree(0));
  show("inside", cuMemFree(a + 256));
  show("its end", cuMemFree(a + kBytes));
  show("before it", cuMemFree(a - 4));
  show("a variable", cuMemFree(reinterpret_cast<CUdeviceptr>(&on_stack)));
  show("the heap", cuMemFree(reinterpret_cast<CUdeviceptr>(on_heap.data())));
  show("page-locked memory", cuMemFree(reinterpret_cast<CUdeviceptr>(pinned)));
  show("a module's variable", cuMemFree(global("awkward_counter")));
  show("a block as page-locked memory", cuMemFreeHost(reinterpret_cast<void*>(a)));
  show("a block as registered memory", cuMemHostUnregister(reinterpret_cast<void*>(a)));
  show("invented", cuMemFree(0x1230000));
  show("inside, in a stream's order", cuMemFreeAsync(a + 256, nullptr));
  show("null, in a stream's order", cuMemFreeAsync(0, nullptr));
  contents("the block", a);
  check(cuMemFreeHost(pinned), "cuMemFreeHost");
  release(a);
}

// A thread's last destructors free what it has made.
void by_threads_that_end() {
  CUcontext context = nullptr;
  check(cuCtxGetCurrent(&context), "cuCtxGetCurrent");
  struct Kept {
    CUdeviceptr address = 0;
    CUcontext context = nullptr;
    ~Kept() {
      if (address == 0) return;
      check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
      check(cuMemFree(address), "cuMemFree, of a thread that ends");
    }
  };
  for (unsigned round = 0; round < 6; ++round) {
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 3; ++i) {
      threads.emplace_back([&, i] {
        thread_local Kept kept;
        kept.context = context;
        check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
        const CUstream stream = make_stream();
        kept.address = block(round * 3 + i, kBytes, stream);
        check(cuStreamSynchronize(stream), "cuStreamSynchronize");
        check(cuStreamDestroy(stream), "cuStreamDestroy");
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  say("rounds", 6);
}

// In another stream's order than that of its uses, behind an event; and the plain free of a stream's block.
void in_another_order() {
  const CUstream first = make_stream(), second = make_stream();
  for (unsigned round = 0; round < 5; ++round) {
    CUdeviceptr a = 0, b = 0;
    check(cuMemAllocAsync(&a, kBytes, first), "cuMemAllocAsync");
    refill(a, round, kBytes, first);
    order(first, second);
    check(cuMemAllocAsync(&b, kBytes, second), "cuMemAllocAsync");
    refill(b, round + 7, kBytes, second);
    launch(second, "add", kWords, b, a, kWords);
    check(cuMemFreeAsync(a, second), "cuMemFreeAsync");
    check(cuStreamSynchronize(second), "cuStreamSynchronize");
    contents("b", b);
    release(b);
  }
  for (const CUstream stream : {first, second}) check(cuStreamDestroy(stream), "cuStreamDestroy");
}

// The stream on which a block was used is gone when the block is freed.
void behind_streams_that_are_gone() {
  const CUdeviceptr result = block(1);
  for (unsigned round = 0; round < 6; ++round) {
    const CUdeviceptr used = block(round + 3);
    finish();
    const CUstream stream = make_stream();
    launch(stream, "add", kWords, result, used, kWords);
    check(cuStreamDestroy(stream), "cuStreamDestroy");
    release(used);
  }
  contents("result", result);
  release(result);
}

}  // namespace

std::span<const Case> free_cases() {
  static constexpr std::array kCases = {Case{"freed-by-another-thread", by_another_thread},
                                        Case{"freed-while-in-use", while_in_use},
                                        Case{"freed-twice", twice},
                                        Case{"freed-no-block", of_no_block},
                                        Case{"freed-by-threads-that-end", by_threads_that_end},
                                        Case{"freed-in-another-order", in_another_order},
                                        Case{"freed-behind-streams-that-are-gone", behind_streams_that_are_gone}};
  return kCases;
}

}  // namespace awkward
