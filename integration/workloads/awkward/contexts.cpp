// Contexts: the primary one in the middle of its life, others beside it, and blocks that go with them.
#include <array>
#include <thread>

#include "awkward.h"

namespace awkward {
namespace {

CUcontext make_context() {
  CUcontext context = nullptr;
  check(cuCtxCreate(&context, nullptr, 0, device), "cuCtxCreate");
  return context;
}

void work(const char* what) {
  const CUdeviceptr a = block(1), b = block(2);
  launch(nullptr, "add", kWords, a, b, kWords);
  contents(what, a);
  release(a);
  release(b);
}

// All that was there is gone, and the program goes on.
void reset() {
  for (int round = 0; round < 2; ++round) {
    work("before");
    const CUdeviceptr left = block(4);
    const CUstream stream = make_stream();
    refill(left, 5, kBytes, stream);
    show("reset", cuDevicePrimaryCtxReset(device));
    forget_modules();
    CUdeviceptr address = 0;
    show("allocated in what is gone", cuMemAlloc(&address, kBytes));
    show("freed in what is gone", cuMemFree(left));
    open();
    show("freed afterwards", cuMemFree(left));
    work("after");
    // main() has one reference, which outlived the reset.
    check(cuDevicePrimaryCtxRelease(device), "cuDevicePrimaryCtxRelease");
  }
}

void own_beside_primary() {
  CUcontext primary = nullptr;
  check(cuCtxGetCurrent(&primary), "cuCtxGetCurrent");
  const CUdeviceptr a = block(1);
  finish();
  const CUcontext own = make_context();
  const CUdeviceptr b = block(2);
  work("own");
  check(cuCtxSetCurrent(primary), "cuCtxSetCurrent");
  work("primary");
  // Memory of one context is reachable from the other.
  finish();
  launch(nullptr, "add", kWords, a, a, kWords);
  contents("a", a);
  check(cuCtxSetCurrent(own), "cuCtxSetCurrent");
  contents("b", b);
  show("freed elsewhere", cuMemFree(a));
  check(cuCtxDestroy(own), "cuCtxDestroy");
  check(cuCtxSetCurrent(primary), "cuCtxSetCurrent");
  show("of a context that is gone", cuMemFree(b));
  const CUresult again = cuMemFree(a);
  show("freed twice", again);
  work("after");
}

// A context that ends with blocks, streams and work.
void destroyed_with_blocks() {
  CUcontext primary = nullptr;
  check(cuCtxGetCurrent(&primary), "cuCtxGetCurrent");
  std::size_t before = 0, after = 0, total = 0;
  check(cuMemGetInfo(&before, &total), "cuMemGetInfo");
  for (int round = 0; round < 3; ++round) {
    const CUcontext own = make_context();
    std::vector<CUdeviceptr> left;
    const CUstream stream = make_stream();
    for (unsigned i = 0; i < 4; ++i) left.push_back(block(i, kBytes, stream));
    check(cuCtxDestroy(own), "cuCtxDestroy");
    check(cuCtxSetCurrent(primary), "cuCtxSetCurrent");
    work("primary");
  }
  check(cuMemGetInfo(&after, &total), "cuMemGetInfo");
  say("not back", before - after);
}

void pushed_and_popped() {
  CUcontext primary = nullptr, popped = nullptr;
  check(cuCtxGetCurrent(&primary), "cuCtxGetCurrent");
  const CUcontext own = make_context();
  check(cuCtxPopCurrent(&popped), "cuCtxPopCurrent");
  const CUdeviceptr a = block(1);
  finish();
  std::thread([&] {
    CUdeviceptr address = 0;
    show("without one", cuMemAlloc(&address, kBytes));
    check(cuCtxPushCurrent(own), "cuCtxPushCurrent");
    work("own");
    check(cuCtxPushCurrent(primary), "cuCtxPushCurrent");
    work("primary above");
    launch(nullptr, "add", kWords, a, a, kWords);
    finish();
    check(cuCtxPopCurrent(&popped), "cuCtxPopCurrent");
    say("the primary one", popped == primary ? 1 : 0);
    work("own again");
    check(cuCtxPopCurrent(nullptr), "cuCtxPopCurrent");
    show("one too many", cuCtxPopCurrent(nullptr));
    show("synchronized without one", cuCtxSynchronize());
  }).join();
  contents("a", a);
  release(a);
  check(cuCtxDestroy(own), "cuCtxDestroy");
  forget_modules();
  kernel("fill");
}

}  // namespace

std::span<const Case> context_cases() {
  static constexpr std::array kCases = {Case{"context-reset", reset, false},
                                        Case{"context-own-beside-primary", own_beside_primary, false},
                                        Case{"context-destroyed-with-blocks", destroyed_with_blocks, false},
                                        Case{"context-pushed-and-popped", pushed_and_popped, false}};
  return kCases;
}

}  // namespace awkward
