// Internal to planner/layout/portfolio: solvers side by side (an algorithm portfolio), of which the best result counts.
//
// Work is done in rounds. A round is a fixed list of independent jobs. Which thread runs which job has no influence:
// the smallest height becomes the incumbent, of equal ones that of the job with the smallest number, and work is
// counted by job. So the result depends on seed and work limit alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "planner/layout/problem/limits.h"
#include "planner/layout/problem/outcome.h"
#include "planner/layout/problem/problem.h"

namespace memopt::layout {

class Portfolio {
 public:
  // What a job gets: what it may spend, the number of its thread, and a function to call with its solutions. Only
  // solutions below `best` (the incumbent's height when the round began) are of use.
  struct JobContext {
    Allowance allowance;
    unsigned thread;
    std::uint64_t best;
    std::function<void(Solution, std::string_view solver)> found;
  };
  using Job = std::function<void(JobContext&)>;
  static constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};

  // `lower_bound` must be proven.
  Portfolio(const Limits& limits, std::uint64_t lower_bound, std::optional<std::uint64_t> capacity, OnBetter on_better);

  unsigned threads() const { return threads_; }
  const Deadline& deadline() const { return deadline_; }
  std::uint64_t goal() const { return goal_; }
  std::uint64_t height() const { return incumbent_.solution.height; }
  const Outcome& incumbent() const { return incumbent_; }
  bool over() const {
    return incumbent_.solution.height <= goal_ || infeasible() || work_left_ == 0 || deadline_.over();
  }
  bool infeasible() const { return capacity_ && incumbent_.lower_bound > *capacity_; }
  std::uint64_t work_left() const { return work_left_; }
  void spend(std::uint64_t work) { work_left_ -= std::min(work_left_, work); }
  // `bound` must be proven.
  void raise_lower_bound(std::uint64_t bound);

  // Each job may spend `work_each`, but no more than its share of what is left; or as much as it needs, if that is
  // kUnlimited. Ends early, without waiting for jobs of larger numbers, once the goal is met.
  void round(const std::vector<Job>& jobs, std::uint64_t work_each);
  // Replaces the incumbent if the solution is lower.
  void update_incumbent(Solution solution, std::string_view solver);

  // The incumbent, if it is within the capacity.
  Outcome outcome() const;

 private:
  struct Slot {
    Solution solution;
    std::string_view solver;
    std::uint64_t used = 0;
  };

  void run_job(const Job& job, std::uint32_t number, unsigned thread, std::uint64_t work, Slot& slot);
  void report(const Solution& solution, std::string_view solver);

  Deadline deadline_;
  unsigned threads_;
  std::uint64_t work_left_;
  std::optional<std::uint64_t> capacity_;
  std::uint64_t goal_;
  Outcome incumbent_;
  OnBetter on_better_;
  std::mutex reporting_;
  std::uint64_t reported_;
  std::atomic<std::uint32_t> winner_{0};
};

}  // namespace memopt::layout
