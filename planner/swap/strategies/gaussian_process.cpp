#include "planner/swap/strategies/gaussian_process.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>
#include <stdexcept>
#include <utility>

namespace memopt::swap {
namespace {

constexpr double kLengths[] = {0.1, 0.2, 0.4, 0.8, 1.6, 3.2};  // of an interval of 2
constexpr std::size_t kPlacesTried = 1500;                     // for the highest expected improvement
constexpr std::size_t kSteps = 200;                            // from the best of them on

double distance_squared(const Parameters& a, const Parameters& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

double correlation(const Parameters& a, const Parameters& b, double length) {
  return std::exp(-distance_squared(a, b) / (2 * length * length));
}

// Numbers that do not depend on the standard library.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  double between(double low, double high) {
    return low + (high - low) * (static_cast<double>(engine_() >> 11) * 0x1p-53);
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace

struct GaussianProcess::State {
  std::vector<Parameters> points;
  Kernel kernel;
  Eigen::LLT<Eigen::MatrixXd> factor;  // of the correlations, noise included
  Eigen::VectorXd centred;             // values less their mean
  Eigen::VectorXd weights;             // the inverse of the correlations times `centred`

  State(std::vector<Parameters> where, std::span<const double> values, const Kernel& wanted)
      : points(std::move(where)), kernel(wanted) {
    const auto n = static_cast<Eigen::Index>(points.size());
    if (n == 0 || values.size() != points.size()) {
      throw std::invalid_argument("Gaussian process: expected points, and a value for each");
    }
    for (const Parameters& point : points) {
      if (point.size() != points[0].size()) throw std::invalid_argument("Gaussian process: points differ in dimension");
    }
    Eigen::MatrixXd correlations(n, n);
    centred.resize(n);
    for (Eigen::Index i = 0; i < n; ++i) {
      const auto at = static_cast<std::size_t>(i);
      centred[i] = values[at] - kernel.mean;
      for (Eigen::Index k = 0; k <= i; ++k) {
        correlations(i, k) = correlations(k, i) =
            correlation(points[at], points[static_cast<std::size_t>(k)], kernel.length);
      }
      correlations(i, i) += kernel.noise;
    }
    factor.compute(correlations);
    if (factor.info() != Eigen::Success) throw std::invalid_argument("Gaussian process: more noise is needed");
    weights = factor.solve(centred);
  }

  double log_likelihood() const {
    const auto n = static_cast<double>(points.size());
    double log_determinant = 0;
    for (Eigen::Index i = 0; i < centred.size(); ++i) log_determinant += 2 * std::log(factor.matrixLLT()(i, i));
    return -0.5 * (centred.dot(weights) / kernel.variance + log_determinant +
                   n * std::log(2 * std::numbers::pi * kernel.variance));
  }
};

GaussianProcess::GaussianProcess(std::vector<Parameters> points, std::span<const double> values, const Kernel& kernel)
    : state_(std::make_unique<const State>(std::move(points), values, kernel)) {}
GaussianProcess::~GaussianProcess() = default;
GaussianProcess::GaussianProcess(GaussianProcess&&) noexcept = default;
GaussianProcess& GaussianProcess::operator=(GaussianProcess&&) noexcept = default;

GaussianProcess GaussianProcess::fitted(const std::vector<Parameters>& points, std::span<const double> values) {
  Kernel kernel, best;
  for (const double value : values) kernel.mean += value / static_cast<double>(values.size());
  double likeliest = -std::numeric_limits<double>::infinity();
  for (const double length : kLengths) {
    kernel.length = length;
    kernel.variance = 1;
    const State unit(points, values, kernel);
    // Of the highest likelihood, given the length; equal values have none, and any will do.
    kernel.variance = std::max(unit.centred.dot(unit.weights) / static_cast<double>(values.size()), 1e-24);
    const double likelihood = State(points, values, kernel).log_likelihood();
    if (likelihood <= likeliest) continue;
    likeliest = likelihood;
    best = kernel;
  }
  return {points, values, best};
}

GaussianProcess::Belief GaussianProcess::at(const Parameters& point) const {
  Eigen::VectorXd near(state_->centred.size());
  for (Eigen::Index i = 0; i < near.size(); ++i) {
    near[i] = correlation(point, state_->points[static_cast<std::size_t>(i)], state_->kernel.length);
  }
  const double known = state_->factor.matrixL().solve(near).squaredNorm();
  return {state_->kernel.mean + near.dot(state_->weights), state_->kernel.variance * std::max(0.0, 1 - known)};
}

const Kernel& GaussianProcess::kernel() const { return state_->kernel; }
double GaussianProcess::log_likelihood() const { return state_->log_likelihood(); }

double expected_improvement(const GaussianProcess::Belief& belief, double best) {
  const double gain = best - belief.mean, deviation = std::sqrt(belief.variance);
  if (deviation == 0) return std::max(gain, 0.0);
  const double z = gain / deviation;
  const double density = std::exp(-0.5 * z * z) / std::sqrt(2 * std::numbers::pi);
  return gain * 0.5 * std::erfc(-z / std::numbers::sqrt2) + deviation * density;
}

namespace {

Parameters most_promising(const GaussianProcess& process, double best, const MinimiseOptions& options, Random& random) {
  Parameters chosen;
  double most = -1;
  const auto offer = [&](const Parameters& point) {
    const double value = expected_improvement(process.at(point), best);
    if (value <= most) return;
    most = value;
    chosen = point;
  };
  Parameters point(options.dimensions);
  for (std::size_t k = 0; k < kPlacesTried; ++k) {
    for (double& x : point) x = random.between(options.low, options.high);
    offer(point);
  }
  double reach = (options.high - options.low) / 4;
  for (std::size_t k = 0; k < kSteps; ++k) {
    for (std::size_t i = 0; i < point.size(); ++i) {
      point[i] = std::clamp(chosen[i] + random.between(-reach, reach), options.low, options.high);
    }
    offer(point);
    reach *= 0.97;
  }
  return chosen;
}

}  // namespace

Minimum minimise(const std::function<double(const Parameters&)>& function, const MinimiseOptions& options) {
  Random random(options.seed);
  Minimum result;
  result.value = std::numeric_limits<double>::infinity();
  const auto done = [&] {
    if (result.points.size() >= options.evaluations || result.value <= options.enough) return true;
    return !result.points.empty() && options.stop && options.stop();
  };
  const auto evaluate = [&](const Parameters& point) {
    const double value = function(point);
    if (!std::isfinite(value)) throw std::invalid_argument("minimise: the function is not finite");
    result.points.push_back(point);
    result.values.push_back(value);
    if (value >= result.value) return;
    result.value = value;
    result.point = point;
  };
  for (const Parameters& point : options.first) {
    if (point.size() != options.dimensions) throw std::invalid_argument("minimise: a first point differs in dimension");
    if (!done()) evaluate(point);
  }
  for (std::size_t k = 0; !done(); ++k) {
    if (k >= options.at_random && !result.points.empty()) {
      evaluate(most_promising(GaussianProcess::fitted(result.points, result.values), result.value, options, random));
      continue;
    }
    Parameters point(options.dimensions);
    for (double& x : point) x = random.between(options.low, options.high);
    evaluate(point);
  }
  return result;
}

}  // namespace memopt::swap
