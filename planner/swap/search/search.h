// Our own swap planner: which blocks are away when, and where all lie, chosen together, so that nothing waits; or,
// under a limit that is too small for that, so that little time is added.
//
// Copies are given times on the schedule of an iteration without waits: each copy out as soon as its engine is free,
// each copy in as late as it can. A block is on the device from the begin of its copy in to the end of its copy out,
// and no two are on the same bytes at the same time. Whatever a running program waits for has then happened before it
// asks, so the plan adds no time at all; time is added by delaying chosen operations of that schedule.
//
// Annealing (annealing.h): by the load alone at first, as that is fast, then with places, the blocks too small to
// matter being laid out in the gaps at the end. Iterations with very many blocks begin with a greedy choice, and are
// laid out by the layout planner where its layouts are hardly larger than the load. Within a limit that makes much
// wait, a covering of the load comes first, and is made better as a whole (ruin_and_recreate.h).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>

#include "planner/swap/model/liveness.h"
#include "planner/swap/model/model.h"

namespace memopt::swap {

enum class Objective {
  kFootprint,  // the least footprint at no added time, within problem.limit if there is one
  kTime,       // the least added time within problem.limit
};

// Ends at whichever comes first; about a second later at most, for a layout that may be all that is missing, and many
// seconds later where blocks are very many, for a covering that may be (unless `in_time`). Where one operation needs
// more than the limit, it has two seconds of the time. Without a time limit the same seed and number of threads give
// the same plan.
struct SearchLimits {
  std::chrono::nanoseconds time = std::chrono::seconds(2);
  std::uint64_t attempts = ~std::uint64_t{0};  // plans tried by each thread
  // A covering that has not ended by then is given up, though nothing else may find a plan within the limit.
  bool in_time = false;
  const std::atomic<bool>* cancelled = nullptr;  // may be set by another thread; what was found until then counts
  unsigned threads = 1;
  std::uint64_t seed = 1;
  // Whoever follows the plan knows for each instance in which iteration it was born, as a file does: of a block that
  // outlives an iteration, others may lie on each place between its turns, and plans are laid out again as they were
  // simulated. Else all its places are taken all the time, and plans are left as they are: a program that does not
  // always keep to its plan copes better with these.
  bool in_step = false;
};

struct SearchPlan {
  bool feasible = false;
  Decisions decisions;          // legal and placed; where infeasible, the smallest that was found
  std::uint64_t footprint = 0;  // of the decisions; without layout, the least limit under which they hold
  double added_ns = 0;
  std::size_t candidates = 0;
  std::uint64_t attempts = 0;
};

// Told of each plan that a search comes to and that holds, within the limit or not: decisions, footprint, added time.
using OnPlan = std::function<void(const Decisions&, std::uint64_t, double)>;

// kTime needs a limit; a problem without layout has one. `on_plan` is called by the thread that calls.
SearchPlan search(const Problem& problem, const Liveness& liveness, Objective objective, const SearchLimits& limits,
                  const OnPlan& on_plan = {});

}  // namespace memopt::swap
