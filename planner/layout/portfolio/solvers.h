// Every solver by name: for commands that let the user select one, and for tests that apply the same rules to all.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "planner/layout/problem/limits.h"
#include "planner/layout/problem/outcome.h"
#include "planner/layout/problem/problem.h"

namespace memopt::layout {

struct Solver {
  std::string_view name;
  std::string_view what;  // one line
  Outcome (*run)(const Problem& problem, const Limits& limits);
  // Given enough time, it finds the smallest height and proves it.
  bool exact = false;
  // Why it does not support this problem, to be called before `run`; null: it supports all.
  std::optional<std::string> (*unsupported)(const Problem& problem) = nullptr;
};

// "auto", the portfolio, comes first.
std::span<const Solver> solvers();

}  // namespace memopt::layout
