// Which mallocs of an iteration share places that any of them may take.
//
// A pool is a number of places of one size. A block takes one that is free, whichever it is, so that what counts is how
// many blocks live at once and not which. It serves
//  - blocks that live longer than an iteration: the next one is there before the last one goes, but of a hundred
//    optimizer states one or two only are there twice at any time;
//  - mallocs that the agent cannot tell from each other, since a lane's sizes and return addresses are a shorter
//    sequence several times over;
//  - other blocks of at most that size, where the pool would have places free while the load is largest.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/iteration/lifetimes.h"
#include "planner/layout/problem/problem.h"

namespace memopt::planner {

struct Pool {
  std::uint64_t bytes;   // of a place, a multiple of shm::kPlanAlignment
  std::uint32_t places;  // as many as are ever needed at once
};

struct Pools {
  static constexpr std::uint32_t kNoPool = 0xffffffffu;

  std::vector<Pool> pools;                        // by size, the largest first
  std::vector<std::vector<std::uint32_t>> of;     // by lane and malloc: into pools, or kNoPool
  std::vector<std::vector<std::uint32_t>> leads;  // likewise: the malloc of the lane whose place it has, mostly its own
};

// `lifetimes` are not joined. Deterministic; time about operations * pools.
Pools choose_pools(const IterationLifetimes& lifetimes);

// One buffer for each malloc without a pool that leads, lane by lane, then one for all places of each pool, then the
// blocks that stay in the slab.
layout::Problem pooled_problem(const IterationLifetimes& lifetimes, const Pools& pools);

}  // namespace memopt::planner
