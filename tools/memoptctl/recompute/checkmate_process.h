// Checkmate (planner/recompute/published/checkmate.h) in a process of its own: its solvers look at their clock only now
// and then, and are loaded only if they are asked for.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "planner/recompute/model/plan.h"
#include "planner/recompute/published/checkmate_module.h"
#include "planner/swap/model/model.h"

namespace memopt::tools {

// Why it can't be run here; empty: it can.
const std::string& checkmate_missing();

struct CheckmateRun {
  std::optional<recompute::Steps> steps;  // within the limit
  recompute::CheckmateAnswer answer;
};

// Ends some seconds after the question's time, or after `ends` says so: nothing was found then that was not told until
// then. To be called by programs without other threads. Throws std::runtime_error where it can't be run.
CheckmateRun run_checkmate(const swap::Problem& problem, const recompute::CheckmateQuestion& question,
                           const std::function<bool()>& ends);

}  // namespace memopt::tools
