#include "planner/recompute/bounds/linear_bound_module.h"

#include <cstdio>
#include <exception>

#include "planner/recompute/model/graph.h"
#include "planner/swap/model/liveness.h"

extern "C" {

__attribute__((visibility("default"))) extern const char memopt_recompute_bound_version[];
const char memopt_recompute_bound_version[] = MEMOPT_VERSION;

__attribute__((visibility("default"))) void memopt_recompute_bound(const memopt::swap::Problem& problem,
                                                                   std::uint64_t budget, double seconds,
                                                                   memopt::recompute::ModuleReport report,
                                                                   void* context) {
  using namespace memopt::recompute;
  try {
    const memopt::swap::Liveness liveness = memopt::swap::find_liveness(problem);
    const Graph graph = make_graph(problem, liveness);
    linear_least_added_ns(problem, liveness, graph, budget, {.seconds = seconds},
                          [&](const LinearBound& bound) { report({.ns = bound.ns}, context); });
  } catch (const std::exception& error) {
    ModuleBound failed;
    std::snprintf(failed.failure, sizeof failed.failure, "%s", error.what());
    report(failed, context);
  }
}
}
