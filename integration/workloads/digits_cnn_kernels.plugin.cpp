// The kernels of digits_cnn and train.py for the simulated driver: the same source, and what each launch costs.
#include "digits_cnn_kernels.cuh"

#include <cudasim/kernel_plugin.h>

namespace {

using cudasim::Cost;
using cudasim::Grid;

constexpr double kFloat = sizeof(float);

// A product [m, k] x [k, n], each matrix moved once.
Cost product(int m, int n, int k) {
  return {.flops = 2.0 * m * n * k, .bytes = kFloat * (double(m) * k + double(k) * n + double(m) * n)};
}

// `elements` results, each from `flops` operations and `floats` words read or written.
Cost per_element(double elements, double flops, double floats) {
  return {.flops = flops * elements, .bytes = kFloat * floats * elements};
}

}  // namespace

CUDASIM_KERNEL(gemm_nn, [](Grid, const float*, const float*, float*, int m, int n, int k) { return product(m, n, k); });
CUDASIM_KERNEL(gemm_tn, [](Grid, const float*, const float*, float*, int m, int n, int k) { return product(m, n, k); });
CUDASIM_KERNEL(gemm_nt_partial, [](Grid, const float*, const float*, float*, int m, int n, int k) {
  Cost cost = product(m, n, k);
  cost.bytes += kFloat * m * n * (ceil_div(k, kDotSpan) - 1.0);
  return cost;
});
CUDASIM_KERNEL(sum_partials,
               [](Grid, const float*, float*, int count, int spans) { return per_element(count, spans, spans + 1.0); });

CUDASIM_KERNEL(im2col3x3, [](Grid, const float*, float*, int channels, int images, int height, int width) {
  return per_element(double(channels) * images * height * width, 0, 10);
});
CUDASIM_KERNEL(col2im3x3, [](Grid, const float*, float*, int channels, int images, int height, int width) {
  return per_element(double(channels) * images * height * width, 9, 10);
});

CUDASIM_KERNEL(row_moments_partial,
               [](Grid, const float*, float*, int rows, int n) { return per_element(double(rows) * n, 3, 1); });
CUDASIM_KERNEL(norm_statistics, [](Grid, const float*, float*, float*, float*, float*, int rows, int, float, float) {
  return per_element(rows, 12, 8);
});
CUDASIM_KERNEL(norm_from_running, [](Grid, const float*, const float*, float*, float*, int rows, float) {
  return per_element(rows, 3, 4);
});
CUDASIM_KERNEL(norm_forward, [](Grid, const float*, const float*, const float*, const float*, const float*, float*,
                                int rows, int n) { return per_element(double(rows) * n, 2, 2); });
CUDASIM_KERNEL(norm_backward_partial, [](Grid, const float*, const float*, const float*, const float*, float*, int rows,
                                         int n) { return per_element(double(rows) * n, 5, 2); });
CUDASIM_KERNEL(norm_backward,
               [](Grid, const float*, const float*, const float*, const float*, const float*, const float*, float*,
                  int rows, int n) { return per_element(double(rows) * n, 6, 3); });

CUDASIM_KERNEL(relu_forward, [](Grid, const float*, float*, int count) { return per_element(count, 1, 2); });
CUDASIM_KERNEL(relu_backward,
               [](Grid, const float*, const float*, float*, int count) { return per_element(count, 1, 3); });
CUDASIM_KERNEL(add, [](Grid, const float*, const float*, float*, int count) { return per_element(count, 1, 3); });
CUDASIM_KERNEL(sgd_momentum, [](Grid, float*, float*, const float*, int count, float, float, float) {
  return per_element(count, 6, 5);
});

CUDASIM_KERNEL(pixels_to_float,
               [](Grid, const unsigned char*, float*, int count) { return per_element(count, 2, 1.25); });
CUDASIM_KERNEL(pixels_to_columns, [](Grid, const unsigned char*, float*, int features, int images) {
  return per_element(double(features) * images, 2, 1.25);
});
CUDASIM_KERNEL(pool_to_features, [](Grid, const float*, float*, int channels, int images, int height, int width) {
  return per_element(double(channels) * images * height * width, 1, 1.25);
});
CUDASIM_KERNEL(features_to_pool, [](Grid, const float*, float*, int channels, int images, int height, int width) {
  return per_element(double(channels) * images * height * width, 0.25, 1.25);
});
CUDASIM_KERNEL(add_bias, [](Grid, const float*, const float*, float*, int rows, int columns) {
  return per_element(double(rows) * columns, 1, 2);
});
CUDASIM_KERNEL(softmax_loss, [](Grid, const float*, const unsigned char*, float*, float*, float*, int classes,
                                int images) { return per_element(double(classes) * images, 24, 5); });
