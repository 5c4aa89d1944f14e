// Every solver by name: for commands that let one be chosen, and for tests that hold all of them to the same rules.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "planner/layout/problem.h"
#include "planner/layout/search.h"

namespace memopt::layout {

struct Solver {
  std::string_view name;
  std::string_view what;  // one line
  Outcome (*run)(const Problem& problem, const Limits& limits);
  // Given the time, it finds the smallest height and proves it.
  bool exact = false;
  // Why it does not take this problem; null: it takes all. To be asked before `run`.
  std::optional<std::string> (*refuses)(const Problem& problem) = nullptr;
};

// "auto", the portfolio, comes first.
std::span<const Solver> solvers();

}  // namespace memopt::layout
