#include "planner/layout/published/integer_program_module.h"

#include <algorithm>
#include <cstdio>
#include <exception>

#include "planner/layout/published/integer_program.h"

extern "C" {

__attribute__((visibility("default"))) extern const char memopt_integer_program_version[];
const char memopt_integer_program_version[] = MEMOPT_VERSION;

__attribute__((visibility("default"))) void memopt_integer_program(const memopt::layout::Problem& problem,
                                                                   const memopt::layout::Limits& limits,
                                                                   std::uint64_t* offsets,
                                                                   memopt::layout::ModuleAnswer& answer) {
  try {
    if (const auto reason = memopt::layout::integer_program_unsupported(problem)) {
      std::snprintf(answer.failure, sizeof answer.failure, "%s", reason->c_str());
      return;
    }
    const memopt::layout::Outcome outcome = memopt::layout::integer_program(problem, limits);
    answer.found = outcome.found(problem.buffers.size());
    answer.optimal = outcome.optimal;
    answer.infeasible = outcome.infeasible;
    answer.lower_bound = outcome.lower_bound;
    std::copy(outcome.solution.offsets.begin(), outcome.solution.offsets.end(), offsets);
  } catch (const std::exception& error) {
    std::snprintf(answer.failure, sizeof answer.failure, "%s", error.what());
  }
}
}
