// Ends of blocks, contexts and processes while blocks are away.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "limit_program.h"

namespace limit {
namespace {

void freed() {
  Crowd crowd;
  for (unsigned round = 0; round < 4; ++round) {
    Block plain(kBytes, round), ordered(kBytes, round + 1), other(kBytes - 4096, round + 2);
    const CUstream stream = make_stream();
    crowd.drive_away();
    plain.free();
    check(cuMemFreeAsync(ordered.address(), stream), "cuMemFreeAsync");
    // In their places, as a rule.
    Block next(kBytes, round + 3, stream), last(kBytes, round + 4);
    check(cuStreamSynchronize(stream), "cuStreamSynchronize");
    say("the next ones", next.wrong() + last.wrong());
    crowd.drive_away();
    say("away, too", next.wrong() + last.wrong() + other.wrong());
    next.free();
    other.free();
    crowd.drive_away();
    last.free();
    check(cuStreamDestroy(stream), "cuStreamDestroy");
  }
  say("the crowd", crowd.wrong());
  crowd.free();
}

// By the stream-ordered calls alone: blocks of pools leave like others.
void pooled() {
  const CUstream stream = make_stream();
  std::vector<CUdeviceptr> blocks(20);
  std::size_t wrong = 0;
  for (unsigned round = 0; round < 4; ++round) {
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      check(cuMemAllocAsync(&blocks[i], kBytes, stream), "cuMemAllocAsync");
      check(launch(kernels.fill, stream, kBytes / 4, blocks[i], round * 100 + static_cast<unsigned>(i),
                   static_cast<int>(kBytes / 4)),
            "limit_fill");
    }
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      unsigned words[2] = {};
      check(cuMemcpyDtoHAsync(&words[0], blocks[i], 4, stream), "cuMemcpyDtoHAsync");
      check(cuMemcpyDtoHAsync(&words[1], blocks[i] + kBytes - 4, 4, stream), "cuMemcpyDtoHAsync");
      check(cuStreamSynchronize(stream), "cuStreamSynchronize");
      const unsigned seed = round * 100 + static_cast<unsigned>(i);
      wrong += (words[0] != seed ? 1 : 0) + (words[1] != seed + kBytes / 4 - 1 ? 1 : 0);
      check(cuMemFreeAsync(blocks[i], stream), "cuMemFreeAsync");
    }
  }
  check(cuStreamSynchronize(stream), "cuStreamSynchronize");
  say("stream-ordered blocks", wrong);
}

void freed_by_another_thread() {
  Crowd crowd;
  for (unsigned round = 0; round < 4; ++round) {
    std::vector<Block> blocks;
    std::thread([&] {
      check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
      for (unsigned i = 0; i < 4; ++i) blocks.emplace_back(kBytes, round * 10 + i, CU_STREAM_PER_THREAD);
      check(cuStreamSynchronize(CU_STREAM_PER_THREAD), "cuStreamSynchronize");
    }).join();
    crowd.drive_away();
    std::thread([&] {
      check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
      for (std::size_t i = 0; i < 3; ++i) blocks[i].free();
      // Those of this one are made where the others were.
      Block mine(kBytes, 5, CU_STREAM_PER_THREAD);
      check(cuStreamSynchronize(CU_STREAM_PER_THREAD), "cuStreamSynchronize");
      say("another thread's", mine.wrong());
      mine.free();
    }).join();
    say("the one that is left", blocks[3].wrong());
    blocks[3].free();
  }
  say("the crowd", crowd.wrong());
  crowd.free();
}

// With nothing freed, as programs reset a device.
void reset() {
  for (unsigned round = 0; round < 3; ++round) {
    if (round != 0) {
      check(cuDevicePrimaryCtxReset(device), "cuDevicePrimaryCtxReset");
      open();
    }
    Block first(kBytes, round), second(kBytes, round + 1);
    Crowd crowd;
    crowd.drive_away();
    first.add(second);
    say("before the reset", first.wrong() + second.wrong());
    crowd.drive_away();
  }
}

void destroyed_context() {
  CUcontext own = nullptr;
  for (unsigned round = 0; round < 3; ++round) {
    check(cuCtxCreate(&own, nullptr, 0, device), "cuCtxCreate");
    load_kernels();
    Block first(kBytes, round), second(kBytes, round + 1);
    Crowd crowd;
    crowd.drive_away();
    first.add(second);
    say("before its end", first.wrong() + second.wrong());
    crowd.drive_away();
    check(cuCtxDestroy(own), "cuCtxDestroy");
  }
}

// Nothing is freed, and copies are under way. Main returns, or the process ends by `how`.
void exit_at_once(const std::string& how) {
  Block first(kBytes, 1), second(kBytes, 2);
  Crowd crowd;
  crowd.drive_away();
  first.add(second);
  say("before the end", 0);
  if (how == "_exit") _exit(0);
  if (how == "exit-by-thread") {
    std::thread([] { std::exit(0); }).join();
  }
}

// The child can use nothing of CUDA's; it ends, by `how`, and the parent goes on.
void forked(const std::string& how) {
  Block first(kBytes, 1), second(kBytes, 2);
  Crowd crowd;
  crowd.drive_away();
  std::size_t wrong = 0;
  for (unsigned round = 0; round < 3; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      CUdeviceptr none = 0;
      const CUresult answer = cuMemAlloc(&none, kBytes);
      if (answer == CUDA_SUCCESS) _exit(1);
      if (how == "_exit") _exit(0);
      if (how == "frees" && cuMemFree(first.address()) == CUDA_SUCCESS) _exit(2);
      std::fflush(nullptr);
      std::exit(0);
    }
    int status = -1;
    if (waitpid(child, &status, 0) != child || status != 0) ++wrong;
    first.add(second);
    wrong += first.wrong();
    crowd.drive_away();
  }
  say("parent and children", wrong + first.wrong() + second.wrong() + crowd.wrong());
}

// Blocks come and go, more than the limit of them at any time; for the tests in which something fails.
void turns(int steps) {
  std::vector<Block> blocks;
  std::size_t wrong = 0;
  for (unsigned step = 0; step < static_cast<unsigned>(steps); ++step) {
    blocks.emplace_back(kBytes - 4096, step * 7919);
    if (blocks.size() > 12) {
      const std::size_t which = step * 5 % blocks.size();
      blocks[step * 7 % blocks.size()].add(blocks[which == 0 ? 1 : 0]);
      wrong += blocks[which].wrong();
      blocks[which].free();
      blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(which));
    }
  }
  for (Block& block : blocks) {
    wrong += block.wrong();
    block.free();
  }
  say("in turns", wrong);
  if (wrong != 0) std::exit(1);
}

// The same iteration again and again, so that there is something to plan; `count` of them.
void iterations(int count) {
  Block weights(kBytes, 1);
  std::size_t wrong = 0;
  for (unsigned round = 0; round < static_cast<unsigned>(count); ++round) {
    std::vector<Block> blocks;
    for (unsigned i = 0; i < 14; ++i) blocks.emplace_back(kBytes + 4096 * i, round + i);
    for (unsigned i = 13; i > 0; --i) {
      blocks[i - 1].add(blocks[i]);
      wrong += blocks[i].wrong();
      blocks[i].free();
    }
    wrong += blocks[0].wrong() + weights.wrong();
    blocks[0].free();
  }
  say("iterations", wrong);
}

// Iterations for which swaps are planned, and whose launches take four times as long from the middle on: longer than
// an iteration took on demand before.
void longer_launches(int count) {
  constexpr std::size_t kEach = 4 * kMib;
  constexpr unsigned kBlocks = 10;
  using Takes = void (*)(std::uint64_t);
  const auto next_launch_takes = reinterpret_cast<Takes>(dlsym(RTLD_DEFAULT, "cudasim_next_launch_takes"));
  const CUstream stream = make_stream();
  std::vector<CUdeviceptr> blocks(kBlocks);
  const auto run = [&](CUfunction kernel, unsigned round, auto... parameters) {
    if (next_launch_takes != nullptr) next_launch_takes(static_cast<int>(round) < count / 2 ? 300'000 : 1'200'000);
    check(launch(kernel, stream, kEach / 4, parameters..., static_cast<int>(kEach / 4)), "cuLaunchKernel");
  };
  std::size_t wrong = 0;
  for (unsigned round = 0; round < static_cast<unsigned>(count); ++round) {
    for (unsigned i = 0; i < kBlocks; ++i) {
      check(cuMemAllocAsync(&blocks[i], kEach, stream), "cuMemAllocAsync");
      run(kernels.fill, round, blocks[i], round + i);
    }
    for (unsigned i = kBlocks - 1; i > 0; --i) {
      run(kernels.add, round, blocks[i - 1], blocks[i]);
      if (i > 1) check(cuMemFreeAsync(blocks[i], stream), "cuMemFreeAsync");
    }
    // The sums of all that was filled, and of all but the first.
    for (unsigned i = 0; i < 2; ++i) {
      unsigned word = 0, expected = 0;
      check(cuMemcpyDtoHAsync(&word, blocks[i] + kEach - 4, 4, stream), "cuMemcpyDtoHAsync");
      check(cuStreamSynchronize(stream), "cuStreamSynchronize");
      for (unsigned k = i; k < kBlocks; ++k) expected += round + k + static_cast<unsigned>(kEach / 4) - 1;
      wrong += word != expected ? 1 : 0;
      check(cuMemFreeAsync(blocks[i], stream), "cuMemFreeAsync");
    }
  }
  say("iterations", wrong);
}

}  // namespace

std::span<const Case> life_cases() {
  static constexpr std::array kCases = {
      Case{"freed", freed},
      Case{"pooled", pooled},
      Case{"freed-by-another-thread", freed_by_another_thread},
      Case{"reset", reset},
      Case{"destroyed-context", destroyed_context},
      Case{"exit", [] { exit_at_once(argument); }},
      Case{"fork", [] { forked(argument); }},
      Case{"turns", [] { turns(argument.empty() ? 60 : number(argument.c_str(), "steps")); }},
      Case{"iterations", [] { iterations(number(argument.c_str(), "iterations")); }},
      Case{"longer-launches", [] { longer_launches(number(argument.c_str(), "longer-launches")); }}};
  return kCases;
}

}  // namespace limit
