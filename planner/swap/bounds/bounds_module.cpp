#include "planner/swap/bounds/bounds_module.h"

#include <cstdio>
#include <exception>

#include "planner/swap/bounds/bounds.h"
#include "planner/swap/model/liveness.h"

extern "C" {

__attribute__((visibility("default"))) extern const char memopt_swap_bounds_version[];
const char memopt_swap_bounds_version[] = MEMOPT_VERSION;

__attribute__((visibility("default"))) void memopt_swap_bounds(const memopt::swap::Problem& problem,
                                                               std::uint64_t limit,
                                                               memopt::swap::ModuleBounds& bounds) {
  using namespace memopt::swap;
  try {
    const Liveness liveness = find_liveness(problem);
    bounds.least_footprint = least_footprint(problem, liveness).value_or(-1);
    if (limit != kNever) bounds.least_added_time = least_added_time(problem, liveness, limit).value_or(-1);
  } catch (const std::exception& error) {
    std::snprintf(bounds.failure, sizeof bounds.failure, "%s", error.what());
  }
}
}
