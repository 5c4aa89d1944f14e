// What memopt's own code costs the program's threads, by sampling: one call in kEvery of a thread is timed with the
// time stamp counter, which costs nothing worth naming for the others.
#pragma once

#include <x86intrin.h>

#include <cstdint>

namespace memopt::agent {

struct OwnCost {
  std::uint64_t ticks = 0;    // of the timed calls together
  std::uint64_t samples = 0;  // timed calls
};

// Since the last reset. Calls during which the thread lost its processor are left out.
OwnCost own_cost() noexcept;
void reset_own_cost() noexcept;
// Ticks per nanosecond, measured over the life of the process; 0 if it is too young.
double ticks_per_nanosecond() noexcept;

namespace own_cost_detail {
inline constexpr std::uint32_t kEvery = 61;  // prime: not in step with what a program repeats
extern constinit thread_local std::uint32_t countdown __attribute__((tls_model("initial-exec")));
void add(std::uint64_t ticks) noexcept;
}  // namespace own_cost_detail

// Times the calling thread from here to the end of its scope, now and then.
class CostProbe {
 public:
  CostProbe() noexcept {
    if (--own_cost_detail::countdown == 0) [[unlikely]] {
      own_cost_detail::countdown = own_cost_detail::kEvery;
      begin_ = __rdtsc();
    }
  }
  ~CostProbe() {
    if (begin_ != 0) [[unlikely]]
      own_cost_detail::add(__rdtsc() - begin_);
  }
  CostProbe(const CostProbe&) = delete;
  CostProbe& operator=(const CostProbe&) = delete;

 private:
  std::uint64_t begin_ = 0;
};

}  // namespace memopt::agent
