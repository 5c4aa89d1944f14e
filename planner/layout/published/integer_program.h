// The mixed-integer program (1)-(6) of Sekiyama, Imamichi, Imai, Raymond, "Profile-guided memory optimization for deep
// neural networks" (arXiv 1804.10001, 2018), section 3, solved by CBC:
//
//   minimise u                                        (1)
//   x_i + w_i <= u                                    (2)
//   x_i + w_i <= x_j + z_ij W       for i, j in E     (3)
//   x_j + w_j <= x_i + (1 - z_ij) W for i, j in E     (4)
//   0 <= x_i, u <= W                                  (5)
//   z_ij is 0 or 1                                    (6)
//
// with E the edges of the conflict graph: pairs of buffers that overlap in time (in any of their intervals). W is the
// height that SmartPool's best fit reaches, or the capacity if that is less. An aligned buffer has x_i = alignment * an
// integer, a fixed one a constant. Sizes are divided by their greatest common divisor first: CBC computes in floating
// point, so only the order of the buffers is taken from its answer, offsets are computed anew in integers, and nothing
// is called proven where the numbers are too large for its tolerances.
//
// For small problems. A library of its own, since nothing else needs CBC.
#pragma once

#include <optional>
#include <string>

#include "planner/layout/problem/limits.h"
#include "planner/layout/problem/outcome.h"
#include "planner/layout/problem/problem.h"

namespace memopt::layout {

// Limits: the time, and the seed. It uses one thread and cannot be cancelled.
Outcome integer_program(const Problem& problem, const Limits& limits);

// Why it does not support a problem: its conflict graph has too many edges.
std::optional<std::string> integer_program_unsupported(const Problem& problem);

}  // namespace memopt::layout
