#include "meter.h"

#include <algorithm>

namespace replay {

Meter::Meter(const Simulator& simulator, unsigned threads, std::size_t iterations, std::size_t warm_up)
    : simulator_(simulator), iterations_(iterations), warm_up_(warm_up), barrier_(threads) {}

void Meter::iteration_done(std::size_t done, unsigned thread) {
  if (done != warm_up_ && done != iterations_ / 2 && done != iterations_) return;
  barrier_.arrive_and_wait();
  if (thread == 0) sample(done);
  barrier_.arrive_and_wait();
}

void Meter::sample(std::size_t done) {
  const Simulator::Sample now = simulator_.sample();
  held_peak_ = std::max(held_peak_, now.held_peak);
  if (done == iterations_ / 2) half_ = now;
  if (done == iterations_) {
    last_ = now;
    held_peak_after_warm_up_ = now.held_peak;
  }
  if (done == warm_up_) simulator_.reset_peaks();
}

Meter::Rates Meter::rates() const {
  const auto per = [this](std::uint64_t first, std::uint64_t last) {
    return static_cast<double>(last - first) / static_cast<double>(steady_iterations());
  };
  return {per(half_.vmm_calls, last_.vmm_calls), per(half_.allocations, last_.allocations),
          per(half_.frees, last_.frees),         per(half_.synchronizations, last_.synchronizations),
          per(half_.launches, last_.launches),   per(half_.host_ns, last_.host_ns)};
}

}  // namespace replay
