// What the simulated driver tells beside CUDA; absent on a real one.
#pragma once
#include <cudasim/cudasim.h>

#include <cstdint>
#include <optional>

namespace replay {

class Simulator {
 public:
  Simulator();  // looks whether it is there

  bool present() const { return counters_ != nullptr; }

  // What is counted; zeros where it is absent.
  struct Sample {
    std::uint64_t held_peak = 0;
    std::uint64_t vmm_calls = 0;
    std::uint64_t allocations = 0;  // cuMemAlloc_v2 calls that reached the driver
    std::uint64_t frees = 0;
    std::uint64_t synchronizations = 0;
    std::uint64_t launches = 0;
    std::uint64_t host_ns = 0;  // of the calling thread
  };
  Sample sample() const;

  void reset_peaks() const;
  void host_works(std::uint64_t ns) const;
  void next_launch_takes(std::uint64_t ns) const;

 private:
  decltype(&cudasim_counters) counters_ = nullptr;
  decltype(&cudasim_calls) calls_ = nullptr;
  decltype(&cudasim_reset_peaks) reset_peaks_ = nullptr;
  decltype(&cudasim_host_works) host_works_ = nullptr;
  decltype(&cudasim_next_launch_takes) next_launch_takes_ = nullptr;
};

}  // namespace replay
