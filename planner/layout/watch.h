// Internal to the room: when to stop.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "planner/layout/search.h"

namespace memopt::layout {

// The end of a whole search: its time, or somebody's wish. Thread-safe.
class Watch {
 public:
  explicit Watch(const Limits& limits) : cancelled_(limits.cancelled) {
    const auto now = Clock::now();
    // Also where now + time would be more than a clock can say.
    unlimited_ = limits.time > Clock::time_point::max() - now;
    if (!unlimited_) deadline_ = now + limits.time;
  }

  bool over() const {
    if (cancelled_ != nullptr && cancelled_->load(std::memory_order_relaxed)) return true;
    return !unlimited_ && Clock::now() >= deadline_;
  }

  std::chrono::nanoseconds left() const {
    if (unlimited_) return std::chrono::nanoseconds::max();
    return std::max(std::chrono::nanoseconds(0), std::chrono::nanoseconds(deadline_ - Clock::now()));
  }

 private:
  using Clock = std::chrono::steady_clock;

  const std::atomic<bool>* cancelled_;
  Clock::time_point deadline_;
  bool unlimited_ = false;
};

// What one solver may spend: a number of steps of about a microsecond at most, and no longer than the watch says.
class Allowance {
 public:
  explicit Allowance(const Watch& watch, std::uint64_t work = ~std::uint64_t{0}) : watch_(&watch), work_(work) {}

  // Of solvers that run side by side, numbered: once `winner` is smaller than this one's number, it is over.
  void stop_for(const std::atomic<std::uint32_t>& winner, std::uint32_t number) {
    winner_ = &winner;
    number_ = number;
  }

  // Once false, always false.
  bool spend(std::uint64_t steps) {
    used_ += steps;
    if (used_ >= next_look_) look();
    return !over_;
  }
  bool over() const { return over_; }
  std::uint64_t used() const { return used_; }
  std::uint64_t left() const { return work_ - std::min(work_, used_); }

 private:
  static constexpr std::uint64_t kStepsPerLook = 256;

  void look() {
    next_look_ = std::min(work_, used_ + kStepsPerLook);
    over_ = over_ || used_ >= work_ || watch_->over() ||
            (winner_ != nullptr && winner_->load(std::memory_order_relaxed) < number_);
  }

  const Watch* watch_;
  const std::atomic<std::uint32_t>* winner_ = nullptr;
  std::uint32_t number_ = 0;
  std::uint64_t work_;
  std::uint64_t used_ = 0;
  std::uint64_t next_look_ = 0;
  bool over_ = false;
};

}  // namespace memopt::layout
