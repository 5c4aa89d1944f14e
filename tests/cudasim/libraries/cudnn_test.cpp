// cuDNN's classic interface as PyTorch calls it, by the numbers of the public headers.
#include <algorithm>

#include "tests/cudasim/libraries/device.h"

struct Performance {
  int algorithm, status;
  float milliseconds;
  size_t workspace;
  int determinism, math;
  int reserved[3];
};

extern "C" {
int cudnnCreate(void**);
int cudnnDestroy(void*);
int cudnnSetStream(void*, cudaStream_t);
int cudnnCreateTensorDescriptor(void**);
int cudnnDestroyTensorDescriptor(void*);
int cudnnSetTensorNdDescriptor(void*, int, int, const int*, const int*);
int cudnnGetTensorNdDescriptor(void*, int, int*, int*, int*, int*);
int cudnnCreateFilterDescriptor(void**);
int cudnnDestroyFilterDescriptor(void*);
int cudnnSetFilterNdDescriptor(void*, int, int, int, const int*);
int cudnnCreateConvolutionDescriptor(void**);
int cudnnDestroyConvolutionDescriptor(void*);
int cudnnSetConvolutionNdDescriptor(void*, int, const int*, const int*, const int*, int, int);
int cudnnSetConvolutionMathType(void*, int);
int cudnnGetConvolutionForwardAlgorithm_v7(void*, void*, void*, void*, void*, int, int*, Performance*);
int cudnnFindConvolutionForwardAlgorithmEx(void*, void*, const void*, void*, const void*, void*, void*, void*, int,
                                           int*, Performance*, void*, size_t);
int cudnnGetConvolutionForwardWorkspaceSize(void*, void*, void*, void*, void*, int, size_t*);
int cudnnConvolutionForward(void*, const void*, void*, const void*, void*, const void*, void*, int, void*, size_t,
                            const void*, void*, void*);
int cudnnGetConvolutionBackwardFilterWorkspaceSize(void*, void*, void*, void*, void*, int, size_t*);
int cudnnConvolutionBackwardFilter(void*, const void*, void*, const void*, void*, const void*, void*, int, void*,
                                   size_t, const void*, void*, void*);
int cudnnBatchNormalizationForwardTrainingEx(void*, int, int, const void*, const void*, void*, const void*, void*,
                                             const void*, void*, void*, void*, const void*, const void*, double, void*,
                                             void*, double, void*, void*, void*, void*, size_t, void*, size_t);
int cudnnCreateDropoutDescriptor(void**);
int cudnnDestroyDropoutDescriptor(void*);
int cudnnDropoutGetStatesSize(void*, size_t*);
int cudnnSetDropoutDescriptor(void*, void*, float, void*, size_t, unsigned long long);
int cudnnCreateRNNDescriptor(void**);
int cudnnDestroyRNNDescriptor(void*);
int cudnnSetRNNDescriptor_v8(void*, int, int, int, int, int, int, int, int, int32_t, int32_t, int32_t, int32_t, void*,
                             uint32_t);
int cudnnCreateRNNDataDescriptor(void**);
int cudnnDestroyRNNDataDescriptor(void*);
int cudnnSetRNNDataDescriptor(void*, int, int, int, int, int, const int*, void*);
int cudnnGetRNNTempSpaceSizes(void*, void*, int, void*, size_t*, size_t*);
int cudnnGetRNNWeightSpaceSize(void*, void*, size_t*);
int cudnnGetRNNWeightParams(void*, void*, int32_t, size_t, const void*, int32_t, void*, void**, void*, void**);
int cudnnRNNForward(void*, void*, int, const int32_t*, void*, const void*, void*, void*, void*, const void*, void*,
                    void*, const void*, void*, size_t, const void*, size_t, void*, size_t, void*);
int cudnnBackendCreateDescriptor(int, void**);
const char* cudnnGetErrorString(int);
}

namespace {

constexpr int kSuccess = 0, kNullPointer = 2002, kSizeInsufficient = 2006, kShapeMismatch = 2008, kNotSupported = 3000;
constexpr int kFloat = 0, kImplicit = 0, kPrecomputed = 1, kWinogradApart = 7;

class CudnnStandIn : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cudnnCreate(&handle_), kSuccess);
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudnnSetStream(handle_, stream_), kSuccess);
    for (void** tensor : {&x_, &y_, &z_}) ASSERT_EQ(cudnnCreateTensorDescriptor(tensor), kSuccess);
    ASSERT_EQ(cudnnCreateFilterDescriptor(&w_), kSuccess);
    ASSERT_EQ(cudnnCreateConvolutionDescriptor(&convolution_), kSuccess);
  }
  void TearDown() override {
    for (void* tensor : {x_, y_, z_}) EXPECT_EQ(cudnnDestroyTensorDescriptor(tensor), kSuccess);
    EXPECT_EQ(cudnnDestroyFilterDescriptor(w_), kSuccess);
    EXPECT_EQ(cudnnDestroyConvolutionDescriptor(convolution_), kSuccess);
    EXPECT_EQ(cudnnDestroy(handle_), kSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
  }
  static int describe(void* tensor, std::vector<int> size, std::vector<int> stride = {}) {
    if (stride.empty()) {
      stride.resize(size.size());
      int step = 1;
      for (std::size_t i = size.size(); i-- > 0; step *= size[i]) stride[i] = step;
    }
    return cudnnSetTensorNdDescriptor(tensor, kFloat, static_cast<int>(size.size()), size.data(), stride.data());
  }
  // Images of 8 by 8, two of them, from 16 channels to 32, by 3 by 3.
  void convolution(int padding = 1, int dilation = 1) {
    const int pads[] = {padding, padding}, ones[] = {1, 1}, dilations[] = {dilation, dilation};
    const int size[] = {32, 16, 3, 3};
    ASSERT_EQ(describe(x_, {2, 16, 8, 8}), kSuccess);
    ASSERT_EQ(describe(y_, {2, 32, 8, 8}), kSuccess);
    ASSERT_EQ(cudnnSetFilterNdDescriptor(w_, kFloat, 0, 4, size), kSuccess);
    ASSERT_EQ(cudnnSetConvolutionNdDescriptor(convolution_, 2, pads, ones, dilations, 1, kFloat), kSuccess);
  }
  int forward(const Floats& x, const Floats& w, const Floats& y, int algorithm, void* workspace = nullptr,
              size_t bytes = 0) {
    const float one = 1, zero = 0;
    return cudnnConvolutionForward(handle_, &one, x_, x.data(), w_, w.data(), convolution_, algorithm, workspace, bytes,
                                   &zero, y_, y.data());
  }
  size_t workspace(int algorithm) {
    size_t bytes = 0;
    EXPECT_EQ(cudnnGetConvolutionForwardWorkspaceSize(handle_, x_, w_, convolution_, y_, algorithm, &bytes), kSuccess);
    return bytes;
  }

  void *handle_ = nullptr, *x_ = nullptr, *y_ = nullptr, *z_ = nullptr, *w_ = nullptr, *convolution_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

TEST_F(CudnnStandIn, ConvolutionDependsOnAllOperands) {
  convolution();
  Floats x(2048), w(4608), y(4096), other(4096);
  ASSERT_EQ(forward(x, w, y, kImplicit), kSuccess);
  ASSERT_EQ(forward(x, w, other, kImplicit), kSuccess);
  EXPECT_EQ(y.get(), other.get());
  w.set(4607, -1);
  ASSERT_EQ(forward(x, w, other, kImplicit), kSuccess);
  EXPECT_NE(y.get(), other.get());
}

TEST_F(CudnnStandIn, WorkspacesAreOfTheAlgorithmAndMustBeGiven) {
  convolution();
  Floats x(2048), w(4608), y(4096);
  EXPECT_EQ(workspace(kImplicit), 0u);
  EXPECT_EQ(workspace(kPrecomputed), 16u * 9 * 8);
  const size_t winograd = workspace(kWinogradApart);
  EXPECT_EQ(winograd, (2048u + 4096) * 4 * 36 / 16 + 4608 * 4 * 36 / 9);
  EXPECT_EQ(forward(x, w, y, kWinogradApart), kSizeInsufficient);
  Floats space(winograd / 4);
  const std::vector<float> before = space.get();
  EXPECT_EQ(forward(x, w, y, kWinogradApart, space.data(), winograd - 1), kSizeInsufficient);
  EXPECT_EQ(forward(x, w, y, kWinogradApart, space.data(), winograd), kSuccess);
  EXPECT_NE(space.get(), before);
}

TEST_F(CudnnStandIn, AlgorithmsAreListedFastestFirst) {
  convolution();
  Performance found[8];
  int count = 0;
  ASSERT_EQ(cudnnGetConvolutionForwardAlgorithm_v7(handle_, x_, w_, convolution_, y_, 8, &count, found), kSuccess);
  ASSERT_EQ(count, 8);
  int works = 0;
  for (; works < count && found[works].status == kSuccess; ++works) {
    EXPECT_EQ(found[works].workspace, workspace(found[works].algorithm));
    EXPECT_GE(found[works].milliseconds, works == 0 ? 0 : found[works - 1].milliseconds);
  }
  EXPECT_EQ(works, 5);
  for (int i = works; i < count; ++i) EXPECT_EQ(found[i].status, kNotSupported);
  // Dilated, Winograd's does not fit.
  convolution(2, 2);
  ASSERT_EQ(cudnnGetConvolutionForwardAlgorithm_v7(handle_, x_, w_, convolution_, y_, 8, &count, found), kSuccess);
  EXPECT_EQ(found[0].algorithm, kPrecomputed);
  size_t bytes = 0;
  EXPECT_EQ(cudnnGetConvolutionForwardWorkspaceSize(handle_, x_, w_, convolution_, y_, kWinogradApart, &bytes),
            kNotSupported);
}

TEST_F(CudnnStandIn, SearchRunsWhatFitsInItsWorkspace) {
  convolution();
  Floats x(2048), w(4608), y(4096), space(400);
  Performance found[8];
  int count = 0;
  const std::vector<float> before = y.get();
  ASSERT_EQ(cudnnFindConvolutionForwardAlgorithmEx(handle_, x_, x.data(), w_, w.data(), convolution_, y_, y.data(), 8,
                                                   &count, found, space.data(), space.bytes()),
            kSuccess);
  EXPECT_EQ(found[0].status, kSuccess);
  for (int i = 0; i < count; ++i) EXPECT_LE(found[i].workspace, space.bytes());
  EXPECT_NE(y.get(), before);
}

TEST_F(CudnnStandIn, TimeIsTheRoofline) {
  const int pads[] = {1, 1}, ones[] = {1, 1}, size[] = {256, 256, 3, 3};
  ASSERT_EQ(describe(x_, {4, 256, 32, 32}), kSuccess);
  ASSERT_EQ(describe(y_, {4, 256, 32, 32}), kSuccess);
  ASSERT_EQ(cudnnSetFilterNdDescriptor(w_, kFloat, 0, 4, size), kSuccess);
  ASSERT_EQ(cudnnSetConvolutionNdDescriptor(convolution_, 2, pads, ones, ones, 1, kFloat), kSuccess);
  ASSERT_EQ(cudnnSetConvolutionMathType(convolution_, 3), kSuccess);  // no TensorFloat-32
  Floats x(1 << 20), y(1 << 20), w(256 * 256 * 9);
  const double expected = 2.0 * 4 * 256 * 32 * 32 * 256 * 9 / kFlopsPerMicrosecond + kLatency;
  const double taken = device_microseconds(stream_, [&] { EXPECT_EQ(forward(x, w, y, kImplicit), kSuccess); });
  EXPECT_GE(taken, expected);
  EXPECT_LE(taken, expected + kBetweenEvents);
}

TEST_F(CudnnStandIn, WrongArgumentsAreRefused) {
  convolution();
  Floats x(2048), w(4608), y(4096);
  EXPECT_EQ(cudnnCreate(nullptr), kNullPointer);
  ASSERT_EQ(describe(y_, {2, 32, 7, 8}), kSuccess);
  EXPECT_EQ(forward(x, w, y, kImplicit), kShapeMismatch);
  ASSERT_EQ(describe(y_, {2, 31, 8, 8}), kSuccess);
  EXPECT_EQ(forward(x, w, y, kImplicit), kShapeMismatch);
  ASSERT_EQ(describe(y_, {2, 32, 8, 8}), kSuccess);
  EXPECT_EQ(forward(x, w, y, 4), kNotSupported) << "FFT";
  void* backend = nullptr;
  EXPECT_EQ(cudnnBackendCreateDescriptor(0, &backend), kNotSupported);
  EXPECT_STREQ(cudnnGetErrorString(kNotSupported), "CUDNN_STATUS_NOT_SUPPORTED");
}

TEST_F(CudnnStandIn, FilterGradientAddsWhereBetaSaysSo) {
  convolution();
  Floats x(2048), y(4096), first(4608), second(4608, 900);
  size_t bytes = 0;
  ASSERT_EQ(cudnnGetConvolutionBackwardFilterWorkspaceSize(handle_, x_, y_, convolution_, w_, 1, &bytes), kSuccess);
  EXPECT_EQ(bytes, 4608u * 4);
  Floats space(4608);
  const auto gradient = [&](Floats& dw, float beta) {
    const float one = 1;
    return cudnnConvolutionBackwardFilter(handle_, &one, x_, x.data(), y_, y.data(), convolution_, 1, space.data(),
                                          bytes, &beta, w_, dw.data());
  };
  ASSERT_EQ(gradient(first, 0), kSuccess);
  ASSERT_EQ(gradient(second, 0), kSuccess);
  EXPECT_EQ(first.get(), second.get());
  second.set(0, -3);
  ASSERT_EQ(gradient(first, 1), kSuccess);
  ASSERT_EQ(gradient(second, 1), kSuccess);
  EXPECT_NE(first.get(), second.get());
}

TEST_F(CudnnStandIn, NormalisationOfAViewLeavesTheRestAlone) {
  // Eight of sixteen channels of two images: channels 4 to 11 of a larger tensor.
  ASSERT_EQ(describe(x_, {2, 8, 4, 4}, {256, 16, 4, 1}), kSuccess);
  ASSERT_EQ(describe(z_, {1, 8, 1, 1}), kSuccess);
  Floats x(512), y(512), scale(8), bias(8), mean(8), variance(8), saved_mean(8), saved_inverse(8);
  const std::vector<float> before = y.get(), old_mean = mean.get();
  const float one = 1, zero = 0;
  ASSERT_EQ(cudnnBatchNormalizationForwardTrainingEx(handle_, 1, 0, &one, &zero, x_, x.data() + 64, nullptr, nullptr,
                                                     x_, y.data() + 64, z_, scale.data(), bias.data(), 0.1, mean.data(),
                                                     variance.data(), 1e-5, saved_mean.data(), saved_inverse.data(),
                                                     nullptr, nullptr, 0, nullptr, 0),
            kSuccess);
  const std::vector<float> after = y.get();
  for (std::size_t i = 0; i < after.size(); ++i) {
    const std::size_t channel = i % 256 / 16;
    EXPECT_EQ(after[i] != before[i], channel >= 4 && channel < 12) << i;
  }
  EXPECT_NE(mean.get(), old_mean);
}

TEST_F(CudnnStandIn, DropoutStatesAreWrittenFromTheSeed) {
  size_t bytes = 0;
  ASSERT_EQ(cudnnDropoutGetStatesSize(handle_, &bytes), kSuccess);
  EXPECT_EQ(bytes, 48u * 256 * 108);
  Floats first(bytes / 4), second(bytes / 4);
  void* dropout = nullptr;
  ASSERT_EQ(cudnnCreateDropoutDescriptor(&dropout), kSuccess);
  ASSERT_EQ(cudnnSetDropoutDescriptor(dropout, handle_, 0.5F, first.data(), bytes, 1), kSuccess);
  ASSERT_EQ(cudnnSetDropoutDescriptor(dropout, handle_, 0.5F, second.data(), bytes, 2), kSuccess);
  EXPECT_EQ(cudnnSetDropoutDescriptor(dropout, handle_, 0.5F, second.data(), bytes - 1, 2), kSizeInsufficient);
  std::vector<std::uint32_t> a(bytes / 4), b(bytes / 4);  // bits, not numbers
  cudaDeviceSynchronize();
  cudaMemcpy(a.data(), first.data(), bytes, cudaMemcpyDeviceToHost);
  cudaMemcpy(b.data(), second.data(), bytes, cudaMemcpyDeviceToHost);
  EXPECT_NE(a, b);
  cudnnDestroyDropoutDescriptor(dropout);
}

TEST_F(CudnnStandIn, RecurrentWeightsLieAsPyTorchExpectsThem) {
  // An LSTM of two layers in both directions, from 6 to 5.
  constexpr int kInput = 6, kHidden = 5, kLayers = 2, kDirections = 2, kGates = 4;
  void *network = nullptr, *sequences = nullptr, *out = nullptr;
  ASSERT_EQ(cudnnCreateRNNDescriptor(&network), kSuccess);
  ASSERT_EQ(cudnnSetRNNDescriptor_v8(network, 0, 2, 2, 1, 0, kFloat, kFloat, 0, kInput, kHidden, kHidden, kLayers,
                                     nullptr, 0),
            kSuccess);
  size_t bytes = 0;
  ASSERT_EQ(cudnnGetRNNWeightSpaceSize(handle_, network, &bytes), kSuccess);
  const int first = kGates * kHidden * (kInput + kHidden),
            second = kGates * kHidden * (kDirections * kHidden + kHidden);
  EXPECT_EQ(bytes,
            4u * static_cast<unsigned>(kDirections * (first + second) + kLayers * kDirections * 2 * kGates * kHidden));

  char base[1];
  std::size_t expected = 0;
  for (const bool matrices : {true, false}) {
    for (int layer = 0; layer < kLayers * kDirections; ++layer) {
      for (int linear = 0; linear < 2 * kGates; ++linear) {
        void *matrix = nullptr, *bias = nullptr;
        ASSERT_EQ(
            cudnnGetRNNWeightParams(handle_, network, layer, bytes, base, linear, matrices ? x_ : nullptr,
                                    matrices ? &matrix : nullptr, matrices ? nullptr : z_, matrices ? nullptr : &bias),
            kSuccess);
        int type = 0, count = 0, size[3] = {}, stride[3] = {};
        ASSERT_EQ(cudnnGetTensorNdDescriptor(matrices ? x_ : z_, 3, &type, &count, size, stride), kSuccess);
        ASSERT_EQ(count, 3);
        EXPECT_EQ(static_cast<char*>(matrices ? matrix : bias) - base, static_cast<std::ptrdiff_t>(expected))
            << layer << " " << linear;
        expected += 4u * static_cast<unsigned>(size[0] * size[1] * size[2]);
      }
    }
  }
  EXPECT_EQ(expected, bytes);

  constexpr int kSteps = 7, kBatch = 3;
  const int lengths[] = {7, 7, 7};
  ASSERT_EQ(cudnnCreateRNNDataDescriptor(&sequences), kSuccess);
  ASSERT_EQ(cudnnCreateRNNDataDescriptor(&out), kSuccess);
  ASSERT_EQ(cudnnSetRNNDataDescriptor(sequences, kFloat, 0, kSteps, kBatch, kInput, lengths, nullptr), kSuccess);
  ASSERT_EQ(cudnnSetRNNDataDescriptor(out, kFloat, 0, kSteps, kBatch, kHidden * kDirections, lengths, nullptr),
            kSuccess);
  size_t work = 0, kept = 1, reserve = 0;
  ASSERT_EQ(cudnnGetRNNTempSpaceSizes(handle_, network, 0, sequences, &work, &kept), kSuccess);
  EXPECT_EQ(kept, 0u) << "inference keeps nothing";
  ASSERT_EQ(cudnnGetRNNTempSpaceSizes(handle_, network, 1, sequences, &work, &reserve), kSuccess);
  EXPECT_GE(reserve, 4u * kLayers * kDirections * kSteps * kBatch * kHidden * kGates);

  ASSERT_EQ(describe(x_, {kLayers * kDirections, kBatch, kHidden}), kSuccess);
  Floats weights(bytes / 4), x(kSteps * kBatch * kInput), y(kSteps * kBatch * kHidden * kDirections);
  Floats workspace(work / 4 + 1), reserved(reserve / 4 + 1);
  const auto forward = [&](int mode, size_t reserve_bytes) {
    return cudnnRNNForward(handle_, network, mode, nullptr, sequences, x.data(), out, y.data(), x_, nullptr, nullptr,
                           x_, nullptr, nullptr, bytes, weights.data(), work, workspace.data(), reserve_bytes,
                           reserved.data());
  };
  ASSERT_EQ(forward(1, reserve), kSuccess);
  const std::vector<float> result = y.get();
  EXPECT_EQ(forward(1, reserve - 1), kSizeInsufficient);
  weights.set(bytes / 4 - 1, -1);
  ASSERT_EQ(forward(0, 0), kSuccess);
  EXPECT_NE(y.get(), result);
  cudnnDestroyRNNDataDescriptor(sequences);
  cudnnDestroyRNNDataDescriptor(out);
  cudnnDestroyRNNDescriptor(network);
}

}  // namespace
