// The kernels of digits_cnn and train.py.
//
// Layout: an activation of C channels over B images of H x W pixels is the matrix [C, B*H*W], row-major, so that a
// convolution is one matrix product over columns gathered by im2col, a 1x1 convolution is a matrix product as it
// stands, and a channel is one row.
//
// Every output element is written by exactly one thread and summed in an order that depends on the shape alone: no
// atomics, no shared memory, no barriers. Repeated runs give the same bits.
//
// Threads are one-dimensional. A thread owns a small tile of contiguous elements; the launcher derives the number of
// threads from the same constants (kTileRows and so on).
#pragma once

constexpr int kTileRows = 4;     // rows of C that one thread of gemm_nn and gemm_tn computes
constexpr int kTileColumns = 8;  // columns of C of the same thread
constexpr int kDotTile = 2;      // rows and columns that one thread of gemm_nt_partial computes
constexpr int kDotLanes = 8;     // independent partial sums of each dot product
constexpr int kDotSpan =
    1024;  // elements of the summed dimension per thread in gemm_nt_partial and in the row reductions
constexpr int kElements = 8;  // contiguous elements of a thread in element-wise kernels

__device__ inline int thread_index() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }

// 1, as all grids here are one-dimensional. A stride that the compiler does not know makes a host compiler vectorise
// over the columns or lanes of a tile, as meant, and not over the summed dimension.
__device__ inline int opaque_one() { return static_cast<int>(gridDim.z); }

__device__ inline int ceil_div(int a, int b) { return (a + b - 1) / b; }

__device__ inline float sum_lanes(const float* lanes) {
  static_assert(kDotLanes == 8, "summed by halves");
  const float a = lanes[0] + lanes[4];
  const float b = lanes[1] + lanes[5];
  const float c = lanes[2] + lanes[6];
  const float d = lanes[3] + lanes[7];
  return (a + c) + (b + d);
}

// ---- matrix products
// --------------------------------------------------------------------------------------------------------------

// One tile of C = A B with A[i, p] at a[i * row_stride + p * depth_stride]. Threads: ceil(m / kTileRows) * ceil(n /
// kTileColumns).
__device__ inline void gemm_tile(const float* __restrict__ a, int row_stride, int depth_stride,
                                 const float* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
  const int tiles_across = ceil_div(n, kTileColumns);
  const int t = thread_index();
  const int row = t / tiles_across * kTileRows;
  const int column = t % tiles_across * kTileColumns;
  if (row >= m) return;
  if (row + kTileRows <= m && column + kTileColumns <= n) {
    float sum0[kTileColumns] = {}, sum1[kTileColumns] = {}, sum2[kTileColumns] = {}, sum3[kTileColumns] = {};
    const float* a0 = a + row * row_stride;
    const float* a1 = a0 + row_stride;
    const float* a2 = a1 + row_stride;
    const float* a3 = a2 + row_stride;
    const float* b_row = b + column;
    for (int p = 0; p < k; ++p) {
      const float v0 = a0[p * depth_stride], v1 = a1[p * depth_stride], v2 = a2[p * depth_stride],
                  v3 = a3[p * depth_stride];
      for (int j = 0; j < kTileColumns; ++j) sum0[j] += v0 * b_row[j];
      for (int j = 0; j < kTileColumns; ++j) sum1[j] += v1 * b_row[j];
      for (int j = 0; j < kTileColumns; ++j) sum2[j] += v2 * b_row[j];
      for (int j = 0; j < kTileColumns; ++j) sum3[j] += v3 * b_row[j];
      b_row += n;
    }
    float* out = c + static_cast<long long>(row) * n + column;
#pragma unroll
    for (int j = 0; j < kTileColumns; ++j) {
      out[j] = sum0[j];
      out[n + j] = sum1[j];
      out[2 * n + j] = sum2[j];
      out[3 * n + j] = sum3[j];
    }
    return;
  }
  for (int i = row; i < row + kTileRows && i < m; ++i) {
    for (int j = column; j < column + kTileColumns && j < n; ++j) {
      float sum = 0.0f;
      for (int p = 0; p < k; ++p) sum += a[i * row_stride + p * depth_stride] * b[static_cast<long long>(p) * n + j];
      c[static_cast<long long>(i) * n + j] = sum;
    }
  }
}

// C[m, n] = A[m, k] B[k, n]
__global__ void gemm_nn(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n,
                        int k) {
  gemm_tile(a, k, opaque_one(), b, c, m, n, k);
}

// C[m, n] = A[k, m]^T B[k, n]
__global__ void gemm_tn(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n,
                        int k) {
  gemm_tile(a, 1, m, b, c, m, n, k);
}

// partial[s, m, n] = A[m, span s] B[n, span s]^T, the summed dimension (k long) cut into spans of kDotSpan.
// Threads: spans * ceil(m / kDotTile) * ceil(n / kDotTile).
__global__ void gemm_nt_partial(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ partial,
                                int m, int n, int k) {
  const int tiles_across = ceil_div(n, kDotTile);
  const int tiles = ceil_div(m, kDotTile) * tiles_across;
  const int t = thread_index();
  const int span = t / tiles;
  const int row = t % tiles / tiles_across * kDotTile;
  const int column = t % tiles_across * kDotTile;
  const int begin = span * kDotSpan;
  if (begin >= k) return;
  const int end = begin + kDotSpan < k ? begin + kDotSpan : k;
  // The last row or column of an odd matrix is computed twice instead of reading beyond it; the second result is not
  // stored.
  const bool has_row1 = row + 1 < m;
  const bool has_column1 = column + 1 < n;
  const float* a0 = a + static_cast<long long>(row) * k;
  const float* a1 = has_row1 ? a0 + k : a0;
  const float* b0 = b + static_cast<long long>(column) * k;
  const float* b1 = has_column1 ? b0 + k : b0;
  float s00[kDotLanes] = {}, s01[kDotLanes] = {}, s10[kDotLanes] = {}, s11[kDotLanes] = {};
  const int step = kDotLanes * opaque_one();
  int p = begin;
  for (; p + kDotLanes <= end; p += step) {
    for (int l = 0; l < kDotLanes; ++l) s00[l] += a0[p + l] * b0[p + l];
    for (int l = 0; l < kDotLanes; ++l) s01[l] += a0[p + l] * b1[p + l];
    for (int l = 0; l < kDotLanes; ++l) s10[l] += a1[p + l] * b0[p + l];
    for (int l = 0; l < kDotLanes; ++l) s11[l] += a1[p + l] * b1[p + l];
  }
  for (int l = 0; p + l < end; ++l) {
    s00[l] += a0[p + l] * b0[p + l];
    s01[l] += a0[p + l] * b1[p + l];
    s10[l] += a1[p + l] * b0[p + l];
    s11[l] += a1[p + l] * b1[p + l];
  }
  float* out = partial + (static_cast<long long>(span) * m + row) * n + column;
  out[0] = sum_lanes(s00);
  if (has_column1) out[1] = sum_lanes(s01);
  if (has_row1) out[n] = sum_lanes(s10);
  if (has_row1 && has_column1) out[n + 1] = sum_lanes(s11);
}

// out[i] = partial[0, i] + partial[1, i] + ... Threads: count.
__global__ void sum_partials(const float* __restrict__ partial, float* __restrict__ out, int count, int spans) {
  const int i = thread_index();
  if (i >= count) return;
  float sum = 0.0f;
  for (int s = 0; s < spans; ++s) sum += partial[static_cast<long long>(s) * count + i];
  out[i] = sum;
}

// ---- convolution as a matrix product (3x3, padding 1)
// ------------------------------------------------------------------------------

// columns[(channel, ky, kx), pixel] = x[channel, pixel shifted by (ky - 1, kx - 1)], zero outside the image.
// Threads: channels * 9 * images * height (one image row each).
__global__ void im2col3x3(const float* __restrict__ x, float* __restrict__ columns, int channels, int images,
                          int height, int width) {
  const int rows_per_channel = images * height;
  const int t = thread_index();
  const int source_row = t % rows_per_channel;
  const int kernel = t / rows_per_channel % 9;
  const int channel = t / rows_per_channel / 9;
  if (channel >= channels) return;
  const int dy = kernel / 3 - 1;
  const int dx = kernel % 3 - 1;
  const int y = source_row % height + dy;
  float* out = columns + static_cast<long long>(channel * 9 + kernel) * rows_per_channel * width + source_row * width;
  if (y < 0 || y >= height) {
    for (int i = 0; i < width; ++i) out[i] = 0.0f;
    return;
  }
  const float* in = x + (static_cast<long long>(channel) * rows_per_channel + source_row + dy) * width + dx;
  const int first = dx < 0 ? 1 : 0;
  const int last = dx > 0 ? width - 1 : width;
  if (first == 1) out[0] = 0.0f;
  for (int i = first; i < last; ++i) out[i] = in[i];
  if (last == width - 1) out[width - 1] = 0.0f;
}

// The transpose of im2col3x3 as a gather: dx[channel, pixel] sums its up to nine places in the columns in a fixed
// order. Threads: channels * images * height (one image row each).
__global__ void col2im3x3(const float* __restrict__ columns, float* __restrict__ dx_out, int channels, int images,
                          int height, int width) {
  const int rows_per_channel = images * height;
  const int t = thread_index();
  const int row = t % rows_per_channel;
  const int channel = t / rows_per_channel;
  if (channel >= channels) return;
  float* out = dx_out + static_cast<long long>(t) * width;
  for (int i = 0; i < width; ++i) out[i] = 0.0f;
  for (int kernel = 0; kernel < 9; ++kernel) {
    const int dy = kernel / 3 - 1;
    const int dx = kernel % 3 - 1;
    const int y = row % height - dy;
    if (y < 0 || y >= height) continue;
    const float* in =
        columns + (static_cast<long long>(channel * 9 + kernel) * rows_per_channel + row - dy) * width - dx;
    const int first = dx > 0 ? 1 : 0;
    const int last = dx < 0 ? width - 1 : width;
    for (int i = first; i < last; ++i) out[i] += in[i];
  }
}

// ---- batch normalisation
// ------------------------------------------------------------------------------------------------------------

// partial[s, 0, row] = sum of x over span s of the row, partial[s, 1, row] = sum of x * x. Threads: rows * ceil(n /
// kDotSpan).
__global__ void row_moments_partial(const float* __restrict__ x, float* __restrict__ partial, int rows, int n) {
  const int t = thread_index();
  const int row = t % rows;
  const int span = t / rows;
  const int begin = span * kDotSpan;
  if (begin >= n) return;
  const int end = begin + kDotSpan < n ? begin + kDotSpan : n;
  const float* in = x + static_cast<long long>(row) * n;
  float sum[kDotLanes] = {}, squares[kDotLanes] = {};
  int p = begin;
  for (; p + kDotLanes <= end; p += kDotLanes) {
#pragma unroll
    for (int l = 0; l < kDotLanes; ++l) {
      sum[l] += in[p + l];
      squares[l] += in[p + l] * in[p + l];
    }
  }
  for (int l = 0; p + l < end; ++l) {
    sum[l] += in[p + l];
    squares[l] += in[p + l] * in[p + l];
  }
  partial[(span * 2 + 0) * rows + row] = sum_lanes(sum);
  partial[(span * 2 + 1) * rows + row] = sum_lanes(squares);
}

// Mean and 1 / standard deviation of each row from the sums of row_moments_partial, and the running estimates. Threads:
// rows.
__global__ void norm_statistics(const float* __restrict__ sums, float* __restrict__ mean,
                                float* __restrict__ inverse_deviation, float* __restrict__ running_mean,
                                float* __restrict__ running_variance, int rows, int n, float epsilon, float momentum) {
  const int row = thread_index();
  if (row >= rows) return;
  const float m = sums[row] / static_cast<float>(n);
  float variance = sums[rows + row] / static_cast<float>(n) - m * m;
  if (variance < 0.0f) variance = 0.0f;
  mean[row] = m;
  inverse_deviation[row] = 1.0f / sqrtf(variance + epsilon);
  running_mean[row] += momentum * (m - running_mean[row]);
  running_variance[row] += momentum * (variance - running_variance[row]);
}

// The same from the running estimates, for evaluation. Threads: rows.
__global__ void norm_from_running(const float* __restrict__ running_mean, const float* __restrict__ running_variance,
                                  float* __restrict__ mean, float* __restrict__ inverse_deviation, int rows,
                                  float epsilon) {
  const int row = thread_index();
  if (row >= rows) return;
  mean[row] = running_mean[row];
  inverse_deviation[row] = 1.0f / sqrtf(running_variance[row] + epsilon);
}

// y = scale * (x - mean) / deviation + shift, row by row; n is a multiple of kElements. Threads: rows * n / kElements.
__global__ void norm_forward(const float* __restrict__ x, const float* __restrict__ mean,
                             const float* __restrict__ inverse_deviation, const float* __restrict__ scale,
                             const float* __restrict__ shift, float* __restrict__ y, int rows, int n) {
  const int t = thread_index();
  const int row = t / (n / kElements);
  if (row >= rows) return;
  const float factor = scale[row] * inverse_deviation[row];
  const float offset = shift[row] - mean[row] * factor;
  const long long begin = static_cast<long long>(t) * kElements;
#pragma unroll
  for (int i = 0; i < kElements; ++i) y[begin + i] = x[begin + i] * factor + offset;
}

// partial[s, 0, row] = sum of dy over span s, partial[s, 1, row] = sum of dy * normalised x. Threads: rows * ceil(n /
// kDotSpan).
__global__ void norm_backward_partial(const float* __restrict__ x, const float* __restrict__ dy,
                                      const float* __restrict__ mean, const float* __restrict__ inverse_deviation,
                                      float* __restrict__ partial, int rows, int n) {
  const int t = thread_index();
  const int row = t % rows;
  const int span = t / rows;
  const int begin = span * kDotSpan;
  if (begin >= n) return;
  const int end = begin + kDotSpan < n ? begin + kDotSpan : n;
  const float* in = x + static_cast<long long>(row) * n;
  const float* grad = dy + static_cast<long long>(row) * n;
  const float m = mean[row];
  const float inverse = inverse_deviation[row];
  float sum[kDotLanes] = {}, products[kDotLanes] = {};
  int p = begin;
  for (; p + kDotLanes <= end; p += kDotLanes) {
#pragma unroll
    for (int l = 0; l < kDotLanes; ++l) {
      sum[l] += grad[p + l];
      products[l] += grad[p + l] * ((in[p + l] - m) * inverse);
    }
  }
  for (int l = 0; p + l < end; ++l) {
    sum[l] += grad[p + l];
    products[l] += grad[p + l] * ((in[p + l] - m) * inverse);
  }
  partial[(span * 2 + 0) * rows + row] = sum_lanes(sum);
  partial[(span * 2 + 1) * rows + row] = sum_lanes(products);
}

// dx of norm_forward; sums[0, row] is the gradient of shift, sums[1, row] that of scale. n is a multiple of kElements.
// Threads: rows * n / kElements.
__global__ void norm_backward(const float* __restrict__ x, const float* __restrict__ dy, const float* __restrict__ mean,
                              const float* __restrict__ inverse_deviation, const float* __restrict__ scale,
                              const float* __restrict__ sums, float* __restrict__ dx, int rows, int n) {
  const int t = thread_index();
  const int row = t / (n / kElements);
  if (row >= rows) return;
  const float inverse = inverse_deviation[row];
  const float m = mean[row];
  const float factor = scale[row] * inverse;
  const float mean_dy = sums[row] / static_cast<float>(n);
  const float mean_product = sums[rows + row] / static_cast<float>(n);
  const long long begin = static_cast<long long>(t) * kElements;
#pragma unroll
  for (int i = 0; i < kElements; ++i) {
    dx[begin + i] = factor * (dy[begin + i] - mean_dy - (x[begin + i] - m) * inverse * mean_product);
  }
}

// ---- element-wise (threads: ceil(count / kElements))
// -----------------------------------------------------------------------------

__global__ void relu_forward(const float* __restrict__ x, float* __restrict__ y, int count) {
  const int begin = thread_index() * kElements;
  const int end = begin + kElements < count ? begin + kElements : count;
  for (int i = begin; i < end; ++i) {
    const float v = x[i];
    y[i] = v > 0.0f ? v : 0.0f;
  }
}

// dx = dy where x was positive.
__global__ void relu_backward(const float* __restrict__ x, const float* __restrict__ dy, float* __restrict__ dx,
                              int count) {
  const int begin = thread_index() * kElements;
  const int end = begin + kElements < count ? begin + kElements : count;
  for (int i = begin; i < end; ++i) {
    const float g = dy[i];
    dx[i] = x[i] > 0.0f ? g : 0.0f;
  }
}

__global__ void add(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ sum, int count) {
  const int begin = thread_index() * kElements;
  const int end = begin + kElements < count ? begin + kElements : count;
  for (int i = begin; i < end; ++i) sum[i] = a[i] + b[i];
}

// Momentum: velocity = momentum * velocity - rate * (gradient + decay * weight); weight += velocity.
__global__ void sgd_momentum(float* __restrict__ weight, float* __restrict__ velocity,
                             const float* __restrict__ gradient, int count, float rate, float momentum, float decay) {
  const int begin = thread_index() * kElements;
  const int end = begin + kElements < count ? begin + kElements : count;
  for (int i = begin; i < end; ++i) {
    const float v = momentum * velocity[i] - rate * (gradient[i] + decay * weight[i]);
    velocity[i] = v;
    weight[i] += v;
  }
}

// ---- ends of the network
// -----------------------------------------------------------------------------------------------------------

// Pixels 0..16 as bytes to floats around zero. Threads: ceil(count / kElements).
__global__ void pixels_to_float(const unsigned char* __restrict__ pixels, float* __restrict__ x, int count) {
  const int begin = thread_index() * kElements;
  const int end = begin + kElements < count ? begin + kElements : count;
  for (int i = begin; i < end; ++i) x[i] = static_cast<float>(pixels[i]) * 0.125f - 0.625f;
}

// Bytes [images, features] to floats [features, images]. Threads: features * images.
__global__ void pixels_to_columns(const unsigned char* __restrict__ pixels, float* __restrict__ x, int features,
                                  int images) {
  const int t = thread_index();
  if (t >= features * images) return;
  x[t] = static_cast<float>(pixels[t % images * features + t / images]) * 0.125f - 0.625f;
}

// Mean over 2x2 pixels, and from [channel, image, pixel] to features [(channel, pixel), image]. Threads: channels *
// images * pooled pixels.
__global__ void pool_to_features(const float* __restrict__ x, float* __restrict__ features, int channels, int images,
                                 int height, int width) {
  const int half_width = width / 2;
  const int pixels = height / 2 * half_width;
  const int t = thread_index();
  const int pixel = t % pixels;
  const int image = t / pixels % images;
  const int channel = t / pixels / images;
  if (channel >= channels) return;
  const int corner = ((channel * images + image) * height + pixel / half_width * 2) * width + pixel % half_width * 2;
  features[(channel * pixels + pixel) * images + image] =
      0.25f * ((x[corner] + x[corner + 1]) + (x[corner + width] + x[corner + width + 1]));
}

// The transpose of pool_to_features. Threads as there.
__global__ void features_to_pool(const float* __restrict__ dfeatures, float* __restrict__ dx, int channels, int images,
                                 int height, int width) {
  const int half_width = width / 2;
  const int pixels = height / 2 * half_width;
  const int t = thread_index();
  const int pixel = t % pixels;
  const int image = t / pixels % images;
  const int channel = t / pixels / images;
  if (channel >= channels) return;
  const int corner = ((channel * images + image) * height + pixel / half_width * 2) * width + pixel % half_width * 2;
  const float g = 0.25f * dfeatures[(channel * pixels + pixel) * images + image];
  dx[corner] = g;
  dx[corner + 1] = g;
  dx[corner + width] = g;
  dx[corner + width + 1] = g;
}

// x[row, column] + bias[row]. Threads: rows * columns.
__global__ void add_bias(const float* __restrict__ x, const float* __restrict__ bias, float* __restrict__ y, int rows,
                         int columns) {
  const int t = thread_index();
  if (t < rows * columns) y[t] = x[t] + bias[t / columns];
}

// Softmax over classes of logits[class, image], its cross-entropy with the label per image, the gradient of the mean
// loss, and whether the largest logit is the label's. Threads: images.
__global__ void softmax_loss(const float* __restrict__ logits, const unsigned char* __restrict__ labels,
                             float* __restrict__ loss, float* __restrict__ correct, float* __restrict__ dlogits,
                             int classes, int images) {
  const int image = thread_index();
  if (image >= images) return;
  int best = 0;
  for (int c = 1; c < classes; ++c) {
    if (logits[c * images + image] > logits[best * images + image]) best = c;
  }
  const float largest = logits[best * images + image];
  float sum = 0.0f;
  for (int c = 0; c < classes; ++c) sum += expf(logits[c * images + image] - largest);
  const int label = labels[image];
  loss[image] = logf(sum) - (logits[label * images + image] - largest);
  correct[image] = best == label ? 1.0f : 0.0f;
  for (int c = 0; c < classes; ++c) {
    const float p = expf(logits[c * images + image] - largest) / sum;
    dlogits[c * images + image] = (p - (c == label ? 1.0f : 0.0f)) / static_cast<float>(images);
  }
}
