// Internal to the room: solvers side by side, the best result counts.
//
// Work is done in rounds. A round is a fixed list of jobs that know nothing of each other; which threads run them
// decides nothing: the smallest height counts, of equal ones that of the job with the smallest number, and the work is
// counted by job. So the result depends on seed and work limit alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "planner/layout/problem.h"
#include "planner/layout/search.h"
#include "planner/layout/watch.h"

namespace memopt::layout {

class Portfolio {
 public:
  // What a job gets: what it may spend, the number of its thread, and where to put what it finds. Only solutions
  // smaller than `best` (the best height when the round began) are of use.
  struct Desk {
    Allowance allowance;
    unsigned thread;
    std::uint64_t best;
    std::function<void(Solution, std::string_view solver)> found;
  };
  using Job = std::function<void(Desk&)>;
  static constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};

  // Heights down to `goal` are of use; `lower_bound` is proven.
  Portfolio(const Limits& limits, std::uint64_t lower_bound, std::optional<std::uint64_t> capacity, OnBetter on_better);

  unsigned threads() const { return threads_; }
  const Watch& watch() const { return watch_; }
  std::uint64_t goal() const { return goal_; }
  std::uint64_t height() const { return best_.solution.height; }
  const Outcome& best() const { return best_; }
  bool over() const { return best_.solution.height <= goal_ || infeasible() || work_left_ == 0 || watch_.over(); }
  bool infeasible() const { return capacity_ && best_.lower_bound > *capacity_; }
  std::uint64_t work_left() const { return work_left_; }
  void spend(std::uint64_t work) { work_left_ -= std::min(work_left_, work); }
  // A new proof.
  void raise_lower_bound(std::uint64_t bound);

  // Each job may spend `work_each`, and no more than its share of what is left; or what it needs, if that is
  // kUnlimited. Ends early, without waiting for jobs of larger numbers, once the goal is met.
  void round(const std::vector<Job>& jobs, std::uint64_t work_each);
  void offer(Solution solution, std::string_view solver);

  // The best, or none within the capacity.
  Outcome outcome() const;

 private:
  struct Slot {
    Solution solution;
    std::string_view solver;
    std::uint64_t used = 0;
  };

  void run_job(const Job& job, std::uint32_t number, unsigned thread, std::uint64_t work, Slot& slot);
  void report(const Solution& solution, std::string_view solver);

  Watch watch_;
  unsigned threads_;
  std::uint64_t work_left_;
  std::optional<std::uint64_t> capacity_;
  std::uint64_t goal_;
  Outcome best_;
  OnBetter on_better_;
  std::mutex reporting_;
  std::uint64_t reported_;
  std::atomic<std::uint32_t> winner_{0};
};

}  // namespace memopt::layout
