#include "planner/recompute/bounds/linear_programme.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <coin/ClpSimplex.hpp>
#include <coin/ClpSolve.hpp>
#include <coin/CoinPackedMatrix.hpp>
#include <limits>
#include <memory>

namespace memopt::recompute {
namespace {

// More exact than the programme is: a product and a sum are off by one part in so many at most.
using Sum = long double;
constexpr Sum kRounding = std::numeric_limits<Sum>::epsilon();

}  // namespace

int LinearProgramme::add_column(double cost) {
  cost_.push_back(cost);
  least_.push_back(0);
  most_.push_back(1);
  return static_cast<int>(cost_.size()) - 1;
}

int LinearProgramme::add_row(double least, double most) {
  row_least_.push_back(least);
  row_most_.push_back(most);
  return static_cast<int>(row_least_.size()) - 1;
}

void LinearProgramme::add(int row, int column, double factor) {
  of_row_.push_back(row);
  of_column_.push_back(column);
  factors_.push_back(factor);
}

double LinearProgramme::bound_by(const double* prices, double sign, bool with_costs) const {
  std::vector<double> usable(row_least_.size());
  std::vector<Sum> reduced(cost_.size(), 0);
  Sum bound = 0, sizes = 0;
  const auto count = [&](Sum term) {
    bound += term;
    sizes += std::abs(term);
  };
  for (std::size_t i = 0; i < usable.size(); ++i) {
    const double price = sign * prices[i];
    if (!std::isfinite(price)) return 0;
    const double side = price > 0 ? row_least_[i] : row_most_[i];
    if (std::abs(side) == kFree) continue;
    usable[i] = price;
    count(Sum{price} * side);
  }
  if (with_costs) std::copy(cost_.begin(), cost_.end(), reduced.begin());
  for (std::size_t e = 0; e < factors_.size(); ++e) {
    const Sum term = Sum{usable[static_cast<std::size_t>(of_row_[e])]} * factors_[e];
    reduced[static_cast<std::size_t>(of_column_[e])] -= term;
    sizes += std::abs(term);
  }
  for (std::size_t j = 0; j < reduced.size(); ++j) count(reduced[j] * (reduced[j] > 0 ? least_[j] : most_[j]));
  // Each term has gone through as many sums as there are at most (Higham, "Accuracy and Stability of Numerical
  // Algorithms", 2nd edition, 4.2), and through three products.
  const auto terms = static_cast<Sum>(usable.size() + factors_.size() + 2 * reduced.size() + 3);
  return static_cast<double>(
      std::nextafter(static_cast<double>(bound - terms * kRounding * sizes), -std::numeric_limits<double>::infinity()));
}

LinearProgramme::Result LinearProgramme::solve(double seconds) const {
  CoinPackedMatrix matrix(true, of_row_.data(), of_column_.data(), factors_.data(),
                          static_cast<CoinBigIndex>(factors_.size()));
  // Rows and columns without entries count, too.
  matrix.setDimensions(static_cast<int>(row_least_.size()), static_cast<int>(cost_.size()));
  const auto begin = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  ClpSimplex model;
  model.setLogLevel(0);
  model.loadProblem(matrix, least_.data(), most_.data(), cost_.data(), row_least_.data(), row_most_.data());
  model.setMaximumSeconds(seconds);
  ClpSolve options;
  options.setSolveType(ClpSolve::useDual);
  model.initialSolve(options);
  Result result;
  result.optimal = model.isProvenOptimal();
  result.columns.assign(model.getColSolution(), model.getColSolution() + cost_.size());
  result.bound = std::max(0.0, bound_by(model.getRowPrice(), 1, true));
  if (!model.isProvenPrimalInfeasible()) return result;
  // A ray: prices by which it can be checked that there is no solution. Presolve has none.
  std::unique_ptr<double[]> ray(model.infeasibilityRay());
  if (!ray) {
    model.setMaximumSeconds(std::max(0.0, seconds - elapsed()));
    model.dual();
    ray.reset(model.infeasibilityRay());
  }
  if (ray && std::max(bound_by(ray.get(), 1, false), bound_by(ray.get(), -1, false)) > 0) {
    result.bound = std::numeric_limits<double>::infinity();
  }
  return result;
}

}  // namespace memopt::recompute
