// A linear programme whose variables are all between 0 and 1, solved by CLP: the least sum of costs.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

namespace memopt::recompute {

class LinearProgramme {
 public:
  static constexpr double kFree = std::numeric_limits<double>::max();  // CLP's infinity

  int add_column(double cost);
  int add_row(double least, double most);
  void add(int row, int column, double factor);
  void set_least(int column, double least) { least_[static_cast<std::size_t>(column)] = least; }

  struct Result {
    // No solution costs less; infinite: there is none. Of whatever CLP found, by duality: as variables have bounds, any
    // row prices y give one, the least of y * b + (c - y * A) * x over all x within their bounds. So what an
    // interrupted or inexact solution says holds, too, and rounding is accounted for (Neumaier and Shcherbina 2004,
    // section 3).
    double bound = 0;
    bool optimal = false;
    std::vector<double> columns;  // CLP's solution
  };
  // CLP's dual simplex, for about so long.
  Result solve(double seconds) const;

 private:
  // By these prices; without costs, above 0: there is no solution.
  double bound_by(const double* prices, double sign, bool with_costs) const;

  std::vector<double> cost_, least_, most_, row_least_, row_most_, factors_;
  std::vector<int> of_row_, of_column_;
};

}  // namespace memopt::recompute
