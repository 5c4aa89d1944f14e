// A multilayer perceptron with rectified linear units, its gradient by backpropagation, and Adam (Kingma and Ba, ICLR
// 2015, algorithm 1). In double precision, so that gradients can be held against differences. Only what a deep
// Q-network needs: of each input one output has a target.
//
// Needs Eigen, which computes in the calling thread: the same seed gives the same numbers on one machine, whatever else
// runs. Thread-safe for const members only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace memopt::recompute {

class Network {
 public:
  // What one output should be for one input.
  struct Target {
    std::uint32_t output = 0;
    double value = 0;
  };

  // Numbers of inputs, of units of each hidden layer, and of outputs: two or more. Weights are drawn as He et al. 2015
  // do (uniformly, variance 2 / inputs of the layer; the last layer's a tenth of that in size), biases are 0. Throws
  // std::invalid_argument where a layer is empty.
  Network(std::vector<std::size_t> widths, std::uint64_t seed);

  std::size_t inputs() const { return widths_.front(); }
  std::size_t outputs() const { return widths_.back(); }

  // Of inputs one after the other, outputs one after the other.
  std::vector<double> values(std::span<const double> inputs) const;

  // Mean of the Huber loss (quadratic up to an error of 1, as Mnih et al. clip it) over all inputs, each with a target;
  // `gradient`, by parameter, is overwritten.
  double loss(std::span<const double> inputs, std::span<const Target> targets, std::vector<double>& gradient) const;

  // Of each layer the weights, by input and in it by unit, then the biases.
  std::span<double> parameters() { return parameters_; }
  std::span<const double> parameters() const { return parameters_; }

 private:
  std::vector<std::size_t> widths_;
  std::vector<double> parameters_;
};

// Decay rates and epsilon are those of the paper.
class Adam {
 public:
  Adam(std::size_t parameters, double rate) : rate_(rate), mean_(parameters), square_(parameters) {}

  void step(std::span<double> parameters, std::span<const double> gradient);

 private:
  double rate_;
  std::uint64_t steps_ = 0;
  std::vector<double> mean_, square_;
};

}  // namespace memopt::recompute
