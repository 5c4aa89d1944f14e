#include "planner/recompute/learned/network.h"

#include <Eigen/Core>
#include <cmath>
#include <random>
#include <stdexcept>
#include <utility>

namespace memopt::recompute {
namespace {

using Matrix = Eigen::MatrixXd;  // a column for each input
using Eigen::Index;

constexpr double kLastLayer = 0.1;  // first outputs are small, so that first targets are about the rewards

struct Layer {
  Eigen::Map<const Matrix> weights;  // a row for each unit
  Eigen::Map<const Eigen::VectorXd> biases;
};

// Of the parameters, from `at` on, which then is behind them.
Layer layer_at(const std::vector<double>& parameters, std::size_t& at, std::size_t in, std::size_t out) {
  const double* const weights = parameters.data() + at;
  at += (in + 1) * out;
  return {{weights, static_cast<Index>(out), static_cast<Index>(in)}, {weights + in * out, static_cast<Index>(out)}};
}

// What each layer gets, and last what comes out.
std::vector<Matrix> pass(const std::vector<std::size_t>& widths, const std::vector<double>& parameters,
                         std::span<const double> inputs) {
  const auto columns = static_cast<Index>(inputs.size() / widths.front());
  std::vector<Matrix> passed;
  passed.emplace_back(Eigen::Map<const Matrix>(inputs.data(), static_cast<Index>(widths.front()), columns));
  std::size_t at = 0;
  for (std::size_t k = 0; k + 1 < widths.size(); ++k) {
    const Layer layer = layer_at(parameters, at, widths[k], widths[k + 1]);
    Matrix next = (layer.weights * passed.back()).colwise() + layer.biases;
    if (k + 2 < widths.size()) next = next.cwiseMax(0);
    passed.push_back(std::move(next));
  }
  return passed;
}

}  // namespace

Network::Network(std::vector<std::size_t> widths, std::uint64_t seed) : widths_(std::move(widths)) {
  if (widths_.size() < 2) throw std::invalid_argument("network: expected inputs and outputs");
  for (const std::size_t width : widths_) {
    if (width == 0) throw std::invalid_argument("network: expected at least one unit in each layer");
  }
  std::mt19937_64 random(seed);
  for (std::size_t k = 0; k + 1 < widths_.size(); ++k) {
    const double scale = k + 2 < widths_.size() ? 1 : kLastLayer;
    const double most = scale * std::sqrt(6 / static_cast<double>(widths_[k]));
    for (std::size_t i = 0; i < widths_[k] * widths_[k + 1]; ++i)
      parameters_.push_back(most * (static_cast<double>(random() >> 11) * 0x1p-52 - 1));
    parameters_.resize(parameters_.size() + widths_[k + 1]);
  }
}

std::vector<double> Network::values(std::span<const double> inputs) const {
  const Matrix out = pass(widths_, parameters_, inputs).back();
  return {out.data(), out.data() + out.size()};
}

double Network::loss(std::span<const double> inputs, std::span<const Target> targets,
                     std::vector<double>& gradient) const {
  const std::vector<Matrix> passed = pass(widths_, parameters_, inputs);
  const Index columns = passed.front().cols();
  const double share = 1 / static_cast<double>(columns);
  double loss = 0;
  Matrix errors = Matrix::Zero(static_cast<Index>(outputs()), columns);  // of the layer's outputs, by its gradient
  for (Index c = 0; c < columns; ++c) {
    const Target& target = targets[static_cast<std::size_t>(c)];
    const double error = passed.back()(target.output, c) - target.value;
    const double size = std::abs(error);
    loss += share * (size <= 1 ? error * error / 2 : size - 0.5);
    errors(target.output, c) = share * (size <= 1 ? error : std::copysign(1., error));
  }
  gradient.resize(parameters_.size());
  std::size_t end = parameters_.size();
  for (std::size_t k = widths_.size() - 1; k-- > 0;) {
    const std::size_t in = widths_[k], out = widths_[k + 1];
    std::size_t at = end -= (in + 1) * out;
    Eigen::Map<Matrix>(gradient.data() + at, static_cast<Index>(out), static_cast<Index>(in)) =
        errors * passed[k].transpose();
    Eigen::Map<Eigen::VectorXd>(gradient.data() + at + in * out, static_cast<Index>(out)) = errors.rowwise().sum();
    if (k == 0) break;
    const Layer layer = layer_at(parameters_, at, in, out);
    errors = (layer.weights.transpose() * errors).cwiseProduct((passed[k].array() > 0).cast<double>().matrix()).eval();
  }
  return loss;
}

void Adam::step(std::span<double> parameters, std::span<const double> gradient) {
  constexpr double kMeanDecay = 0.9, kSquareDecay = 0.999, kEpsilon = 1e-8;
  ++steps_;
  const auto steps = static_cast<double>(steps_);
  const double rate = rate_ * std::sqrt(1 - std::pow(kSquareDecay, steps)) / (1 - std::pow(kMeanDecay, steps));
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    mean_[i] += (1 - kMeanDecay) * (gradient[i] - mean_[i]);
    square_[i] += (1 - kSquareDecay) * (gradient[i] * gradient[i] - square_[i]);
    parameters[i] -= rate * mean_[i] / (std::sqrt(square_[i]) + kEpsilon);
  }
}

}  // namespace memopt::recompute
