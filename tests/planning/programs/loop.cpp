// A program that repeats an iteration of allocations, fills each block with words that say which block of which
// iteration it is, and checks them before it frees the block. Fast, and without kernels: for tests that start it often.
//
//   loop ITERATIONS [--pause MICROSECONDS] [--odd N] [--late N] [--sizes N] [--streams N] [--keep] [--threads]
//        [--reset N | --leave N]
//
//   --pause    the host sleeps so long after each iteration
//   --odd N    every N-th iteration allocates one block more, in the middle
//   --late N   every N-th iteration frees its first block at the end of the next one only
//   --sizes N  after N iterations each has sizes of its own, up to four times as large
//   --streams  work goes round over so many streams
//   --threads  each iteration runs in a thread of its own, one after the other
//   --keep     three blocks are never freed, and are checked in each iteration
//   --reset N  after every N iterations the device is reset with all that is allocated, and the program begins again
//   --leave N  the same, but by a context of its own that is destroyed
//
// Prints "iterations N, mismatches M, checksum X"; exit code 1 if there was a mismatch.
#include <cuda.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "driver_program.h"

const char* const kProgram = "loop";

namespace {

struct Block {
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  unsigned int word = 0;
  CUstream stream = nullptr;
};

CUresult leave_by_old_call(CUcontext context) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  return cuCtxDetach(context);
#pragma GCC diagnostic pop
}

class Program {
 public:
  void make_streams(int streams) {
    streams_.clear();
    for (int i = 0; i < streams; ++i) {
      CUstream stream = nullptr;
      check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
      streams_.push_back(stream);
    }
  }

  Block allocate(std::size_t bytes) {
    Block block;
    block.bytes = bytes;
    block.word = ++words_ * 2654435761u;
    block.stream = streams_.empty() ? nullptr : streams_[words_ % streams_.size()];
    check(cuMemAlloc(&block.address, bytes), "cuMemAlloc");
    check(cuMemsetD32Async(block.address, block.word, bytes / 4, block.stream), "cuMemsetD32Async");
    return block;
  }

  // First and last words, and one in the middle.
  void verify(const Block& block) {
    for (const std::size_t at : {std::size_t{0}, block.bytes / 8 * 4, block.bytes - 4}) {
      unsigned int word = 0;
      check(cuMemcpyDtoHAsync(&word, block.address + at, 4, block.stream), "cuMemcpyDtoHAsync");
      check(cuStreamSynchronize(block.stream), "cuStreamSynchronize");
      if (word != block.word) ++mismatches;
      checksum = (checksum ^ word) * 0x100000001b3u;
    }
  }

  void release(const Block& block) { check(cuMemFree(block.address), "cuMemFree"); }

  std::uint64_t checksum = 0xcbf29ce484222325u;
  int mismatches = 0;

 private:
  std::vector<CUstream> streams_;
  unsigned int words_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  int pause = 0;
  int odd = 0;
  int late = 0;
  int same = 0;
  int streams = 0;
  int reset = 0;
  int leave = 0;
  bool keep = false;
  bool threads = false;
  if (argc < 2) {
    std::fprintf(
        stderr,
        "usage: loop ITERATIONS [--pause MICROSECONDS] [--odd N] [--late N] [--sizes N] [--streams N] [--keep] "
        "[--threads] [--reset N | --leave N]\n");
    return 2;
  }
  const int iterations = number(argv[1], "ITERATIONS");
  for (int i = 2; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--keep") {
      keep = true;
    } else if (option == "--threads") {
      threads = true;
    } else if (i + 1 < argc && option == "--pause") {
      pause = number(argv[++i], "--pause");
    } else if (i + 1 < argc && option == "--odd") {
      odd = number(argv[++i], "--odd");
    } else if (i + 1 < argc && option == "--late") {
      late = number(argv[++i], "--late");
    } else if (i + 1 < argc && option == "--sizes") {
      same = number(argv[++i], "--sizes");
    } else if (i + 1 < argc && option == "--reset") {
      reset = number(argv[++i], "--reset");
    } else if (i + 1 < argc && option == "--leave") {
      leave = number(argv[++i], "--leave");
    } else if (i + 1 < argc && option == "--streams") {
      streams = number(argv[++i], "--streams");
    } else {
      std::fprintf(stderr, "loop: unknown or incomplete option '%s'\n", option.c_str());
      return 2;
    }
  }
  CUdevice device = 0;
  CUcontext context = open_device(&device);
  if (leave != 0) check(cuCtxCreate(&context, nullptr, 0, device), "cuCtxCreate");

  Program program;
  std::vector<Block> kept;
  const auto begin = [&] {
    program.make_streams(streams);
    for (int i = 0; keep && i < 3; ++i) kept.push_back(program.allocate((3u << 20) + 4096u * static_cast<unsigned>(i)));
  };
  begin();
  // Sizes as a small network has them: a few large ones, many small ones, overlapping like a stack with a tail.
  const std::size_t sizes[] = {5u << 20, 4096, 3u << 20, 700, 9u << 20, 65536, 1u << 20, 2u << 20, 512, 6u << 20};
  std::deque<Block> carried;  // one block of each iteration lives into the next
  Block belated;
  std::minstd_rand random(1);
  const auto iterate = [&](int iteration) {
    check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    std::vector<Block> blocks;
    const bool other = same != 0 && iteration >= same;
    const std::size_t parts = other ? 1200 + random() % 2800 : 1000;
    for (std::size_t i = 0; i < std::size(sizes); ++i) {
      blocks.push_back(program.allocate(sizes[i] * parts / 1000 / 4 * 4));
      if (i % 3 == 2) {
        program.verify(blocks[i - 1]);
        program.release(blocks[i - 1]);
        blocks[i - 1].address = 0;
      }
      if (odd != 0 && iteration % odd == odd - 1 && i == 4) blocks.push_back(program.allocate(1u << 21));
    }
    carried.push_back(program.allocate(3 << 19));
    if (carried.size() > 1) {
      program.verify(carried.front());
      program.release(carried.front());
      carried.pop_front();
    }
    if (belated.address != 0) {
      program.verify(belated);
      program.release(belated);
      belated.address = 0;
    }
    if (late != 0 && iteration % late == late - 1) std::swap(belated, blocks.front());
    for (const Block& block : blocks) {
      if (block.address == 0) continue;
      program.verify(block);
      program.release(block);
    }
    for (const Block& block : kept) program.verify(block);
    if (pause != 0) usleep(static_cast<useconds_t>(pause));
  };
  for (int iteration = 0; iteration < iterations; ++iteration) {
    const int part = reset != 0 ? reset : leave;
    if (part != 0 && iteration != 0 && iteration % part == 0) {
      // Nothing is freed: the context takes it along.
      kept.clear();
      carried.clear();
      belated.address = 0;
      if (reset != 0) {
        check(cuDevicePrimaryCtxReset(device), "cuDevicePrimaryCtxReset");
        check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
        check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
      } else {
        // The other way, by the old call, every second time.
        const bool detach = iteration / part % 2 == 0;
        check(detach ? leave_by_old_call(context) : cuCtxDestroy(context), "cuCtxDestroy");
        check(cuCtxCreate(&context, nullptr, 0, device), "cuCtxCreate");
      }
      begin();
    }
    if (threads) {
      std::thread(iterate, iteration).join();
    } else {
      iterate(iteration);
    }
  }
  if (belated.address != 0) carried.push_back(belated);
  for (const Block& block : carried) {
    program.verify(block);
    program.release(block);
  }
  std::printf("iterations %d, mismatches %d, checksum %016llx\n", iterations, program.mismatches,
              static_cast<unsigned long long>(program.checksum));
  return program.mismatches == 0 ? 0 : 1;
}
