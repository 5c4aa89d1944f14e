// How much a program was served at most of late, beside its plan or without one: what is idle beyond that goes back to
// the driver. By iterations: the last one and this one, and some more before, where chunks were made soon after others
// had been given back; the more often, the more of them, up to kLongAgo.
//
// Not thread-safe: guarded by the arena's lock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace memopt::agent {

class RecentNeeds {
 public:
  // `bytes` are served now.
  void served(std::uint64_t bytes) noexcept { now_ = std::max(now_, bytes); }
  void next_iteration(std::uint64_t bytes) noexcept {
    last_ = std::exchange(now_, bytes);
    made_again_ = false;
    since_given_back_ = std::min(since_given_back_ + 1, kLongAgo);
    if (last_ >= before_ || ++since_peak_ >= looks_back_) {
      before_ = last_;
      since_peak_ = 0;
    }
  }
  void chunk_made() noexcept {
    if (since_given_back_ >= kLongAgo || made_again_) return;
    made_again_ = true;
    looks_back_ = std::min(looks_back_ * 2, kLongAgo);
  }
  void chunk_given_back() noexcept { since_given_back_ = 0; }
  // As at the beginning, with so many bytes served.
  void forget(std::uint64_t bytes) noexcept {
    *this = {};
    now_ = last_ = before_ = bytes;
  }

  std::uint64_t peak() const noexcept { return std::max({now_, last_, before_}); }
  // Were chunks made again?
  bool again() const noexcept { return looks_back_ > 1; }

 private:
  static constexpr std::uint32_t kLongAgo = 64;

  std::uint64_t now_ = 0;         // at most in this iteration
  std::uint64_t last_ = 0;        // in the last
  std::uint64_t before_ = 0;      // in those that are looked back at
  std::uint32_t looks_back_ = 1;  // iterations
  std::uint32_t since_peak_ = 0;  // likewise
  std::uint32_t since_given_back_ = kLongAgo;
  bool made_again_ = false;  // in this iteration
};

}  // namespace memopt::agent
