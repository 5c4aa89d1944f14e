// What the driver answers to wrong calls and rare questions about memory that memopt may serve: one line each, the same
// with memopt and without. Between them the program goes on with its work, as if nothing had been asked.
//
//   answers CASE
#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "driver_program.h"

const char* const kProgram = "answers";

namespace {

void show(const char* what, CUresult result) { std::printf("%s: %d\n", what, static_cast<int>(result)); }

CUdeviceptr allocate(std::size_t bytes, unsigned int word) {
  CUdeviceptr address = 0;
  check(cuMemAlloc(&address, bytes), "cuMemAlloc");
  check(cuMemsetD32(address, word, bytes / 4), "cuMemsetD32");
  return address;
}

// Is the block still there, as it was?
void verify(const char* what, CUdeviceptr address, std::size_t bytes, unsigned int word) {
  std::vector<unsigned int> words(bytes / 4);
  check(cuMemcpyDtoH(words.data(), address, bytes), "cuMemcpyDtoH");
  std::size_t wrong = 0;
  for (const unsigned int found : words) wrong += found == word ? 0 : 1;
  std::printf("%s: %zu wrong words\n", what, wrong);
}

// Some rounds of allocations on two streams, whose bytes are used again and again.
void work(const char* what) {
  CUstream streams[2];
  for (CUstream& stream : streams) check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  int wrong = 0;
  for (unsigned int round = 0; round < 40; ++round) {
    CUdeviceptr blocks[4];
    for (unsigned int i = 0; i < 4; ++i) {
      check(cuMemAlloc(&blocks[i], (i + 1) << 20), "cuMemAlloc");
      check(cuMemsetD32Async(blocks[i], round * 4 + i, ((i + 1) << 20) / 4, streams[i % 2]), "cuMemsetD32Async");
    }
    for (unsigned int i = 0; i < 4; ++i) {
      unsigned int word = 0;
      check(cuMemcpyDtoHAsync(&word, blocks[i] + (i << 18), 4, streams[i % 2]), "cuMemcpyDtoHAsync");
      check(cuStreamSynchronize(streams[i % 2]), "cuStreamSynchronize");
      wrong += word == round * 4 + i ? 0 : 1;
      check(cuMemFree(blocks[i]), "cuMemFree");
    }
  }
  for (CUstream stream : streams) check(cuStreamDestroy(stream), "cuStreamDestroy");
  std::printf("%s: %d wrong words\n", what, wrong);
}

int wrong_frees() {
  CUdevice device = 0;
  const CUcontext context = open_device(&device);
  constexpr std::size_t kLarge = std::size_t{6} << 20;
  const CUdeviceptr large = allocate(kLarge, 1);
  const CUdeviceptr small = allocate(4096, 2);

  show("null", cuMemFree(0));
  show("inside a block", cuMemFree(large + 512));
  show("inside a small block", cuMemFree(small + 4));
  show("its end", cuMemFree(large + kLarge));
  show("far behind it", cuMemFree(large + (std::size_t{1} << 32)));
  show("invented", cuMemFree(0x1234567000));
  const CUdeviceptr once = allocate(kLarge, 3);
  show("once", cuMemFree(once));
  show("twice", cuMemFree(once));

  check(cuCtxSetCurrent(nullptr), "cuCtxSetCurrent");
  show("without a context", cuMemFree(large));
  show("without a context, small", cuMemFree(small));
  show("without a context, invented", cuMemFree(large + 512));
  CUdeviceptr none = 0;
  show("allocate without a context", cuMemAlloc(&none, 4096));
  std::thread([large] { show("on a thread without a context", cuMemFree(large)); }).join();
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  verify("still there", large, kLarge, 1);
  verify("still there, small", small, 4096, 2);
  work("work");

  CUcontext other = nullptr;
  check(cuCtxCreate(&other, nullptr, 0, device), "cuCtxCreate");
  show("in another context", cuMemFree(small));
  show("in another context, twice", cuMemFree(small));
  std::thread([other] { show("destroyed by another thread", cuCtxDestroy(other)); }).join();
  show("in a context that is gone", cuMemFree(large));
  check(cuCtxPopCurrent(nullptr), "cuCtxPopCurrent");
  verify("still there", large, kLarge, 1);
  show("in its own", cuMemFree(large));
  work("work");

  const CUdeviceptr left = allocate(kLarge, 4);
  check(cuDevicePrimaryCtxReset(device), "cuDevicePrimaryCtxReset");
  show("in a context that was reset", cuMemFree(left));
  show("allocate in a context that was reset", cuMemAlloc(&none, 4096));
  CUcontext again = nullptr;
  check(cuDevicePrimaryCtxRetain(&again, device), "cuDevicePrimaryCtxRetain");
  check(cuCtxSetCurrent(again), "cuCtxSetCurrent");
  show("of the context before", cuMemFree(left));
  work("work");
  return 0;
}

void use_stream(CUstream stream, CUdeviceptr block, CUevent event) {
  unsigned int word = 0;
  CUdeviceptr made = 0;
  unsigned int flags = 0;
  CUstreamCaptureStatus capturing = CU_STREAM_CAPTURE_STATUS_NONE;
  CUgraph graph = nullptr;
  show("  memset", cuMemsetD32Async(block, 9, 16, stream));
  show("  copy", cuMemcpyDtoDAsync(block, block + 4096, 64, stream));
  show("  copy to the host", cuMemcpyDtoHAsync(&word, block, 4, stream));
  show("  launch", cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr));
  show("  host function", cuLaunchHostFunc(
                              stream, [](void*) {}, nullptr));
  show("  record", cuEventRecord(event, stream));
  show("  wait", cuStreamWaitEvent(stream, event, 0));
  show("  query", cuStreamQuery(stream));
  show("  synchronize", cuStreamSynchronize(stream));
  show("  flags", cuStreamGetFlags(stream, &flags));
  show("  capturing", cuStreamIsCapturing(stream, &capturing));
  show("  end of a capture", cuStreamEndCapture(stream, &graph));
  show("  allocate", cuMemAllocAsync(&made, 4096, stream));
  show("  free", cuMemFreeAsync(block, stream));
}

int wrong_streams() {
  CUdevice device = 0;
  open_device(&device);
  constexpr std::size_t kBytes = std::size_t{6} << 20;
  const CUdeviceptr block = allocate(kBytes, 1);
  CUdeviceptr ordered = 0;
  check(cuMemAllocAsync(&ordered, 65536, nullptr), "cuMemAllocAsync");
  CUevent event = nullptr;
  check(cuEventCreate(&event, 0), "cuEventCreate");
  work("work");

  std::puts("invented");
  use_stream(reinterpret_cast<CUstream>(0x5550), block, event);
  for (std::uintptr_t i = 0; i < 200; ++i) {
    const auto stream = reinterpret_cast<CUstream>(0x66660000 + i * 64);
    if (cuMemsetD32Async(block, 9, 16, stream) != CUDA_ERROR_INVALID_HANDLE ||
        cuStreamSynchronize(stream) != CUDA_ERROR_INVALID_HANDLE) {
      std::puts("an invented stream was accepted");
    }
  }
  std::puts("destroyed");
  CUstream gone = nullptr;
  check(cuStreamCreate(&gone, 0), "cuStreamCreate");
  check(cuMemsetD32Async(block, 1, kBytes / 4, gone), "cuMemsetD32Async");
  show("  destroyed", cuStreamDestroy(gone));
  show("  destroyed twice", cuStreamDestroy(gone));
  use_stream(gone, block, event);
  show("an invented one destroyed", cuStreamDestroy(reinterpret_cast<CUstream>(0x5550)));
  show("an invented event", cuEventSynchronize(reinterpret_cast<CUevent>(0x7770)));
  show("an invented event recorded", cuEventRecord(reinterpret_cast<CUevent>(0x7770), nullptr));
  show("an invented event waited for", cuStreamWaitEvent(nullptr, reinterpret_cast<CUevent>(0x7770), 0));
  show("an invented event destroyed", cuEventDestroy(reinterpret_cast<CUevent>(0x7770)));

  verify("still there", block, kBytes, 1);
  work("work");
  show("free of the ordered block", cuMemFreeAsync(ordered, nullptr));
  show("freed twice", cuMemFreeAsync(ordered, nullptr));
  show("inside a block", cuMemFreeAsync(block + 512, nullptr));
  show("its own free", cuMemFree(block));
  show("its own free, twice", cuMemFree(block));
  work("work");
  return 0;
}

struct Case {
  const char* name;
  int (*run)();
};
constexpr Case kCases[] = {{"wrong-frees", wrong_frees}, {"wrong-streams", wrong_streams}};

}  // namespace

int main(int argc, char** argv) {
  for (const Case& known : kCases) {
    if (argc == 2 && std::strcmp(argv[1], known.name) == 0) return known.run();
  }
  std::fprintf(stderr, "usage: answers CASE\n");
  return 2;
}
