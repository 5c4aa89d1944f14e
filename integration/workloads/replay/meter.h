// What a replay cost, by the simulated driver's count: over all, after the warm-up, and in each iteration of the steady
// half.
#pragma once
#include <barrier>
#include <cstddef>
#include <cstdint>

#include "simulator.h"

namespace replay {

class Meter {
 public:
  // The steady half begins behind iteration iterations / 2.
  Meter(const Simulator& simulator, unsigned threads, std::size_t iterations, std::size_t warm_up);

  // By each thread, when it has played `done` iterations and waited for its work.
  void iteration_done(std::size_t done, unsigned thread);

  std::uint64_t held_peak() const { return held_peak_; }
  std::uint64_t held_peak_after_warm_up() const { return held_peak_after_warm_up_; }
  std::size_t warm_up() const { return warm_up_; }
  std::size_t steady_iterations() const { return iterations_ - iterations_ / 2; }
  // Per iteration of the steady half, all threads together; the clock is the first thread's.
  struct Rates {
    double vmm_calls = 0;
    double allocations = 0;
    double frees = 0;
    double synchronizations = 0;
    double launches = 0;
    double host_ns = 0;
  };
  Rates rates() const;

 private:
  void sample(std::size_t done);

  const Simulator& simulator_;
  std::size_t iterations_;
  std::size_t warm_up_;
  std::barrier<> barrier_;  // so that the samples lie between iterations of all threads
  Simulator::Sample half_;
  Simulator::Sample last_;
  std::uint64_t held_peak_ = 0;
  std::uint64_t held_peak_after_warm_up_ = 0;
};

}  // namespace replay
