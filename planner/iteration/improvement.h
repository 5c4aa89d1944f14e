// Looks for a better layout while the program already runs on the first one: on a thread of its own, at the lowest
// priority, for some seconds.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>

#include "planner/layout/problem/outcome.h"
#include "planner/layout/problem/problem.h"

namespace memopt::planner {

class Improvement {
 public:
  enum class Goal : std::uint8_t {
    kBetter,  // the program has a plan: as good a solution as there is time for
    kEnough,  // it has none: any solution, as soon as possible, and only then better ones
  };
  // Only solutions of at most `wanted` bytes are of interest. Throws std::system_error if there is no thread.
  Improvement(layout::Problem problem, std::uint64_t wanted, Goal goal);
  ~Improvement();  // stops it
  Improvement(const Improvement&) = delete;
  Improvement& operator=(const Improvement&) = delete;

  // What was found and not taken yet, each smaller than the last. Seldom: once after a short search, or one that ends
  // with what is enough, and once after a long one.
  std::optional<layout::Outcome> take();
  // Whether nothing more will come.
  bool over() const { return over_.load(std::memory_order_acquire); }

 private:
  void search();
  bool look(std::chrono::milliseconds time);

  layout::Problem problem_;
  std::uint64_t wanted_;
  const Goal goal_;
  std::mutex mutex_;
  std::optional<layout::Outcome> found_;
  std::atomic<bool> available_{false};
  std::atomic<bool> cancelled_{false};
  std::atomic<bool> over_{false};
  std::thread thread_;
};

}  // namespace memopt::planner
