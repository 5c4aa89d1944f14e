#include "planner/swap/strategies/gaussian_process.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>
#include <stdexcept>

#include "tests/planner/layout/sanitized.h"

namespace memopt::swap {
namespace {

TEST(GaussianProcess, TwoPointsAreAsInClosedForm) {
  const Kernel kernel{.length = 0.7, .variance = 2.5, .noise = 0.01, .mean = 3};
  const std::vector<Parameters> points = {{0.2}, {0.9}};
  const double y0 = 4, y1 = 1.5;
  const GaussianProcess process(points, std::vector{y0, y1}, kernel);
  const auto covariance = [&](double a, double b) {
    return kernel.variance * std::exp(-(a - b) * (a - b) / (2 * kernel.length * kernel.length));
  };
  const double d = kernel.variance * (1 + kernel.noise), c = covariance(0.2, 0.9), determinant = d * d - c * c;
  for (const double x : {-1.0, 0.2, 0.5, 0.9, 2.0}) {
    const double k0 = covariance(x, 0.2), k1 = covariance(x, 0.9);
    const double w0 = (d * k0 - c * k1) / determinant, w1 = (d * k1 - c * k0) / determinant;
    const auto [mean, variance] = process.at({x});
    EXPECT_NEAR(mean, 3 + w0 * (y0 - 3) + w1 * (y1 - 3), 1e-12);
    EXPECT_NEAR(variance, kernel.variance - w0 * k0 - w1 * k1, 1e-12);
  }
  const double a = y0 - 3, b = y1 - 3;
  const double distance = (d * a * a - 2 * c * a * b + d * b * b) / determinant;
  EXPECT_NEAR(process.log_likelihood(), -0.5 * (distance + std::log(determinant)) - std::log(2 * std::numbers::pi),
              1e-12);
}

TEST(GaussianProcess, GoesThroughThePointsAndKnowsLessBetweenThem) {
  const std::vector<Parameters> points = {{-0.8, 0.3}, {0.1, 0.1}, {0.7, -0.9}};
  const std::vector<double> values = {5, -2, 11};
  const GaussianProcess process(points, values, {.length = 0.5, .variance = 4, .noise = 1e-9, .mean = 1});
  for (std::size_t i = 0; i < points.size(); ++i) {
    EXPECT_NEAR(process.at(points[i]).mean, values[i], 1e-6);
    EXPECT_NEAR(process.at(points[i]).variance, 0, 1e-6);
  }
  EXPECT_GT(process.at({0.4, -0.4}).variance, 0.1);
  EXPECT_NEAR(process.at({100, 100}).mean, 1, 1e-12);
  EXPECT_NEAR(process.at({100, 100}).variance, 4, 1e-12);
}

TEST(GaussianProcess, FindsTheLengthThatValuesHave) {
  std::vector<Parameters> points;
  std::vector<double> slow, fast;
  for (double x = -1; x <= 1; x += 0.08) {
    points.push_back({x});
    slow.push_back(std::sin(1.5 * x));
    fast.push_back(std::sin(12 * x));
  }
  EXPECT_GT(GaussianProcess::fitted(points, slow).kernel().length,
            2 * GaussianProcess::fitted(points, fast).kernel().length);
  EXPECT_NEAR(GaussianProcess::fitted(points, fast).at({0.5}).mean, std::sin(6), 0.02);
}

TEST(GaussianProcess, EqualValuesAndEqualPoints) {
  const std::vector<Parameters> points = {{0.5}, {0.5}, {-0.5}};
  const GaussianProcess process = GaussianProcess::fitted(points, std::vector{2.0, 2.0, 2.0});
  EXPECT_NEAR(process.at({0.1}).mean, 2, 1e-9);
  EXPECT_THROW(GaussianProcess({}, {}, {}), std::invalid_argument);
  EXPECT_THROW(GaussianProcess({{1, 2}, {1}}, std::vector{1.0, 2.0}, {}), std::invalid_argument);
}

TEST(ExpectedImprovement, IsAsInClosedForm) {
  EXPECT_NEAR(expected_improvement({.mean = 3, .variance = 4}, 3), 2 / std::sqrt(2 * std::numbers::pi), 1e-12);
  EXPECT_EQ(expected_improvement({.mean = 1, .variance = 0}, 3), 2);
  EXPECT_EQ(expected_improvement({.mean = 4, .variance = 0}, 3), 0);
  EXPECT_NEAR(expected_improvement({.mean = -50, .variance = 1}, 0), 50, 1e-9);
}

double bowl(const Parameters& x) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    sum += (x[i] - 0.2 * static_cast<double>(i)) * (x[i] - 0.2 * static_cast<double>(i));
  return sum;
}

// Branin's function; three minima of 0.397887 in the square.
double branin(const Parameters& p) {
  constexpr double kPi = std::numbers::pi;
  const double x = 7.5 * p[0] + 2.5, y = 7.5 * p[1] + 7.5;
  const double a = y - 5.1 / (4 * kPi * kPi) * x * x + 5 / kPi * x - 6;
  return a * a + 10 * (1 - 1 / (8 * kPi)) * std::cos(x) + 10;
}

TEST(Minimise, FindsMinimaInFewEvaluations) {
  for (std::uint64_t seed = 1; seed <= (layout::kSanitized ? 1 : 5); ++seed) {
    const Minimum round = minimise(bowl, {.dimensions = 4, .seed = seed});
    EXPECT_LT(round.value, 0.02) << seed;
    EXPECT_EQ(round.values.size(), 40U);
    EXPECT_EQ(bowl(round.point), round.value);
    const Minimum three = minimise(branin, {.dimensions = 2, .seed = seed});
    EXPECT_LT(three.value, 0.397887 + 0.1) << seed;
    EXPECT_GE(three.value, 0.397887 - 1e-6);
  }
}

TEST(Minimise, StaysInsideAndRepeats) {
  const MinimiseOptions options{.dimensions = 3, .low = -0.1, .high = 0.3, .evaluations = 20, .seed = 7};
  const Minimum one = minimise(bowl, options), other = minimise(bowl, options);
  EXPECT_EQ(one.points, other.points);
  for (const Parameters& point : one.points) {
    for (const double x : point) {
      EXPECT_GE(x, -0.1);
      EXPECT_LE(x, 0.3);
    }
  }
}

TEST(Minimise, BeginsWithWhatIsGivenAndStopsWhenItIsEnough) {
  MinimiseOptions options{.dimensions = 2, .evaluations = 9, .first = {{1, 1}, {0, 0.2}, {1, 0}}};
  Minimum result = minimise(bowl, options);
  EXPECT_EQ(result.points.size(), 9U);
  EXPECT_EQ(result.points[1], options.first[1]);
  EXPECT_EQ(result.point, options.first[1]);
  options.enough = 1e-9;
  result = minimise(bowl, options);
  EXPECT_EQ(result.points.size(), 2U);
  options.evaluations = 1;
  EXPECT_EQ(minimise(bowl, options).points.size(), 1U);
  EXPECT_THROW(minimise([](const Parameters&) { return NAN; }, options), std::invalid_argument);
}

}  // namespace
}  // namespace memopt::swap
