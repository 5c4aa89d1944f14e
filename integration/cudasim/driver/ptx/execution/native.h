// Native code of a function, as a compiler makes it of the function's steps: a path of a warp runs in it from one of
// its entries until it comes to what only the warp can do (a barrier, a call, waiting for lanes of other paths), or
// until its lanes have ended. The registers lie in the frame's rows before and after.
//
// The layout of NativeCall is known to the compiler: kNativeVersion changes with it, and with what code may expect.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ptx/execution/lanes.h"

namespace cudasim::ptx {

inline constexpr std::uint32_t kNativeVersion = 2;

struct Way {
  Mask mask;
  std::uint32_t step;
};

struct NativeCall {
  Row* frame;
  const Row* constants;
  const Row* specials;
  std::uint64_t shared_address;
  std::uint64_t shared_bytes;
  std::uint64_t local_address;  // of lane 0's frame
  std::uint64_t local_stride;   // from lane to lane
  void* warp;
  // What has no native code is interpreted, step by step: not zero where the launch has to stop.
  std::uint32_t (*interpret)(void* warp, std::uint32_t step, Mask mask);
  Way* ways;            // in: room for as many as Native::most_ways
  std::uint32_t entry;  // in: its number
  Mask mask;            // in: the lanes
  Mask live;            // in: all lanes of the warp that have not ended
  std::uint32_t turns;  // in: jumps back before it returns
  // Out. Lanes that are in no way have ended, or have returned from the function.
  std::uint32_t way_count;
  Mask returned, exited;
};

struct Native {
  // Not zero where the launch has to stop.
  std::uint32_t (*run)(NativeCall* call) = nullptr;
  std::vector<std::uint32_t> entry_of_step;  // its number; kNoIndex: none
  std::uint32_t most_ways = 1;
  std::uint32_t interpreted_steps = 0;  // those that have no native code of their own
  std::string interpreted;              // which, each once: "mma.sync... atom.global..."
  std::shared_ptr<void> keep;           // what holds the code
};

}  // namespace cudasim::ptx
