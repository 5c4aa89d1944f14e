#include "planner/recompute/published/checkmate_module.h"

#include <cstdio>
#include <exception>

#include "planner/recompute/published/checkmate.h"
#include "planner/swap/model/liveness.h"

extern "C" {

__attribute__((visibility("default"))) extern const char memopt_checkmate_version[];
const char memopt_checkmate_version[] = MEMOPT_VERSION;

__attribute__((visibility("default"))) void memopt_checkmate(
    const memopt::swap::Problem& problem, const memopt::recompute::CheckmateQuestion& question,
    bool (*ends)(void* context),
    void (*take)(void* context, const memopt::recompute::CheckmateAnswer& answer, const memopt::recompute::Step* steps),
    void* context) {
  using namespace memopt::recompute;
  CheckmateAnswer answer;
  Steps steps;
  try {
    const memopt::swap::Liveness liveness = memopt::swap::find_liveness(problem);
    const Graph graph = make_graph(problem, liveness);
    CheckmateLimits limits;
    limits.seconds = question.seconds;
    limits.most_columns = question.most_columns;
    limits.ends = [&] { return ends(context); };
    CheckmateResult result = question.rounded ? checkmate_rounded(problem, liveness, graph, question.limit, limits)
                                              : checkmate(problem, liveness, graph, question.limit, limits);
    if (result.steps) steps = std::move(*result.steps);
    answer.found = result.steps.has_value();
    answer.too_large = result.too_large;
    answer.solved = result.solved;
    answer.bound_ns = result.bound_ns.value_or(-1);
    answer.columns = result.columns;
    answer.rows = result.rows;
    answer.stages = result.stages;
    answer.steps = steps.size();
  } catch (const std::exception& error) {
    answer = {};
    std::snprintf(answer.failure, sizeof answer.failure, "%s", error.what());
    steps.clear();
  }
  take(context, answer, steps.data());
}
}
