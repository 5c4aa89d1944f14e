#include "planner/iteration/improvement.h"

#include <sys/resource.h>

#include <chrono>
#include <exception>
#include <utility>

#include "planner/layout/portfolio/solve.h"
#include "planner/layout/problem/validation.h"

namespace memopt::planner {
namespace {

constexpr std::chrono::milliseconds kShort{500};
constexpr std::chrono::milliseconds kLong{10'000};

}  // namespace

Improvement::Improvement(layout::Problem problem, std::uint64_t wanted, Goal goal)
    : problem_(std::move(problem)), wanted_(wanted), goal_(goal), thread_([this] { search(); }) {}

Improvement::~Improvement() {
  cancelled_.store(true, std::memory_order_relaxed);
  thread_.join();
}

// False: there is nothing better, or nothing is wanted any more.
bool Improvement::look(std::chrono::milliseconds time) {
  layout::Limits limits;
  limits.time = time;
  limits.cancelled = &cancelled_;
  layout::Outcome outcome = layout::solve(problem_, limits);
  const bool over = outcome.optimal || outcome.infeasible || cancelled_.load(std::memory_order_relaxed);
  if (outcome.found(problem_.buffers.size()) && outcome.solution.height <= wanted_ &&
      !layout::validate(problem_, outcome.solution)) {
    // The next one must be better by as much again.
    wanted_ = outcome.solution.height - outcome.solution.height / 100;
    const std::lock_guard lock(mutex_);
    found_ = std::move(outcome);
    available_.store(true, std::memory_order_release);
  }
  return !over;
}

void Improvement::search() {
  // Of this thread alone, on Linux.
  setpriority(PRIO_PROCESS, 0, 19);
  try {
    if (goal_ == Goal::kEnough) {
      // With a capacity the search ends when it is met.
      const std::uint64_t enough = wanted_;
      const auto capacity = std::exchange(problem_.capacity, enough);
      const bool more = look(kLong);
      problem_.capacity = capacity;
      if (more && wanted_ != enough) look(kLong);
    } else if (look(kShort)) {
      look(kLong);
    }
  } catch (const std::exception&) {
    // Out of memory: the first layout stays.
  }
  over_.store(true, std::memory_order_release);
}

std::optional<layout::Outcome> Improvement::take() {
  if (!available_.load(std::memory_order_acquire)) return std::nullopt;
  const std::lock_guard lock(mutex_);
  available_.store(false, std::memory_order_relaxed);
  return std::exchange(found_, std::nullopt);
}

}  // namespace memopt::planner
