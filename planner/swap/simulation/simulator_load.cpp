// The simulator without layout: bytes are interchangeable. They are taken in order of issue, those let go earliest
// first; bytes of copies out that have not ended yet may be taken, and are waited for.
#include <algorithm>

#include "planner/swap/simulation/simulator.h"

namespace memopt::swap {

void Simulator::prepare_load(const Decisions& decisions, Timing& timing) {
  const std::uint64_t n = liveness_.operations;
  taken_at_.assign(n, 0);
  released_at_.assign(n, 0);
  tokens_.clear();
  token_ = 0;
  std::uint64_t used = 0;
  std::size_t i = 0;
  for (std::uint32_t b = 0; b < problem_.blocks.size(); ++b) {
    const std::uint64_t bytes = problem_.blocks[b].bytes;
    const bool swapped = i < residency_.intervals.size() && residency_.intervals[i].block == b;
    if (problem_.blocks[b].persistent && !swapped) used += bytes;
    for (; i < residency_.intervals.size() && residency_.intervals[i].block == b; ++i) {
      const ResidencyInterval& it = residency_.intervals[i];
      std::uint64_t begin = it.first;
      if (it.in_swap == kNoSwap) {
        taken_at_[it.first % n] += bytes;
      } else {
        begin = decisions.swaps[it.in_swap].in_after;
      }
      if (it.out_swap == kNoSwap) released_at_[it.last % n] += bytes;
      used += bytes * (it.last / n - begin / n);  // instances across the boundary
    }
  }
  if (used > *problem_.limit) {
    timing.fault = Fault::kOverLimit;
    return;
  }
  room_ = ready_bytes_ = *problem_.limit - used;
  for (const std::uint32_t j : ins_order_) {
    const Swap& swap = decisions.swaps[j];
    if (!swap.copy) continue;
    in_waits_.push_back({j, j, static_cast<std::uint32_t>(swap.in_after / n - swap.out_after / n)});
  }
  // By swap: the waits of ins_order_ came in that order already.
  ins_.clear();
  std::uint32_t wait = 0;
  for (const std::uint32_t j : ins_order_) {
    const std::uint32_t waits = decisions.swaps[j].copy ? 1 : 0;
    ins_.push_back({decisions.swaps[j].in_after % n, j, wait, waits});
    wait += waits;
  }
  for (std::uint64_t op = 0; op < n; ++op) {
    // An operation that only takes or releases is a step, too.
    if (taken_at_[op] != 0 || released_at_[op] != 0) waits_.push_back({op, kNoBlock, 0, false});
  }
}

// When the last of the bytes is let go; 0 where all of them were before now. There must be room.
double Simulator::take(std::uint64_t bytes, double now) {
  room_ -= bytes;
  while (token_ < tokens_.size() && tokens_[token_].time <= now) ready_bytes_ += tokens_[token_++].bytes;
  if (bytes <= ready_bytes_) {
    ready_bytes_ -= bytes;
    return 0;
  }
  bytes -= ready_bytes_;
  ready_bytes_ = 0;
  double time = 0;
  while (bytes != 0) {
    Token& token = tokens_[token_];
    const std::uint64_t part = std::min(bytes, token.bytes);
    time = token.time;
    bytes -= part;
    token.bytes -= part;
    if (token.bytes == 0) ++token_;
  }
  if (token_ == tokens_.size()) {
    tokens_.clear();
    token_ = 0;
  }
  return time;
}

bool Simulator::simulate_load_iteration(const Decisions& decisions, std::uint64_t iteration, Timing& timing) {
  const auto lacks = [&](std::uint64_t bytes, std::uint32_t block) {
    if (bytes <= room_) return false;
    timing.fault = Fault::kOverLimit;
    timing.culprit = block;
    return true;
  };
  const double base = static_cast<double>(iteration) * problem_.period;
  timing.peak_resident = std::max(timing.peak_resident, *problem_.limit - room_);
  std::uint32_t wait = 0, out = 0, in = 0;
  for (const Step& step : steps_) {
    const double start = base + begin_[step.operation] + stall_;
    double ready = start;
    if (const std::uint64_t bytes = taken_at_[step.operation]; bytes != 0) {
      if (lacks(bytes, problem_.operations[step.operation].block)) return false;
      ready = std::max(ready, take(bytes, start));
    }
    for (; wait < step.waits_end; ++wait) {
      const Wait& one = waits_[wait];
      if (one.in) ready = std::max(ready, in_end_[slot(one.swap, iteration) - one.back * swaps_]);
    }
    if (ready > start) {
      stall_ += ready - start;
      stalls_.push_back({iteration, step.operation, ready - start});
    }
    const double end = base + end_[step.operation] + stall_;
    room_ += released_at_[step.operation];
    ready_bytes_ += released_at_[step.operation];
    for (; out < step.outs_end; ++out) {
      const std::uint32_t j = outs_[out];
      const std::uint64_t bytes = problem_.blocks[decisions.swaps[j].block].bytes;
      double& done = out_end_[slot(j, iteration)];
      room_ += bytes;
      if (out_ns_[j] < 0) {
        done = end;
        ready_bytes_ += bytes;
      } else {
        done = out_free_ = std::max(end, out_free_) + out_ns_[j];
        tokens_.push_back({done, bytes});
      }
    }
    for (; in < step.ins_end; ++in) {
      const CopyIn& copy = ins_[in];
      const std::uint32_t block = decisions.swaps[copy.swap].block;
      const std::uint64_t bytes = problem_.blocks[block].bytes;
      if (lacks(bytes, block)) return false;
      double begin = std::max({end, in_free_, take(bytes, end)});
      for (std::uint32_t w = copy.first_wait; w < copy.first_wait + copy.waits; ++w) {
        begin = std::max(begin, out_end_[slot(in_waits_[w].swap, iteration) - in_waits_[w].back * swaps_]);
      }
      const std::size_t at = slot(copy.swap, iteration);
      in_begin_[at] = begin;
      in_end_[at] = in_free_ = begin + in_ns_[copy.swap];
    }
    timing.peak_resident = std::max(timing.peak_resident, *problem_.limit - room_);
  }
  ends_[iteration] = base + problem_.period + stall_;
  return true;
}

}  // namespace memopt::swap
