// Checkmate as a module that is loaded when it is asked for: CBC and what it needs would otherwise be loaded at every
// start, and be missing on machines to which the tools are carried. Module and program exchange plain values only.
#pragma once

#include <cstdint>

#include "planner/recompute/model/plan.h"
#include "planner/swap/model/model.h"

namespace memopt::recompute {

struct CheckmateQuestion {
  std::uint64_t limit = 0;  // bytes
  bool rounded = false;     // the relaxation
  double seconds = 0;       // after which the best until then counts
  std::uint64_t most_columns = 0;
};

struct CheckmateAnswer {
  bool found = false;      // else there are no steps
  bool too_large = false;  // it was not tried
  bool solved = false;     // to its end
  double bound_ns = -1;    // below 0: none is known
  std::uint64_t columns = 0, rows = 0, stages = 0;
  std::uint64_t steps = 0;  // their number
  char failure[200] = {};   // why it failed; empty if it did not
};

// `ends` is asked now and then, `take` is called once at the end; both get `context`.
using CheckmateModuleRun = void (*)(const swap::Problem& problem, const CheckmateQuestion& question,
                                    bool (*ends)(void* context),
                                    void (*take)(void* context, const CheckmateAnswer& answer, const Step* steps),
                                    void* context);
inline constexpr char kCheckmateRun[] = "memopt_checkmate";
// Module and program must be of one build: they share the layout of the types above.
inline constexpr char kCheckmateVersion[] = "memopt_checkmate_version";
inline constexpr char kCheckmateFile[] = "libmemopt_recompute_checkmate_module.so";

}  // namespace memopt::recompute
