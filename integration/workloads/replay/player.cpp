#include "player.h"

#include <algorithm>
#include <chrono>
#include <limits>

namespace replay {
namespace {

// Longer gaps in a trace are somebody's pauses.
constexpr std::uint64_t kLongestThought = 100'000'000;
// Neighbouring operations share a stream, as those of a layer do.
constexpr std::size_t kStreamRun = 8;
constexpr std::uint32_t kNotFreed = std::numeric_limits<std::uint32_t>::max();

std::uint64_t mix64(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

Player::Player(const Stage& stage, unsigned thread)
    : stage_(stage),
      thread_(thread),
      contents_(stage.device, stage.simulator, stage.options.streams,
                stage.options.streams == 1 && stage.options.threads == 1,
                static_cast<unsigned>(mix64(stage.options.seed + (std::uint64_t{thread} << 32)))),
      blocks_(stage.trace.blocks.size()) {}

Player::~Player() {
  for (Slot& block : blocks_) release(block);
  for (std::vector<Slot>& twins : ring_) {
    for (Slot& block : twins) release(block);
  }
}

void Player::play() {
  const Steady* steady = stage_.steady;
  const std::size_t size = stage_.trace.operations.size();
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (!stage_.trace.blocks[i].from_before) continue;
    blocks_[i] = allocate(stage_.trace.blocks[i].bytes);
    contents_.write(*blocks_[i], 0, choose(i, 2));
  }
  if (steady == nullptr) {
    finish_iteration(0);
    play_trace(0, size, 0);
    finish_iteration(1);
    return;
  }
  play_trace(0, steady->begin(), 0);
  finish_iteration(0);
  const std::size_t from_trace = std::min(stage_.iterations, steady->iterations);
  for (std::size_t i = 0; i < from_trace; ++i) {
    const std::size_t begin = steady->begin() + i * steady->period;
    play_trace(begin, begin + steady->period, steady->begin());
    finish_iteration(i + 1);
  }
  if (stage_.iterations > from_trace) enter_loop();
  for (std::size_t i = from_trace; i < stage_.iterations; ++i) {
    play_loop();
    finish_iteration(i + 1);
  }
  if (!stage_.options.iterations) {
    play_trace(steady->end, size, steady->end);
    contents_.settle();
  }
}

void Player::play_trace(std::size_t begin, std::size_t end, std::size_t place) {
  const Trace& trace = stage_.trace;
  play_steps(place, end - begin, [&](std::size_t i) {
    const Operation& operation = trace.operations[begin + i];
    return LoopOperation{operation.verb, false, 0, 0, operation.block, trace.bytes(operation)};
  });
}

void Player::play_loop() {
  ++round_;
  play_steps(stage_.steady->begin(), stage_.steady->period, [&](std::size_t i) { return stage_.steady->loop[i]; });
}

// Blocks of the trace that the loop will free become members of the ring.
void Player::enter_loop() {
  const Steady& steady = *stage_.steady;
  ring_.resize(steady.period);
  std::vector<std::uint32_t> death(steady.period, kNotFreed);
  for (const LoopOperation& step : steady.loop) {
    if (step.verb == Verb::kMalloc) ring_[step.birth].resize(steady.deepest + 1);
    if (step.verb == Verb::kFree) death[step.birth] = step.age;
  }
  for (std::size_t back = 0; back < steady.deepest; ++back) {  // rounds 0, -1, …
    const std::size_t age = back + 1;                          // in the first round of the loop
    for (std::size_t offset = 0; offset < steady.period; ++offset) {
      if (death[offset] == kNotFreed || age > death[offset] || steady.end < (back + 1) * steady.period) continue;
      const Operation& birth = stage_.trace.operations[steady.end - (back + 1) * steady.period + offset];
      if (birth.verb != Verb::kMalloc) continue;
      const std::size_t n = steady.deepest + 1;
      ring_[offset][(n - back) % n] = std::move(blocks_[birth.block]);
    }
  }
}

void Player::finish_iteration(std::size_t done) {
  contents_.settle();
  stage_.iteration_done(done, thread_);
}

template <class Step>
void Player::play_steps(std::size_t place, std::size_t count, Step step) {
  for (std::size_t i = 0; i < count; ++i) {
    if (stage_.options.corrupt_at && thread_ == 0 && !corrupted_ && operations_ >= *stage_.options.corrupt_at) {
      try_corrupt(i, count, step);
    }
    play_step(step(i), place + i);
  }
}

void Player::play_step(const LoopOperation& step, std::size_t place) {
  ++operations_;
  const std::uint64_t after = stage_.options.think || stage_.options.trace_times ? time_after(place) : 0;
  if (stage_.options.trace_times) contents_.next_kernel_takes(after);
  const std::size_t like =
      stage_.options.alike ? static_cast<std::size_t>(step.bytes * 8) + static_cast<std::size_t>(step.verb) : place;
  const auto stream =
      static_cast<unsigned>(choose(stage_.options.alike ? like : place / kStreamRun, 0) % contents_.streams());
  Slot& block = slot(step);
  switch (step.verb) {
    case Verb::kMalloc:
      block = allocate(step.bytes);
      break;
    case Verb::kFree:
      release(block);
      break;
    case Verb::kRead:
      // What nothing has written can't be verified; nor would a program read it.
      if (block->written) {
        contents_.read(*block, stream, choose(like, 1));
        break;
      }
      ++first_reads_;
      [[fallthrough]];
    case Verb::kWrite:
      contents_.write(*block, stream, choose(like, 1));
      break;
    case Verb::kMarker:
      break;
  }
  if (stage_.options.think) think(after);
}

// Overwrites the block, of those that are there, that is read next without being written before.
template <class Step>
void Player::try_corrupt(std::size_t from, std::size_t count, Step step) {
  std::vector<const LiveBlock*> spoilt;
  for (std::size_t i = from; i < count; ++i) {
    const LoopOperation next = step(i);
    if (next.verb == Verb::kMalloc || next.verb == Verb::kMarker) continue;
    LiveBlock* block = slot(next).get();
    if (block == nullptr || !block->written) continue;
    if (std::find(spoilt.begin(), spoilt.end(), block) != spoilt.end()) continue;
    if (next.verb == Verb::kRead) {
      contents_.corrupt(*block, 0);
      corrupted_ = true;
      return;
    }
    spoilt.push_back(block);
  }
}

Player::Slot& Player::slot(const LoopOperation& step) {
  if (!step.born_in_loop) return blocks_[step.block];
  const std::size_t n = stage_.steady->deepest + 1;
  return ring_[step.birth][(round_ + n - step.age) % n];
}

Player::Slot Player::allocate(std::uint64_t bytes) {
  auto block = std::make_unique<LiveBlock>();
  block->bytes = bytes;
  block->number = ++blocks_made_;
  CHECK_DRIVER(cuMemAlloc(&block->base, bytes));
  stage_.load.add(bytes);
  return block;
}

// cuMemFree waits for all work that was issued, so the free needs no order of its own.
void Player::release(Slot& block) {
  if (block == nullptr) return;
  contents_.forget(*block);
  CHECK_DRIVER(cuMemFree(block->base));
  stage_.load.remove(block->bytes);
  block.reset();
}

std::uint64_t Player::choose(std::size_t place, unsigned purpose) const {
  return mix64(mix64(stage_.options.seed * 8 + purpose) + place);
}

std::uint64_t Player::time_after(std::size_t place) const {
  const std::vector<Operation>& operations = stage_.trace.operations;
  if (stage_.steady != nullptr && place >= stage_.steady->begin() && place < stage_.steady->end) {
    place += (stage_.steady->iterations - 1) * stage_.steady->period;  // the last iteration's times, free of start-up
  }
  if (place + 1 >= operations.size() || operations[place + 1].time_ns < operations[place].time_ns) return 0;
  return std::min(operations[place + 1].time_ns - operations[place].time_ns, kLongestThought);
}

void Player::think(std::uint64_t ns) const {
  if (stage_.simulator.present()) {
    stage_.simulator.host_works(ns);
    return;
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(ns);
  while (std::chrono::steady_clock::now() < end) {
  }
}

}  // namespace replay
