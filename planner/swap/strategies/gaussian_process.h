// Regression by a Gaussian process, and the minimisation of a costly function with it (Bayesian optimisation: Mockus,
// "On Bayesian methods for seeking the extremum", 1975; Jones, Schonlau and Welch, "Efficient global optimization of
// expensive black-box functions", 1998; Rasmussen and Williams, "Gaussian processes for machine learning", 2006,
// algorithm 2.1). For few dimensions and some dozens of evaluations.
//
// Needs Eigen; a library of its own together with what uses it (memopt_swap_tuned). Thread-safe: const members only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace memopt::swap {

using Parameters = std::vector<double>;

// Squared exponential (radial basis function): variance * exp(-distance^2 / (2 length^2)).
struct Kernel {
  double length = 1;
  double variance = 1;
  double noise = 1e-6;  // variance of each value, as a share of `variance`; above 0, so that points may coincide
  double mean = 0;      // of the values, far from all points
};

class GaussianProcess {
 public:
  // At least one point, all of the same dimension, a value for each. O(n^3). Throws std::invalid_argument.
  GaussianProcess(std::vector<Parameters> points, std::span<const double> values, const Kernel& kernel);
  ~GaussianProcess();
  GaussianProcess(GaussianProcess&&) noexcept;
  GaussianProcess& operator=(GaussianProcess&&) noexcept;

  // The mean is that of the values; variance and length are those of the highest likelihood, the length out of some.
  static GaussianProcess fitted(const std::vector<Parameters>& points, std::span<const double> values);

  struct Belief {
    double mean = 0;
    double variance = 0;
  };
  Belief at(const Parameters& point) const;  // O(n^2)

  const Kernel& kernel() const;
  double log_likelihood() const;  // of the values

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

// By how much a value below `best` is expected to be below it.
double expected_improvement(const GaussianProcess::Belief& belief, double best);

struct MinimiseOptions {
  std::size_t dimensions = 1;
  double low = -1, high = 1;           // of each coordinate
  std::size_t evaluations = 40;        // of the function, those of `first` included
  std::size_t at_random = 6;           // so many of them are made at random places before the first model
  std::vector<Parameters> first = {};  // evaluated before all others, in this order
  double enough = -1e300;              // stops at a value that is no higher
  std::uint64_t seed = 1;
  std::function<bool()> stop = {};  // asked before each evaluation but the first
};

struct Minimum {
  Parameters point;
  double value = 0;
  std::vector<Parameters> points;  // all that were evaluated, in order
  std::vector<double> values;
};

// The function must be finite. Each evaluation after the first ones is made where the expected improvement is highest.
// The same options and values give the same points.
Minimum minimise(const std::function<double(const Parameters&)>& function, const MinimiseOptions& options);

}  // namespace memopt::swap
