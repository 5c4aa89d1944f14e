#include "planner/recompute/learned/generated.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>
#include <vector>

namespace memopt::recompute {
namespace {

using swap::Kind;

// Numbers that do not depend on the standard library.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  double between(double low, double high) {
    return low + (high - low) * (static_cast<double>(engine_() >> 11) * 0x1p-53);
  }
  std::size_t below(std::size_t end) { return static_cast<std::size_t>(engine_() % end); }

 private:
  std::mt19937_64 engine_;
};

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(seed) {}

  swap::Problem make() {
    problem_.name = "generated";
    problem_.layout = false;
    problem_.limit = 0;
    const std::size_t depth = 8 + random_.below(17);
    forward(depth);
    backward();
    problem_.period = now_;
    const double rate = bytes_ / (now_ * std::exp(random_.between(-std::log(3.), std::log(3.))));
    problem_.machine = {rate, rate, now_ / 5000, now_ / 5000};
    return std::move(problem_);
  }

 private:
  struct Layer {
    std::uint32_t block = 0;
    std::vector<std::uint32_t> inputs;
    double ns = 0;
    bool reads_input = false, reads_output = false;  // backward
  };

  std::uint32_t block(double bytes) {
    problem_.blocks.push_back({.id = problem_.blocks.size(), .bytes = static_cast<std::uint64_t>(bytes) + 1});
    return static_cast<std::uint32_t>(problem_.blocks.size() - 1);
  }
  void add(Kind kind, std::uint32_t b, bool continues = false) {
    problem_.operations.push_back({.kind = kind, .block = b, .time = now_, .continues = continues});
  }
  // Makes a block.
  std::uint32_t launch(double bytes, double ns, std::vector<std::uint32_t> reads) {
    const std::uint32_t made = block(bytes);
    add(Kind::kMalloc, made);
    std::sort(reads.begin(), reads.end());
    reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
    for (std::size_t k = 0; k < reads.size(); ++k) add(Kind::kRead, reads[k], k > 0);
    add(Kind::kWrite, made, !reads.empty());
    now_ += ns;
    return made;
  }

  void forward(std::size_t depth) {
    double bytes = random_.between(5e5, 2e6);
    const double dear = std::exp(random_.between(std::log(2.), std::log(30.)));  // as often the time of a cheap one
    layers_.push_back({launch(bytes, 1e4, {}), {}, 1e4, false, false});
    for (std::size_t k = 1; k < depth; ++k) {
      if (random_.below(4) == 0) bytes *= random_.between(0.4, 0.9);
      const bool cheap = random_.below(2) == 0;
      Layer layer;
      layer.inputs = {layers_.back().block};
      if (k > 2 && random_.below(4) == 0)
        layer.inputs.push_back(layers_[k - 2 - random_.below(std::min<std::size_t>(3, k - 2))].block);
      layer.ns = bytes * random_.between(0.02, 0.05) * (cheap ? 1 : dear);
      layer.reads_input = !cheap || random_.below(2) == 0;
      layer.reads_output = !layer.reads_input || random_.below(4) == 0;
      layer.block = launch(bytes * (random_.below(6) == 0 ? random_.between(0.2, 1) : 1), layer.ns, layer.inputs);
      bytes_ += static_cast<double>(problem_.blocks[layer.block].bytes);
      layers_.push_back(std::move(layer));
    }
  }

  void backward() {
    const auto bytes_of = [&](std::uint32_t b) { return static_cast<double>(problem_.blocks[b].bytes); };
    std::uint32_t gradient = launch(bytes_of(layers_.back().block), 1e4, {layers_.back().block});
    for (std::size_t k = layers_.size(); k-- > 1;) {
      const Layer& layer = layers_[k];
      std::vector<std::uint32_t> reads = {gradient};
      if (layer.reads_output) reads.push_back(layer.block);
      if (layer.reads_input) reads.insert(reads.end(), layer.inputs.begin(), layer.inputs.end());
      const std::uint32_t next = launch(bytes_of(layer.inputs.front()), 2 * layer.ns, std::move(reads));
      add(Kind::kFree, gradient);
      add(Kind::kFree, layer.block);  // all that reads it backward is behind this layer
      gradient = next;
    }
    add(Kind::kFree, gradient);
    add(Kind::kFree, layers_.front().block);
  }

  Random random_;
  swap::Problem problem_;
  std::vector<Layer> layers_;
  double now_ = 0, bytes_ = 0;
};

}  // namespace

swap::Problem generated_iteration(std::uint64_t seed) { return Generator(seed).make(); }

}  // namespace memopt::recompute
