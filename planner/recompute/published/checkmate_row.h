// Internal to the room: a row of Checkmate's program while it is put together.
#pragma once

#include <utility>
#include <vector>

#include "planner/recompute/published/checkmate_program.h"

namespace memopt::recompute {

// The terms of a row, of which some are no columns.
class CheckmateProgram::Row {
 public:
  Row& add(double factor, Term term) {
    if (term.column >= 0) {
      terms_.emplace_back(term.column, factor);
    } else {
      constant_ += factor * term.value;
    }
    return *this;
  }
  Row& add(double factor, const Row& row) {
    for (const auto& [column, its] : row.terms_) terms_.emplace_back(column, factor * its);
    constant_ += factor * row.constant_;
    return *this;
  }

 private:
  friend class CheckmateProgram;
  std::vector<std::pair<int, double>> terms_;
  double constant_ = 0;
};

}  // namespace memopt::recompute
