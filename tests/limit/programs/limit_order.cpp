// Streams and threads that hand blocks to each other, while there is room for some of them only. A copy that is not
// ordered behind the last writer, or a use that is not behind the copy, shows as wrong words under the adversary of the
// simulated device.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <random>
#include <thread>

#include "limit_program.h"

namespace limit {
namespace {

// Written by one stream behind slow work, driven away by another, read by a third: only events say so, the host never
// waits for the writer.
void handed_on() {
  const CUstream writer = make_stream(), reader = make_stream(), crowded = make_stream();
  Block slow(kBytes, 1, writer), result(kBytes, 2, reader);
  std::vector<Block> crowd;
  for (unsigned i = 0; i < 12; ++i) crowd.emplace_back(4 * kMib, i, crowded);
  finish();
  std::size_t wrong = 0;
  for (unsigned round = 0; round < 6; ++round) {
    for (int i = 0; i < 4; ++i) slow.fill(round * 16 + static_cast<unsigned>(i), writer);
    // Wants the room at once.
    for (Block& block : crowd) block.fill(round, crowded);
    order(writer, reader);
    result.add(slow, reader);
    order(reader, writer);
    // Written anew on yet another stream than the last time.
    order(reader, crowded);
    slow.fill(1000 + round, crowded);
    order(crowded, reader);
    result.add(slow, reader);
    order(reader, writer);
    if (round % 2 == 1) {
      check(cuStreamSynchronize(reader), "cuStreamSynchronize");
      wrong += result.wrong();
    }
  }
  finish();
  for (const Block& block : crowd) wrong += block.wrong();
  say("handed on", wrong + slow.wrong() + result.wrong());
}

// Many blocks in turn, each read and written in each round, on two streams that swap their roles: nothing of a round
// may be seen in the next one.
void rounds() {
  const CUstream streams[] = {make_stream(), make_stream()};
  std::vector<Block> blocks;
  for (unsigned i = 0; i < 20; ++i) blocks.emplace_back(kBytes, i * 1000);
  finish();
  for (unsigned round = 0; round < 6; ++round) {
    const CUstream first = streams[round % 2], second = streams[1 - round % 2];
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      blocks[i].fill(round * 7919 + static_cast<unsigned>(i), first);
      if (i % 4 == 3) {
        order(first, second);
        blocks[i - 1].add(blocks[i], second);
        blocks[i - 3].add(blocks[i - 2], second);
        order(second, first);
      }
    }
    order(first, second);
    order(second, first);
  }
  finish();
  std::size_t wrong = 0;
  for (const Block& block : blocks) wrong += block.wrong();
  say("rounds", wrong);
}

// Freed, made anew and overwritten on another stream, at once after a use: bytes that are under way are another's.
void reused() {
  const CUstream streams[] = {make_stream(), make_stream(), make_stream()};
  std::vector<Block> kept;
  for (unsigned i = 0; i < 8; ++i) kept.emplace_back(kBytes, i);
  std::size_t wrong = 0;
  for (unsigned round = 0; round < 40; ++round) {
    const CUstream stream = streams[round % 3], other = streams[(round + 1) % 3];
    Block passing(kBytes, round * 31, stream);
    Block& target = kept[round % kept.size()];
    order(nullptr, stream);
    order(other, stream);
    target.add(passing, stream);
    order(stream, other);
    check(cuMemFreeAsync(passing.address(), stream), "cuMemFreeAsync");
    Block next(kBytes, round * 37, other);
    kept[(round + 3) % kept.size()].add(next, other);
    order(other, streams[(round + 2) % 3]);
    order(other, stream);
    if (round % 8 == 7) {
      check(cuStreamSynchronize(other), "cuStreamSynchronize");
      wrong += next.wrong();
    }
    next.free();
  }
  finish();
  for (const Block& block : kept) wrong += block.wrong();
  say("reused", wrong);
}

// Two threads touch the same blocks at the same time, each on a stream of its own; they only read them.
void same_block() {
  constexpr int kThreads = 3;
  Block shared[] = {Block(kBytes, 1), Block(kBytes, 2), Block(kBytes, 3)};
  Crowd crowd(kLimit - 4 * kBytes);
  finish();
  std::atomic<std::size_t> wrong = 0;
  for (int round = 0; round < 5; ++round) {
    crowd.drive_away();
    std::vector<std::thread> threads;
    for (int which = 0; which < kThreads; ++which) {
      threads.emplace_back([&, which] {
        check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
        const CUstream stream = make_stream();
        Block mine(kBytes, static_cast<unsigned>(which), stream);
        for (int i = 0; i < 6; ++i) {
          mine.add(shared[(which + i) % 3], stream);
          if (i % 3 == 2) {
            Block passing(2 * kBytes, 5, stream);
            passing.free();
          }
        }
        check(cuStreamSynchronize(stream), "cuStreamSynchronize");
        wrong += mine.wrong();
        mine.free();
        check(cuStreamDestroy(stream), "cuStreamDestroy");
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  for (const Block& block : shared) wrong += block.wrong();
  say("the same block", wrong + crowd.wrong());
}

// Each thread has blocks of its own, together twice the limit.
void threads() {
  std::atomic<std::size_t> wrong = 0;
  std::vector<std::thread> all;
  for (unsigned which = 0; which < 4; ++which) {
    all.emplace_back([&, which] {
      check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
      const CUstream stream = make_stream();
      std::mt19937 random(which);
      std::vector<Block> blocks;
      for (unsigned step = 0; step < 60; ++step) {
        if (blocks.size() < 4 || random() % 4 == 0) {
          blocks.emplace_back(kBytes, static_cast<unsigned>(random()), stream);
        } else {
          blocks[random() % blocks.size()].add(blocks[random() % blocks.size()], stream);
        }
        if (blocks.size() > 5) {
          check(cuStreamSynchronize(stream), "cuStreamSynchronize");
          wrong += blocks.front().wrong();
          blocks.front().free();
          blocks.erase(blocks.begin());
        }
      }
      check(cuStreamSynchronize(stream), "cuStreamSynchronize");
      for (Block& block : blocks) {
        wrong += block.wrong();
        block.free();
      }
      check(cuStreamDestroy(stream), "cuStreamDestroy");
    });
  }
  for (std::thread& thread : all) thread.join();
  say("threads", wrong);
}

// Iterations for which swaps are planned, each on another stream than the last, its last writers on a side stream: a
// copy that is put behind the stream of the block's malloc, or of an iteration before, is behind the wrong work.
void iterations_on_streams(unsigned count) {
  constexpr unsigned kBlocks = 14, kWeights = 4;
  const CUstream streams[] = {make_stream(), make_stream(), make_stream()};
  std::vector<Block> weights;
  for (unsigned i = 0; i < kWeights; ++i) weights.emplace_back(kBytes / 2, i);
  finish();
  std::size_t wrong = 0;
  for (unsigned round = 0; round < count; ++round) {
    const CUstream stream = streams[round % 3], side = streams[(round + 1) % 3];
    std::vector<Block> blocks;
    for (unsigned i = 0; i < kBlocks; ++i) blocks.emplace_back(kBytes + 4096 * i, round * 100 + i, stream);
    for (unsigned i = 0; i < kBlocks; ++i) {
      order(stream, side);
      blocks[i].fill(round * 200 + i, side);
    }
    order(side, stream);
    for (unsigned i = kBlocks - 1; i > 0; --i) {
      blocks[i - 1].add(blocks[i], stream);
      weights[i % kWeights].add(blocks[i], stream);
      blocks[i].free();
    }
    check(cuStreamSynchronize(stream), "cuStreamSynchronize");
    wrong += blocks[0].wrong();
    blocks[0].free();
    order(stream, side);
  }
  finish();
  for (const Block& block : weights) wrong += block.wrong();
  say("iterations on other streams", wrong);
}

void CUDA_CB wait_for_flag(void* flag) {
  while (!static_cast<std::atomic<bool>*>(flag)->load()) std::this_thread::yield();
}

// Work on the block that was used longest ago can't end before this thread has memory. What can leave at once leaves.
void blocked(bool all) {
  const CUstream waiting = make_stream();
  std::vector<Block> blocks;
  for (unsigned i = 0; i < 8; ++i) blocks.emplace_back(kBytes, i);
  finish();
  std::atomic<bool> flag = false;
  check(cuLaunchHostFunc(waiting, wait_for_flag, &flag), "cuLaunchHostFunc");
  // The stream's use of them is behind the host function.
  for (std::size_t i = 0; i < (all ? blocks.size() : 2); ++i) blocks[i].fill(100 + static_cast<unsigned>(i), waiting);
  for (std::size_t i = 2; i < blocks.size() && !all; ++i) blocks[i].fill(200 + static_cast<unsigned>(i));
  // These are idle, and known to be: what waits is on another stream.
  if (!all) check(cuStreamSynchronize(nullptr), "cuStreamSynchronize");
  Block more(kBytes, 300), much_more(4 * kMib, 400);
  flag = true;
  finish();
  std::size_t wrong = more.wrong() + much_more.wrong();
  for (const Block& block : blocks) wrong += block.wrong();
  say("work that waits", wrong);
}

// As before, but a thread that the host function waits for needs a block that is away.
void blocked_touch() {
  const CUstream waiting = make_stream(), stream = make_stream();
  Block away(kBytes, 1), used(kBytes, 2);
  Crowd crowd;
  crowd.drive_away();
  std::atomic<bool> flag = false;
  check(cuLaunchHostFunc(waiting, wait_for_flag, &flag), "cuLaunchHostFunc");
  used.fill(3, waiting);
  std::thread helper([&] {
    check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    away.fill(4, stream);
    check(cuStreamSynchronize(stream), "cuStreamSynchronize");
    flag = true;
  });
  // It waits for the host function, natively too.
  check(cuStreamSynchronize(waiting), "cuStreamSynchronize");
  helper.join();
  say("a touch meanwhile", away.wrong() + used.wrong() + crowd.wrong());
}

// The legacy default stream orders itself behind all blocking ones, and they behind it.
void legacy_stream() {
  const CUstream blocking = make_stream(CU_STREAM_DEFAULT);
  std::vector<Block> blocks;
  for (unsigned i = 0; i < 14; ++i) blocks.emplace_back(kBytes, i, i % 2 == 0 ? nullptr : blocking);
  std::size_t wrong = 0;
  for (unsigned round = 0; round < 5; ++round) {
    for (std::size_t i = 1; i < blocks.size(); ++i) {
      blocks[i].fill(round * 100 + static_cast<unsigned>(i), i % 3 == 0 ? nullptr : blocking);
      blocks[i - 1].add(blocks[i], i % 2 == 0 ? nullptr : blocking);
      // The reader of the one is the writer of the other, on another of the two streams.
    }
  }
  finish();
  for (const Block& block : blocks) wrong += block.wrong();
  say("the legacy stream", wrong);
}

}  // namespace

std::span<const Case> order_cases() {
  static constexpr std::array kCases = {
      Case{"handed-on", handed_on},
      Case{"rounds", rounds},
      Case{"reused", reused},
      Case{"iterations-on-streams", [] { iterations_on_streams(number(argument.c_str(), "iterations")); }},
      Case{"same-block", same_block},
      Case{"threads", threads},
      Case{"blocked", [] { blocked(false); }},
      Case{"all-blocked", [] { blocked(true); }},
      Case{"blocked-touch", blocked_touch},
      Case{"legacy-stream", legacy_stream}};
  return kCases;
}

}  // namespace limit
