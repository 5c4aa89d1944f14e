// Plans the swaps of one iteration of a program: at once, or beside it, on threads of the lowest priority, for some
// seconds.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "planner/sending/staying_pages.h"
#include "planner/swap/model/model.h"
#include "planner/swap/search/search.h"
#include "shm/channel.h"

namespace memopt::planner {

// What swaps are planned for.
struct SwapTask {
  swap::Problem problem;                 // of an IterationProblem; machine, chunk and limit are those of the terms
  std::vector<std::uint64_t> ranks;      // of its operations
  std::vector<StayingBlock> persistent;  // of it
  shm::SwapTermsBody terms{};
  std::uint64_t unswapped = 0;  // bytes, of the plan without swaps
  bool had_pages = false;       // in the last plan that was sent, which the program may follow
  std::uint64_t reserve = 0;    // by so much less than the limit all is to need
};

struct PlannedSwaps {
  swap::Problem problem;
  std::vector<StayingPages> pages;   // that are its persistent blocks
  std::vector<std::uint64_t> ranks;  // of its operations
  swap::Decisions decisions;
  std::uint64_t footprint = 0;
  double added_ns = 0;  // an iteration
};

// Plans for the least footprint at no added time, or, where the terms have a limit, for the least added time within it.
// Nothing, with the reason in `why`, where no swaps can be planned, or are needed, or save memory. What is returned has
// been verified (planner/swap/simulation/verify.h). Blocks that live through all iterations stay where they are if that
// adds hardly any time; else their pages are swapped too, where that is better, or was before, and the terms allow it.
// Throws std::bad_alloc.
std::optional<PlannedSwaps> plan_swaps(const SwapTask& task, const swap::SearchLimits& limits, std::string& why);

// How long a program that waits for its plan is kept waiting. What else the machine does is not to be seen in the plan:
// of attempts there are as many as the iteration's length allows, and more, once or twice, where that will take
// `longest` of this thread's own time at most. The program gives up after some time by the clock, ten seconds if
// nothing else is said: what was found counts before that, at `in_all`, where processors are few or slow.
struct WaitedSearch {
  std::chrono::nanoseconds longest = std::chrono::seconds(shm::kUsualWait) * 7 / 10;
  std::chrono::nanoseconds in_all = std::chrono::seconds(shm::kUsualWait) * 9 / 10;
  std::uint64_t attempts = 0;  // of the first search; 0: by the iteration's length
};
// For a program that gives up after so long.
WaitedSearch waited_search(std::chrono::seconds wait);

// As plan_swaps, for a program that waits. Throws std::bad_alloc, and std::system_error where there is no thread.
std::optional<PlannedSwaps> plan_waited_swaps(const SwapTask& task, std::string& why, const WaitedSearch& search = {});

// By how much these decisions make an iteration of the task longer, in nanoseconds; `with_pages`: as they were found
// for. Nothing where they are none for it.
std::optional<double> added_by(const SwapTask& task, bool with_pages, const swap::Decisions& decisions);

// The same on a thread: soon a first plan, and some seconds later a better one if there is. From one thread at a time.
// Under a limit, a switch is worth this part of the time that the last plan adds.
inline constexpr double kWorthwhileTime = 0.1;

class SwapPlanning {
 public:
  // Throws std::system_error if there is no thread.
  explicit SwapPlanning(SwapTask task);
  ~SwapPlanning();  // waits until it is over, which after cancel() it soon is, but not at once
  SwapPlanning(const SwapPlanning&) = delete;
  SwapPlanning& operator=(const SwapPlanning&) = delete;

  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  bool is_over() const { return over_.load(std::memory_order_acquire); }

  // What was found and not taken yet. Else `why` says why nothing was found, when that is news; or it stays as it is.
  std::optional<PlannedSwaps> take(std::string& why);
  // The first search is over.
  bool has_answered() const { return answered_.load(std::memory_order_acquire); }
  // take() has something, or why there is nothing.
  bool has_news() const { return news_.load(std::memory_order_relaxed); }

 private:
  void work();
  void offer(std::optional<PlannedSwaps> found, std::string why);
  bool is_worth_a_switch(const PlannedSwaps& found) const;

  const SwapTask task_;
  std::atomic<bool> cancelled_{false};
  std::atomic<bool> news_{false};
  std::atomic<bool> answered_{false};
  std::atomic<bool> over_{false};
  std::mutex mutex_;
  std::optional<PlannedSwaps> found_;
  std::string failure_;
  std::uint64_t best_footprint_ = 0;  // of what was offered; 0: nothing
  double best_added_ns_ = 0;
  std::thread thread_;
};

}  // namespace memopt::planner
