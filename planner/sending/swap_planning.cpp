#include "planner/sending/swap_planning.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <stop_token>
#include <thread>
#include <utility>

#include "planner/iteration/iteration_plan.h"
#include "planner/sending/swap_plan.h"
#include "planner/swap/model/load.h"
#include "planner/swap/simulation/verify.h"

namespace memopt::planner {
namespace {

using std::chrono::milliseconds;

// A program waits for copies until the first plan comes; so much for each thousand operations, within bounds.
constexpr milliseconds kFirst{250}, kLeastFirst{200}, kShort{1000}, kLong{10'000};
constexpr unsigned kMostThreads = 4;
// A plan that adds this part of the period is good enough to leave blocks that stay where they are: their pages would
// have to go to the host and come back once, and stay in host memory.
constexpr double kHardlyAnyTime = 0.01;

// Attempts of a search that is waited for: fewer where each takes longer. A second or two.
constexpr std::uint64_t kLeastAttempts = 200, kMostAttempts = 8000;
constexpr std::uint64_t kAttemptsTimesOperations = 24'000'000;
// More of them where a limit is found to cost this part of the iteration, or can't be kept to.
constexpr std::uint64_t kMoreAttempts = 3;
constexpr double kLongWait = 0.1;
constexpr int kMostLongerSearches = 2;

// That a processor has worked for this thread.
std::chrono::nanoseconds time_of_thread() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

// Set when so much time is over.
class Alarm {
 public:
  explicit Alarm(std::chrono::nanoseconds time)
      : thread_([this, until = std::chrono::steady_clock::now() + time](const std::stop_token& stop) {
          std::unique_lock lock(mutex_);
          over_.wait_until(lock, stop, until, [] { return false; });
          if (!stop.stop_requested()) rung_.store(true, std::memory_order_relaxed);
        }) {}

  const std::atomic<bool>& rung() const { return rung_; }

 private:
  std::atomic<bool> rung_{false};
  std::mutex mutex_;
  std::condition_variable_any over_;
  std::jthread thread_;  // last: it uses the others
};

std::string mib(std::uint64_t bytes) { return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20)); }

// The problem of the task, for its machine. `with_pages`: of blocks that live through all iterations it has the pages;
// else they are none of it. What is held beside what a plan places goes to `beside`.
PlannedSwaps problem_of(const SwapTask& task, bool with_pages, std::uint64_t* beside) {
  PlannedSwaps result;
  swap::Problem& problem = result.problem;
  problem = task.problem;
  result.ranks = task.ranks;
  const shm::SwapTermsBody& terms = task.terms;
  if (with_pages) {
    GatheredPages gathered = gather_pages(task.persistent, terms.chunk_bytes, problem, result.ranks);
    result.pages = std::move(gathered.pages);
    *beside = gathered.beside;
  } else {
    *beside = leave_out_persistent(task.persistent, terms.chunk_bytes, problem, result.ranks);
  }
  join_launches(result.ranks, problem);
  problem.machine = {terms.out_bytes_per_ns, terms.in_bytes_per_ns, terms.out_latency_ns, terms.in_latency_ns};
  problem.chunk = terms.chunk_bytes;
  problem.limit.reset();
  if (terms.memory_limit != 0) {
    // The agent counts whole chunks, beside the slab as well as in it.
    const std::uint64_t chunk = std::max<std::uint64_t>(terms.chunk_bytes, 1);
    const std::uint64_t reserved = (*beside + chunk - 1) / chunk * chunk + task.reserve;
    problem.limit = (terms.memory_limit - std::min(terms.memory_limit, reserved)) / chunk * chunk;
  }
  return result;
}

std::optional<PlannedSwaps> plan_swaps_of(const SwapTask& task, bool with_pages, const swap::SearchLimits& limits,
                                          std::string& why) {
  PlannedSwaps result;
  try {
    std::uint64_t beside = 0;
    result = problem_of(task, with_pages, &beside);
    const swap::Problem& problem = result.problem;
    const swap::Liveness liveness = swap::find_liveness(problem);
    if (const auto reason = why_not_swapped(problem)) {
      why = "no swaps can be planned, as " + *reason;
      return std::nullopt;
    }
    // Nothing is searched for in vain.
    if (const std::uint64_t least = swap::least_load(problem, liveness); problem.limit && least > *problem.limit) {
      why = fmt::format("no swaps can keep to {}: one operation uses {}, beside {} that stay",
                        mib(task.terms.memory_limit), mib(least), mib(beside));
      return std::nullopt;
    }
    const auto objective = problem.limit ? swap::Objective::kTime : swap::Objective::kFootprint;
    swap::SearchPlan found = swap::search(problem, liveness, objective, limits);
    if (!found.feasible) {
      why = fmt::format("no swaps were found that keep to {}; the least so far is {}", mib(task.terms.memory_limit),
                        mib(found.footprint + beside));
      return std::nullopt;
    }
    if (found.decisions.swaps.empty() || found.footprint + beside >= task.unswapped) {
      why = "no swaps were found that save memory";
      return std::nullopt;
    }
    const swap::Report report = swap::verify(problem, found.decisions);
    if (report.fault) {
      why = "the swaps that were planned do not hold and are not used: " + *report.fault;
      return std::nullopt;
    }
    result.footprint = *report.footprint + beside;
    result.added_ns = report.timing.added_ns;
    result.decisions = std::move(found.decisions);
  } catch (const swap::Invalid& error) {
    // Blocks that live for very many iterations, threads that change their order.
    why = std::string("no swaps can be planned: ") + error.what();
    return std::nullopt;
  }
  return result;
}

bool is_better(const PlannedSwaps& one, const PlannedSwaps& other) {
  return other.problem.limit ? one.added_ns < other.added_ns : one.footprint < other.footprint;
}

}  // namespace

std::optional<PlannedSwaps> plan_swaps(const SwapTask& task, const swap::SearchLimits& limits, std::string& why) {
  why.clear();
  if (task.terms.memory_limit >= task.unswapped + task.reserve) {
    why = "no swaps are needed";
    return std::nullopt;
  }
  const bool may_have_pages = (task.terms.flags & shm::kPersistentStays) == 0;
  // To go from one to the other costs a copy of them all.
  if (task.had_pages && may_have_pages) {
    if (auto again = plan_swaps_of(task, true, limits, why)) return again;
  }
  std::optional<PlannedSwaps> beside = plan_swaps_of(task, false, limits, why);
  if (!may_have_pages || task.had_pages) return beside;
  if (beside && beside->problem.limit && beside->added_ns <= kHardlyAnyTime * beside->problem.period) return beside;
  if (limits.cancelled != nullptr && limits.cancelled->load(std::memory_order_relaxed)) return beside;
  std::string why_not;
  std::optional<PlannedSwaps> with_pages = plan_swaps_of(task, true, limits, why_not);
  if (with_pages && (!beside || is_better(*with_pages, *beside))) {
    why.clear();
    return with_pages;
  }
  // Of the two that one is said which could have had less.
  if (!beside) why = std::move(why_not);
  return beside;
}

WaitedSearch waited_search(std::chrono::seconds wait) {
  const std::chrono::nanoseconds time = wait;
  return {.longest = time * 7 / 10, .in_all = time * 9 / 10};
}

std::optional<PlannedSwaps> plan_waited_swaps(const SwapTask& task, std::string& why, const WaitedSearch& search) {
  const Alarm alarm(search.in_all);
  const std::atomic<bool>& rung = alarm.rung();
  swap::SearchLimits limits;
  limits.time = std::chrono::nanoseconds::max();
  limits.cancelled = &rung;
  limits.attempts = search.attempts;
  if (limits.attempts == 0) {
    const std::uint64_t operations = std::max<std::uint64_t>(task.ranks.size(), 1);
    limits.attempts = std::clamp(kAttemptsTimesOperations / operations, kLeastAttempts, kMostAttempts);
  }
  auto last = time_of_thread();
  std::optional<PlannedSwaps> found = plan_swaps(task, limits, why);
  const std::uint64_t limit = task.terms.memory_limit;
  for (int i = 0; i < kMostLongerSearches && limit != 0 && limit < task.unswapped && !rung.load(); ++i) {
    // Once more for less time that is added, and again only for any plan at all.
    if (found && (i != 0 || found->added_ns <= kLongWait * found->problem.period)) break;
    const auto now = time_of_thread();
    if ((now - last) * kMoreAttempts > search.longest) break;
    last = now;
    limits.attempts *= kMoreAttempts;
    std::string note;
    std::optional<PlannedSwaps> more = plan_swaps(task, limits, note);
    if (found && !(more && more->added_ns < found->added_ns)) continue;
    found = std::move(more);
    why = std::move(note);
  }
  return found;
}

std::optional<double> added_by(const SwapTask& task, bool with_pages, const swap::Decisions& decisions) {
  try {
    std::uint64_t beside = 0;
    const PlannedSwaps swaps = problem_of(task, with_pages, &beside);
    if (decisions.places.size() != swaps.problem.blocks.size()) return std::nullopt;
    const swap::Report report = swap::verify(swaps.problem, decisions);
    if (report.fault) return std::nullopt;
    return report.timing.added_ns;
  } catch (const swap::Invalid&) {
    return std::nullopt;
  }
}

SwapPlanning::SwapPlanning(SwapTask task) : task_(std::move(task)), thread_([this] { work(); }) {}

SwapPlanning::~SwapPlanning() {
  cancel();
  thread_.join();
}

void SwapPlanning::work() {
  // Of this thread and those that it starts, on Linux.
  setpriority(PRIO_PROCESS, 0, 19);
  swap::SearchLimits limits;
  limits.threads = std::clamp(std::thread::hardware_concurrency() / 2, 1U, kMostThreads);
  limits.cancelled = &cancelled_;
  const milliseconds first =
      std::clamp(kFirst * static_cast<std::int64_t>(task_.ranks.size()) / 1000, kLeastFirst, kShort);
  try {
    for (const milliseconds time : {first, kShort, kLong}) {
      limits.time = time;
      std::string why;
      std::optional<PlannedSwaps> found = plan_swaps(task_, limits, why);
      if (cancelled_.load(std::memory_order_relaxed)) break;
      offer(std::move(found), std::move(why));
    }
  } catch (const std::bad_alloc&) {
    offer(std::nullopt, "no swaps could be planned: out of memory");
  } catch (const std::exception& error) {
    offer(std::nullopt, std::string("no swaps could be planned: ") + error.what());
  }
  over_.store(true, std::memory_order_release);
}

void SwapPlanning::offer(std::optional<PlannedSwaps> found, std::string why) {
  const std::lock_guard lock(mutex_);
  if (!found) {
    if (best_footprint_ == 0) failure_ = std::move(why);
  } else if (is_worth_a_switch(*found)) {
    best_footprint_ = found->footprint;
    best_added_ns_ = found->added_ns;
    found_ = std::move(found);
    failure_.clear();
  }
  news_.store(true, std::memory_order_relaxed);
  answered_.store(true, std::memory_order_release);
}

bool SwapPlanning::is_worth_a_switch(const PlannedSwaps& found) const {
  if (best_footprint_ == 0) return true;
  if (!found.problem.limit) return found.footprint + best_footprint_ / kWorthwhilePart <= best_footprint_;
  const double least = std::max(kWorthwhileTime * best_added_ns_, swap::kUnnoticed * found.problem.period);
  return found.added_ns + least <= best_added_ns_;
}

std::optional<PlannedSwaps> SwapPlanning::take(std::string& why) {
  if (!news_.load(std::memory_order_relaxed)) return std::nullopt;
  const std::lock_guard lock(mutex_);
  news_.store(false, std::memory_order_relaxed);
  if (!failure_.empty()) why = std::exchange(failure_, {});
  return std::exchange(found_, std::nullopt);
}

}  // namespace memopt::planner
