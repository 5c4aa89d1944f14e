// How long a search may go on.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace memopt::layout {

// A search ends at whichever comes first. Without a time limit the same seed gives the same result on any machine and
// with any number of threads.
struct Limits {
  std::chrono::nanoseconds time = std::chrono::nanoseconds::max();
  std::uint64_t work = ~std::uint64_t{0};  // steps, of about a microsecond at most; counted, so that results repeat
  const std::atomic<bool>* cancelled = nullptr;  // may be set by another thread
  unsigned threads = 1;
  std::uint64_t seed = 1;
};

// When a whole search ends: its time is up, or the caller has cancelled it. Thread-safe.
class Deadline {
 public:
  explicit Deadline(const Limits& limits) : cancelled_(limits.cancelled) {
    const auto now = Clock::now();
    // Also where now + time is more than the clock can represent.
    unlimited_ = limits.time > Clock::time_point::max() - now;
    if (!unlimited_) end_ = now + limits.time;
  }

  bool over() const {
    if (cancelled_ != nullptr && cancelled_->load(std::memory_order_relaxed)) return true;
    return !unlimited_ && Clock::now() >= end_;
  }

  std::chrono::nanoseconds left() const {
    if (unlimited_) return std::chrono::nanoseconds::max();
    return std::max(std::chrono::nanoseconds(0), std::chrono::nanoseconds(end_ - Clock::now()));
  }

 private:
  using Clock = std::chrono::steady_clock;

  const std::atomic<bool>* cancelled_;
  Clock::time_point end_;
  bool unlimited_ = false;
};

// What one solver may spend: a number of steps of about a microsecond at most, and no longer than the deadline.
class Allowance {
 public:
  explicit Allowance(const Deadline& deadline, std::uint64_t work = ~std::uint64_t{0})
      : deadline_(&deadline), work_(work) {}

  // For numbered solvers that run side by side: this one, `number`, ends once `winner` is smaller.
  void stop_for(const std::atomic<std::uint32_t>& winner, std::uint32_t number) {
    winner_ = &winner;
    number_ = number;
  }

  // Once false, always false.
  bool spend(std::uint64_t steps) {
    used_ += steps;
    if (used_ >= next_check_) check();
    return !over_;
  }
  bool over() const { return over_; }
  std::uint64_t used() const { return used_; }
  std::uint64_t left() const { return work_ - std::min(work_, used_); }

 private:
  static constexpr std::uint64_t kStepsPerCheck = 256;

  void check() {
    next_check_ = std::min(work_, used_ + kStepsPerCheck);
    over_ = over_ || used_ >= work_ || deadline_->over() ||
            (winner_ != nullptr && winner_->load(std::memory_order_relaxed) < number_);
  }

  const Deadline* deadline_;
  const std::atomic<std::uint32_t>* winner_ = nullptr;
  std::uint32_t number_ = 0;
  std::uint64_t work_;
  std::uint64_t used_ = 0;
  std::uint64_t next_check_ = 0;
  bool over_ = false;
};

}  // namespace memopt::layout
