// The network of digits_cnn: a stem, bottleneck blocks with shortcuts, and a linear layer.
//
//   pixels -> [3x3 conv, norm, relu] -> 5 x { [1x1 conv narrow, norm, relu] [3x3 conv, norm, relu] [1x1 conv wide,
//   norm] + shortcut, relu }
//          -> 2x2 mean -> linear -> softmax
//
// Every activation, gradient and workspace is allocated where it is made and freed where it is last used, as eager
// frameworks do. An operation keeps what its gradient needs: a convolution and a normalisation their input, a relu its
// input.
#pragma once

#include <cmath>
#include <vector>

#include "cuda_check.h"
#include "digits_cnn_kernels.cuh"
#include "digits_data.h"

using Floats = DeviceArray<float>;

constexpr int kThreadsPerBlock = 128;
constexpr float kEpsilon = 1e-5f;
constexpr float kRunningMomentum = 0.2f;

inline int up(int a, int b) { return (a + b - 1) / b; }

template <typename... Parameters, typename... Arguments>
void launch(cudaStream_t stream, int threads, void (*kernel)(Parameters...), Arguments... arguments) {
  kernel<<<up(threads, kThreadsPerBlock), kThreadsPerBlock, 0, stream>>>(static_cast<Parameters>(arguments)...);
  CHECK_CUDA(cudaGetLastError());
}

struct Rates {
  float rate, momentum, decay;
};

// A weight and its momentum.
class Parameter {
 public:
  Parameter(int count, float bound, float centre, Random& random) : count_(count), value_(count), velocity_(count) {
    std::vector<float> values(count);
    for (float& value : values) value = centre + bound * (bound != 0.0f ? random.symmetric() : 0.0f);
    CHECK_CUDA(cudaMemcpy(value_.get(), values.data(), value_.bytes(), cudaMemcpyHostToDevice));
    CHECK_CUDA(cudaMemset(velocity_.get(), 0, velocity_.bytes()));
  }
  const float* get() const { return value_.get(); }
  float* mutable_value() { return value_.get(); }
  int count() const { return count_; }
  void update(cudaStream_t stream, const float* gradient, const Rates& rates) {
    launch(stream, up(count_, kElements), sgd_momentum, value_.get(), velocity_.get(), gradient, count_, rates.rate,
           rates.momentum, rates.decay);
  }

 private:
  int count_;
  Floats value_, velocity_;
};

// out[m, n] = a[m, k] b[n, k]^T
inline Floats product_transposed(cudaStream_t stream, const float* a, const float* b, int m, int n, int k) {
  const int spans = up(k, kDotSpan);
  Floats partial(static_cast<std::size_t>(spans) * m * n);
  launch(stream, spans * up(m, kDotTile) * up(n, kDotTile), gemm_nt_partial, a, b, partial.get(), m, n, k);
  Floats out(static_cast<std::size_t>(m) * n);
  launch(stream, m * n, sum_partials, partial.get(), out.get(), m * n, spans);
  return out;
}

inline int tile_threads(int m, int n) { return up(m, kTileRows) * up(n, kTileColumns); }

class Convolution {
 public:
  Convolution(int in, int out, int side, Random& random)
      : in_(in),
        out_(out),
        side_(side),
        depth_(in * side * side),
        weight_(out * depth_, std::sqrt(6.0f / static_cast<float>(depth_)), 0.0f, random) {}

  // x must stay until backward() has been called.
  Floats forward(cudaStream_t stream, const float* x, int images) {
    const int n = images * kPixels;
    Floats y(static_cast<std::size_t>(out_) * n);
    Floats columns = gather(stream, x, images);
    launch(stream, tile_threads(out_, n), gemm_nn, weight_.get(), side_ == 1 ? x : columns.get(), y.get(), out_, n,
           depth_);
    return y;
  }

  // Updates the weight; returns the gradient of x, or nothing for the first layer.
  Floats backward(cudaStream_t stream, const float* x, const float* dy, int images, const Rates& rates,
                  bool first = false) {
    const int n = images * kPixels;
    Floats columns = gather(stream, x, images);
    Floats dweight = product_transposed(stream, dy, side_ == 1 ? x : columns.get(), out_, depth_, n);
    Floats dx;
    if (!first) {
      Floats dcolumns(static_cast<std::size_t>(depth_) * n);
      launch(stream, tile_threads(depth_, n), gemm_tn, weight_.get(), dy, dcolumns.get(), depth_, n, out_);
      if (side_ == 1) {
        dx = std::move(dcolumns);
      } else {
        dx = Floats(static_cast<std::size_t>(in_) * n);
        launch(stream, in_ * images * kImageSide, col2im3x3, dcolumns.get(), dx.get(), in_, images, kImageSide,
               kImageSide);
      }
    }
    weight_.update(stream, dweight.get(), rates);
    return dx;
  }

  template <typename Visit>
  void visit(Visit visit) {
    visit(weight_);
  }

 private:
  Floats gather(cudaStream_t stream, const float* x, int images) {
    if (side_ == 1) return {};
    Floats columns(static_cast<std::size_t>(depth_) * images * kPixels);
    launch(stream, depth_ * images * kImageSide, im2col3x3, x, columns.get(), in_, images, kImageSide, kImageSide);
    return columns;
  }

  int in_, out_, side_, depth_;
  Parameter weight_;
};

class Normalisation {
 public:
  Normalisation(int channels, float scale, Random& random)
      : channels_(channels),
        scale_(channels, 0.0f, scale, random),
        shift_(channels, 0.0f, 0.0f, random),
        running_mean_(channels, 0.0f, 0.0f, random),
        running_variance_(channels, 0.0f, 1.0f, random) {}

  Floats forward(cudaStream_t stream, const float* x, int images, bool training) {
    const int n = images * kPixels;
    mean_ = Floats(channels_);
    inverse_ = Floats(channels_);
    if (training) {
      const int spans = up(n, kDotSpan);
      Floats partial(static_cast<std::size_t>(spans) * 2 * channels_);
      launch(stream, spans * channels_, row_moments_partial, x, partial.get(), channels_, n);
      Floats sums(2 * static_cast<std::size_t>(channels_));
      launch(stream, 2 * channels_, sum_partials, partial.get(), sums.get(), 2 * channels_, spans);
      launch(stream, channels_, norm_statistics, sums.get(), mean_.get(), inverse_.get(), running_mean_.mutable_value(),
             running_variance_.mutable_value(), channels_, n, kEpsilon, kRunningMomentum);
    } else {
      launch(stream, channels_, norm_from_running, running_mean_.get(), running_variance_.get(), mean_.get(),
             inverse_.get(), channels_, kEpsilon);
    }
    Floats y(static_cast<std::size_t>(channels_) * n);
    launch(stream, channels_ * (n / kElements), norm_forward, x, mean_.get(), inverse_.get(), scale_.get(),
           shift_.get(), y.get(), channels_, n);
    return y;
  }

  Floats backward(cudaStream_t stream, const float* x, const float* dy, int images, const Rates& rates) {
    const int n = images * kPixels;
    const int spans = up(n, kDotSpan);
    Floats partial(static_cast<std::size_t>(spans) * 2 * channels_);
    launch(stream, spans * channels_, norm_backward_partial, x, dy, mean_.get(), inverse_.get(), partial.get(),
           channels_, n);
    Floats sums(2 * static_cast<std::size_t>(channels_));
    launch(stream, 2 * channels_, sum_partials, partial.get(), sums.get(), 2 * channels_, spans);
    Floats dx(static_cast<std::size_t>(channels_) * n);
    launch(stream, channels_ * (n / kElements), norm_backward, x, dy, mean_.get(), inverse_.get(), scale_.get(),
           sums.get(), dx.get(), channels_, n);
    const Rates without_decay{rates.rate, rates.momentum, 0.0f};
    shift_.update(stream, sums.get(), without_decay);
    scale_.update(stream, sums.get() + channels_, without_decay);
    release();
    return dx;
  }

  void release() {
    mean_.reset();
    inverse_.reset();
  }

  template <typename Visit>
  void visit(Visit visit) {
    visit(scale_);
    visit(shift_);
    visit(running_mean_);
    visit(running_variance_);
  }

 private:
  int channels_;
  Parameter scale_, shift_, running_mean_, running_variance_;
  Floats mean_, inverse_;
};

inline Floats relu(cudaStream_t stream, const Floats& x) {
  Floats y(x.count());
  const int count = static_cast<int>(x.count());
  launch(stream, up(count, kElements), relu_forward, x.get(), y.get(), count);
  return y;
}

inline Floats relu_gradient(cudaStream_t stream, const Floats& x, const Floats& dy) {
  Floats dx(x.count());
  const int count = static_cast<int>(x.count());
  launch(stream, up(count, kElements), relu_backward, x.get(), dy.get(), dx.get(), count);
  return dx;
}

inline Floats sum(cudaStream_t stream, const Floats& a, const Floats& b) {
  Floats y(a.count());
  const int count = static_cast<int>(a.count());
  launch(stream, up(count, kElements), add, a.get(), b.get(), y.get(), count);
  return y;
}

// Convolution, normalisation, relu. The last unit of a block leaves the relu to the block and starts at zero, so that
// the block starts as its shortcut.
class Unit {
 public:
  Unit(int in, int out, int side, bool with_relu, Random& random)
      : with_relu_(with_relu),
        convolution_(in, out, side, random),
        normalisation_(out, with_relu ? 1.0f : 0.0f, random) {}

  // x must stay until backward() has been called.
  Floats forward(cudaStream_t stream, const float* x, int images, bool training) {
    convolved_ = convolution_.forward(stream, x, images);
    Floats y = normalisation_.forward(stream, convolved_.get(), images, training);
    if (!with_relu_) return y;
    normalised_ = std::move(y);
    return relu(stream, normalised_);
  }

  Floats backward(cudaStream_t stream, const float* x, const Floats& dy, int images, const Rates& rates,
                  bool first = false) {
    Floats d;
    if (with_relu_) {
      d = relu_gradient(stream, normalised_, dy);
      normalised_.reset();
    }
    d = normalisation_.backward(stream, convolved_.get(), with_relu_ ? d.get() : dy.get(), images, rates);
    convolved_.reset();
    return convolution_.backward(stream, x, d.get(), images, rates, first);
  }

  // Frees what forward() kept, where no backward() follows.
  void release() {
    convolved_.reset();
    normalised_.reset();
    normalisation_.release();
  }

  template <typename Visit>
  void visit(Visit visit) {
    convolution_.visit(visit);
    normalisation_.visit(visit);
  }

 private:
  bool with_relu_;
  Convolution convolution_;
  Normalisation normalisation_;
  Floats convolved_, normalised_;
};

class Bottleneck {
 public:
  Bottleneck(int wide, int narrow, Random& random)
      : reduce_(wide, narrow, 1, true, random),
        spatial_(narrow, narrow, 3, true, random),
        expand_(narrow, wide, 1, false, random) {}

  // Takes x over: the next layer has its own output to keep.
  Floats forward(cudaStream_t stream, Floats x, int images, bool training) {
    input_ = std::move(x);
    reduced_ = reduce_.forward(stream, input_.get(), images, training);
    filtered_ = spatial_.forward(stream, reduced_.get(), images, training);
    Floats expanded = expand_.forward(stream, filtered_.get(), images, training);
    summed_ = sum(stream, expanded, input_);
    expanded.reset();
    Floats y = relu(stream, summed_);
    if (!training) release();
    return y;
  }

  Floats backward(cudaStream_t stream, Floats dy, int images, const Rates& rates) {
    Floats dsum = relu_gradient(stream, summed_, dy);
    dy.reset();
    summed_.reset();
    Floats d = expand_.backward(stream, filtered_.get(), dsum, images, rates);
    filtered_.reset();
    d = spatial_.backward(stream, reduced_.get(), d, images, rates);
    reduced_.reset();
    d = reduce_.backward(stream, input_.get(), d, images, rates);
    input_.reset();
    return sum(stream, d, dsum);
  }

  template <typename Visit>
  void visit(Visit visit) {
    reduce_.visit(visit);
    spatial_.visit(visit);
    expand_.visit(visit);
  }

 private:
  void release() {
    input_.reset();
    reduced_.reset();
    filtered_.reset();
    summed_.reset();
    reduce_.release();
    spatial_.release();
    expand_.release();
  }

  Unit reduce_, spatial_, expand_;
  Floats input_, reduced_, filtered_, summed_;
};

// The parts in a row. One object trains and evaluates; a step's activations live in it between forward and backward.
class Network {
 public:
  static constexpr int kBottlenecks = 5;
  static constexpr int kWideFactor = 6;

  Network(int width, Random& random)
      : wide_(width * kWideFactor),
        features_(wide_ * kPixels / 4),
        stem_(1, wide_, 3, true, random),
        classifier_(kClasses * features_, 1.0f / std::sqrt(static_cast<float>(features_)), 0.0f, random),
        bias_(kClasses, 0.0f, 0.0f, random) {
    blocks_.reserve(kBottlenecks);
    for (int i = 0; i < kBottlenecks; ++i) blocks_.emplace_back(wide_, width, random);
  }

  // Per image the loss and whether it was recognised, on the device.
  struct Outcome {
    Floats loss, correct;
  };

  Outcome train(cudaStream_t stream, const unsigned char* pixels, const unsigned char* labels, int images,
                const Rates& rates) {
    Floats dlogits(static_cast<std::size_t>(kClasses) * images);
    Outcome outcome = forward(stream, pixels, labels, images, true, dlogits);
    backward(stream, std::move(dlogits), images, rates);
    return outcome;
  }

  Outcome evaluate(cudaStream_t stream, const unsigned char* pixels, const unsigned char* labels, int images) {
    Floats dlogits(static_cast<std::size_t>(kClasses) * images);
    Outcome outcome = forward(stream, pixels, labels, images, false, dlogits);
    stem_.release();
    input_.reset();
    flat_.reset();
    return outcome;
  }

  // All weights and running estimates, in a fixed order.
  template <typename Visit>
  void visit(Visit visit) {
    stem_.visit(visit);
    for (Bottleneck& block : blocks_) block.visit(visit);
    visit(classifier_);
    visit(bias_);
  }

 private:
  Outcome forward(cudaStream_t stream, const unsigned char* pixels, const unsigned char* labels, int images,
                  bool training, Floats& dlogits) {
    const int count = images * kPixels;
    input_ = Floats(count);
    launch(stream, up(count, kElements), pixels_to_float, pixels, input_.get(), count);
    Floats x = stem_.forward(stream, input_.get(), images, training);
    for (Bottleneck& block : blocks_) x = block.forward(stream, std::move(x), images, training);
    flat_ = Floats(static_cast<std::size_t>(features_) * images);
    launch(stream, features_ * images, pool_to_features, x.get(), flat_.get(), wide_, images, kImageSide, kImageSide);
    x.reset();
    Floats products(static_cast<std::size_t>(kClasses) * images);
    launch(stream, tile_threads(kClasses, images), gemm_nn, classifier_.get(), flat_.get(), products.get(), kClasses,
           images, features_);
    Floats logits(products.count());
    launch(stream, kClasses * images, add_bias, products.get(), bias_.get(), logits.get(), kClasses, images);
    Outcome outcome{Floats(images), Floats(images)};
    launch(stream, images, softmax_loss, logits.get(), labels, outcome.loss.get(), outcome.correct.get(), dlogits.get(),
           kClasses, images);
    return outcome;
  }

  void backward(cudaStream_t stream, Floats dlogits, int images, const Rates& rates) {
    Floats dclassifier = product_transposed(stream, dlogits.get(), flat_.get(), kClasses, features_, images);
    Floats dflat(flat_.count());
    launch(stream, tile_threads(features_, images), gemm_tn, classifier_.get(), dlogits.get(), dflat.get(), features_,
           images, kClasses);
    // It sums far more inputs than the other layers, and none is normalised.
    classifier_.update(stream, dclassifier.get(), {rates.rate / 4.0f, rates.momentum, rates.decay});
    dclassifier.reset();
    flat_.reset();
    const int spans = up(images, kDotSpan);
    Floats partial(static_cast<std::size_t>(spans) * 2 * kClasses);
    launch(stream, spans * kClasses, row_moments_partial, dlogits.get(), partial.get(), kClasses, images);
    Floats dbias(2 * kClasses);
    launch(stream, 2 * kClasses, sum_partials, partial.get(), dbias.get(), 2 * kClasses, spans);
    bias_.update(stream, dbias.get(), {rates.rate, rates.momentum, 0.0f});
    dlogits.reset();

    Floats d(static_cast<std::size_t>(wide_) * images * kPixels);
    launch(stream, features_ * images, features_to_pool, dflat.get(), d.get(), wide_, images, kImageSide, kImageSide);
    dflat.reset();
    for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block)
      d = block->backward(stream, std::move(d), images, rates);
    stem_.backward(stream, input_.get(), d, images, rates, true);
    input_.reset();
  }

  int wide_, features_;
  Unit stem_;
  std::vector<Bottleneck> blocks_;
  Parameter classifier_, bias_;
  Floats input_, flat_;
};
