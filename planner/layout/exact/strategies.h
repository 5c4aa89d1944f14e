// The strategies that exact search runs side by side. The time that one of them takes differs by orders of magnitude
// between instances; the least of all their times differs far less (algorithm portfolios: Gomes and Selman, Artificial
// Intelligence 126, 2001).
#pragma once

#include <cstddef>
#include <cstdint>

#include "planner/layout/exact/placement_tree.h"
#include "planner/layout/exact/prepared_problem.h"

namespace memopt::layout {

// The first kStrategies differ in branching and in preorder (MiniMalloc's WAT, TAW and TWA are such preorders). Those
// after them repeat these in turn, with noise that depends on seed and number. O(n log n).
inline constexpr std::size_t kStrategies = 8;
Strategy strategy_of(const PreparedProblem& prepared, std::uint64_t seed, std::uint64_t number);

}  // namespace memopt::layout
