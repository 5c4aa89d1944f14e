#include "planner/layout/portfolio/portfolio.h"

#include <algorithm>
#include <limits>
#include <system_error>
#include <thread>

namespace memopt::layout {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

}  // namespace

Portfolio::Portfolio(const Limits& limits, std::uint64_t lower_bound, std::optional<std::uint64_t> capacity,
                     OnBetter on_better)
    : deadline_(limits),
      threads_(std::max(1u, limits.threads)),
      work_left_(limits.work),
      capacity_(capacity),
      goal_(std::max(lower_bound, capacity.value_or(0))),
      on_better_(std::move(on_better)),
      reported_(std::numeric_limits<std::uint64_t>::max()) {
  incumbent_.lower_bound = lower_bound;
  incumbent_.solution.height = std::numeric_limits<std::uint64_t>::max();
}

void Portfolio::raise_lower_bound(std::uint64_t bound) {
  incumbent_.lower_bound = std::max(incumbent_.lower_bound, bound);
  goal_ = std::max(goal_, bound);
}

void Portfolio::report(const Solution& solution, std::string_view solver) {
  if (!on_better_) return;
  const std::lock_guard lock(reporting_);
  // Once the goal is met, no solution is better; what another job finds then may not be the result.
  if (solution.height >= reported_ || reported_ <= goal_) return;
  if (capacity_ && solution.height > *capacity_) return;
  reported_ = solution.height;
  Outcome outcome = incumbent_;
  outcome.solution = solution;
  outcome.solver = solver;
  outcome.optimal = solution.height == outcome.lower_bound;
  on_better_(outcome);
}

void Portfolio::update_incumbent(Solution solution, std::string_view solver) {
  if (solution.height >= incumbent_.solution.height) return;
  report(solution, solver);
  incumbent_.solution = std::move(solution);
  incumbent_.solver = solver;
}

void Portfolio::run_job(const Job& job, std::uint32_t number, unsigned thread, std::uint64_t work, Slot& slot) {
  JobContext context{Allowance(deadline_, work), thread, incumbent_.solution.height,
                     [&](Solution solution, std::string_view solver) {
                       if (solution.height >= slot.solution.height) return;
                       report(solution, solver);
                       slot.solution = std::move(solution);
                       slot.solver = solver;
                       if (slot.solution.height > goal_) return;
                       std::uint32_t winner = winner_.load();
                       while (number < winner && !winner_.compare_exchange_weak(winner, number)) {
                       }
                     }};
  context.allowance.stop_for(winner_, number);
  job(context);
  slot.used = context.allowance.used();
}

void Portfolio::round(const std::vector<Job>& jobs, std::uint64_t work_each) {
  if (over()) return;
  std::vector<Slot> slots(jobs.size());
  for (Slot& slot : slots) slot.solution.height = incumbent_.solution.height;
  const std::uint64_t work = work_each == kUnlimited ? work_each : std::min(work_each, work_left_ / jobs.size() + 1);
  winner_ = kNone;
  std::atomic<std::uint32_t> next{0};
  const auto run_jobs = [&](unsigned thread) {
    for (;;) {
      const std::uint32_t number = next.fetch_add(1);
      if (number >= jobs.size() || number > winner_.load()) return;
      if (deadline_.over()) return;
      run_job(jobs[number], number, thread, work, slots[number]);
    }
  };
  std::vector<std::thread> others;
  for (unsigned thread = 1; thread < std::min<std::size_t>(threads_, jobs.size()); ++thread) {
    try {
      others.emplace_back(run_jobs, thread);
    } catch (const std::system_error&) {
      break;  // fewer will do
    }
  }
  run_jobs(0);
  for (std::thread& other : others) other.join();
  const std::uint32_t winner = winner_.load();
  for (std::uint32_t i = 0; i < slots.size(); ++i) {
    Slot& slot = slots[i];
    spend(slot.used);
    if (slot.solution.height >= incumbent_.solution.height || (winner != kNone && i != winner)) continue;
    incumbent_.solution = std::move(slot.solution);
    incumbent_.solver = slot.solver;
  }
}

Outcome Portfolio::outcome() const {
  Outcome outcome = incumbent_;
  outcome.infeasible = infeasible();
  if (outcome.solution.offsets.empty() || (capacity_ && outcome.solution.height > *capacity_)) {
    outcome.solution = {};
    outcome.solver = {};
  }
  outcome.optimal = outcome.infeasible || outcome.solution.height == outcome.lower_bound;
  return outcome;
}

}  // namespace memopt::layout
