// How much device memory was held over the course of a run: the largest value in each of up to 64 equal pieces of it,
// counted in driver calls. Pieces double as the run goes on, so the memory is bounded and the whole run is in.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace cudasim {

class HeldHistory {
 public:
  static constexpr std::size_t kPieces = 64;
  static constexpr std::uint64_t kFirstWidth = 16;

  // `held` bytes are held from call number `calls` on; calls never fall.
  void note(std::uint64_t calls, std::uint64_t held) {
    advance(calls);
    held_ = held;
    peaks_[used_ - 1] = std::max(peaks_[used_ - 1], held);
  }

  // The pieces up to call number `calls`.
  std::span<const std::uint64_t> peaks(std::uint64_t calls) {
    advance(calls);
    return std::span(peaks_).first(used_);
  }
  std::uint64_t calls_per_piece() const { return width_; }

 private:
  void advance(std::uint64_t calls) {
    while (calls / width_ >= kPieces) halve();
    while (used_ <= calls / width_) peaks_[used_++] = held_;
  }
  void halve() {
    for (std::size_t i = 0; i < kPieces / 2; ++i) {
      peaks_[i] = std::max(peaks_[2 * i], peaks_[2 * i + 1]);
    }
    std::fill(peaks_.begin() + kPieces / 2, peaks_.end(), 0);
    used_ = (used_ + 1) / 2;
    width_ *= 2;
  }

  std::uint64_t width_ = kFirstWidth;
  std::size_t used_ = 1;
  std::uint64_t held_ = 0;
  std::array<std::uint64_t, kPieces> peaks_{};
};

}  // namespace cudasim
