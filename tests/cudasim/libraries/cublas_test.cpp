// cuBLAS and cuBLASLt as PyTorch calls them, by the numbers of the public headers.
#include <dlfcn.h>
#include <library_types.h>

#include <algorithm>
#include <cmath>

#include "tests/cudasim/libraries/device.h"

extern "C" {
int cublasCreate_v2(void**);
int cublasDestroy_v2(void*);
int cublasSetStream_v2(void*, cudaStream_t);
int cublasSetWorkspace_v2(void*, void*, size_t);
int cublasSetPointerMode_v2(void*, int);
int cublasSetMathMode(void*, int);
int cublasSgemm_v2(void*, int, int, int, int, int, const float*, const float*, int, const float*, int, const float*,
                   float*, int);
int cublasSgemmBatched(void*, int, int, int, int, int, const float*, const float* const*, int, const float* const*, int,
                       const float*, float* const*, int, int);
int cublasGemmEx(void*, int, int, int, int, int, const void*, const void*, cudaDataType, int, const void*, cudaDataType,
                 int, const void*, void*, cudaDataType, int, int, int);
int cublasSdot_v2(void*, int, const float*, int, const float*, int, float*);
int cublasSetVector(int, int, const void*, int, void*, int);
int cublasLtCreate(void**);
int cublasLtDestroy(void*);
int cublasLtMatrixLayoutCreate(void**, int, uint64_t, uint64_t, int64_t);
int cublasLtMatrixLayoutDestroy(void*);
int cublasLtMatmulDescCreate(void**, int, int);
int cublasLtMatmulDescDestroy(void*);
int cublasLtMatmulDescSetAttribute(void*, int, const void*, size_t);
int cublasLtMatmulPreferenceCreate(void**);
int cublasLtMatmulPreferenceDestroy(void*);
int cublasLtMatmulPreferenceSetAttribute(void*, int, const void*, size_t);
int cublasLtMatmulAlgoGetHeuristic(void*, void*, void*, void*, void*, void*, void*, int, void*, int*);
int cublasLtMatmul(void*, void*, const void*, const void*, void*, const void*, void*, const void*, const void*, void*,
                   void*, void*, const void*, void*, size_t, cudaStream_t);
}

namespace {

constexpr int kSuccess = 0, kNotInitialized = 1, kInvalidValue = 7, kNotSupported = 15;
constexpr int kPlain = 0, kTransposed = 1, kCompute32 = 68;

class CublasStandIn : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cublasCreate_v2(&handle_), kSuccess);
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cublasSetStream_v2(handle_, stream_), kSuccess);
  }
  void TearDown() override {
    EXPECT_EQ(cublasDestroy_v2(handle_), kSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
  }
  int multiply(const Floats& a, const Floats& b, const Floats& c, float beta = 0, int m = 4, int n = 3, int k = 5,
               int ldc = 8) {
    return cublasSgemm_v2(handle_, kPlain, kPlain, m, n, k, &one_, a.data(), m, b.data(), k, &beta, c.data(), ldc);
  }

  void* handle_ = nullptr;
  cudaStream_t stream_ = nullptr;
  float one_ = 1, zero_ = 0;
};

TEST_F(CublasStandIn, ProductWritesItsElementsAndNothingBetween) {
  Floats a(20), b(15), c(24);
  const std::vector<float> before = c.get();
  ASSERT_EQ(multiply(a, b, c), kSuccess);
  const std::vector<float> after = c.get();
  for (std::size_t i = 0; i < after.size(); ++i) {
    const bool inside = i % 8 < 4;
    EXPECT_EQ(after[i] != before[i], inside) << i;
    EXPECT_TRUE(!inside || std::abs(after[i]) <= 1) << after[i];
  }
}

TEST_F(CublasStandIn, ResultIsAFunctionOfAllOperands) {
  Floats a(20), b(15), c(24), other_a(20), other_c(24);
  ASSERT_EQ(multiply(a, b, c), kSuccess);
  ASSERT_EQ(multiply(other_a, b, other_c), kSuccess);
  EXPECT_EQ(c.get(), other_c.get()) << "equal bytes at other addresses";
  const std::vector<float> first = c.get();
  for (const auto& [block, at] : {std::pair<Floats&, std::size_t>{a, 19}, {b, 14}}) {
    block.set(at, -1);
    ASSERT_EQ(multiply(a, b, other_c), kSuccess);
    EXPECT_NE(other_c.get(), first);
  }
}

TEST_F(CublasStandIn, BetaSaysWhetherTheOldValuesCount) {
  Floats a(20), b(15), c(24), other(24, 500);
  ASSERT_EQ(multiply(a, b, c, 0), kSuccess);
  ASSERT_EQ(multiply(a, b, other, 0), kSuccess);
  EXPECT_EQ(c.get()[0], other.get()[0]);
  Floats again(24), another(24, 500);
  ASSERT_EQ(multiply(a, b, again, 1), kSuccess);
  ASSERT_EQ(multiply(a, b, another, 1), kSuccess);
  EXPECT_NE(again.get()[0], another.get()[0]);
}

TEST_F(CublasStandIn, WrongArgumentsAreRefusedAsDocumented) {
  Floats a(20), b(15), c(24);
  EXPECT_EQ(cublasSgemm_v2(nullptr, kPlain, kPlain, 4, 3, 5, &one_, a.data(), 4, b.data(), 5, &zero_, c.data(), 8),
            kNotInitialized);
  EXPECT_EQ(multiply(a, b, c, 0, 4, 3, 5, 3), kInvalidValue);
  EXPECT_EQ(multiply(a, b, c, 0, -1), kInvalidValue);
  EXPECT_EQ(cublasSgemm_v2(handle_, 7, kPlain, 4, 3, 5, &one_, a.data(), 4, b.data(), 5, &zero_, c.data(), 8),
            kInvalidValue);
  EXPECT_EQ(cublasGemmEx(handle_, kPlain, kPlain, 4, 3, 5, &one_, a.data(), CUDA_R_4F_E2M1, 4, b.data(), CUDA_R_4F_E2M1,
                         5, &zero_, c.data(), CUDA_R_32F, 8, kCompute32, -1),
            kNotSupported);
  EXPECT_EQ(cublasSetWorkspace_v2(handle_, a.data() + 1, 16), kInvalidValue);
  EXPECT_EQ(cublasSetVector(1, 4, &one_, 1, a.data(), 1), kNotSupported);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(CublasStandIn, TimeIsTheRoofline) {
  Floats a(1 << 20), b(1 << 20), c(1 << 20);
  const auto timed = [&](int size) {
    return device_microseconds(stream_, [&] { EXPECT_EQ(multiply(a, b, c, 0, size, size, size, size), kSuccess); });
  };
  const double arithmetic = 2.0 * 1024 * 1024 * 1024 / kFlopsPerMicrosecond + kLatency;
  EXPECT_GE(timed(1024), arithmetic);
  EXPECT_LE(timed(1024), arithmetic + kBetweenEvents);
  // A product by one column is as long as the matrix's bytes. The first makes the workspace for its split sums.
  ASSERT_EQ(multiply(a, b, c, 0, 1024, 1, 1024, 1024), kSuccess);
  const double bytes = 4.0 * (1024 * 1024 + 2 * 1024) / kBytesPerMicrosecond + kLatency;
  const double vector =
      device_microseconds(stream_, [&] { EXPECT_EQ(multiply(a, b, c, 0, 1024, 1, 1024, 1024), kSuccess); });
  EXPECT_GE(vector, bytes);
  EXPECT_LE(vector, bytes + kBetweenEvents);
  // TensorFloat-32 is eight times as fast here.
  ASSERT_EQ(cublasSetMathMode(handle_, 3), kSuccess);
  EXPECT_LE(timed(1024), (arithmetic - kLatency) / 8 + kLatency + kBetweenEvents);
}

TEST_F(CublasStandIn, LongSumsAreSplitIntoTheWorkspace) {
  constexpr int kSize = 64, kLong = 65536;
  Floats a(kSize * kLong), b(kSize * kLong), c(kSize * kSize), workspace(1 << 20);
  const std::vector<float> before = workspace.get();
  ASSERT_EQ(cublasSetWorkspace_v2(handle_, workspace.data(), workspace.bytes()), kSuccess);
  ASSERT_EQ(multiply(a, b, c, 0, kSize, kSize, kLong, kSize), kSuccess);
  EXPECT_NE(workspace.get(), before);
  workspace.set(before);
  ASSERT_EQ(multiply(a, b, c, 0, kSize, kSize, 256, kSize), kSuccess);
  EXPECT_EQ(workspace.get(), before) << "a short sum needs none";
}

TEST_F(CublasStandIn, OwnWorkspaceIsMadeWhenItIsNeeded) {
  constexpr int kSize = 64, kLong = 65536;
  Floats a(kSize * kLong), b(kSize * kLong), c(kSize * kSize);
  std::size_t before = 0, after = 0, total = 0;
  ASSERT_EQ(cudaMemGetInfo(&before, &total), cudaSuccess);
  ASSERT_EQ(multiply(a, b, c, 0, kSize, kSize, kLong, kSize), kSuccess);
  ASSERT_EQ(cudaMemGetInfo(&after, &total), cudaSuccess);
  EXPECT_EQ(before - after, std::size_t{4} << 20);
}

TEST_F(CublasStandIn, TablesOfPointersAreFollowed) {
  Floats a(20), b(15), first(24), second(24), expected(24);
  ASSERT_EQ(multiply(a, b, expected, 0, 4, 3, 5, 4), kSuccess);
  const float* in[] = {a.data(), a.data()};
  const float* in_b[] = {b.data(), b.data()};
  float* out[] = {first.data(), second.data()};
  void* tables = nullptr;
  ASSERT_EQ(cudaMalloc(&tables, 6 * sizeof(void*)), cudaSuccess);
  const auto table = [&](int i) { return static_cast<float**>(tables) + 2 * i; };
  cudaMemcpy(table(0), in, sizeof(in), cudaMemcpyHostToDevice);
  cudaMemcpy(table(1), in_b, sizeof(in_b), cudaMemcpyHostToDevice);
  cudaMemcpy(table(2), out, sizeof(out), cudaMemcpyHostToDevice);
  const std::vector<float> before = second.get();
  ASSERT_EQ(
      cublasSgemmBatched(handle_, kPlain, kPlain, 4, 3, 5, &one_, table(0), 4, table(1), 5, &zero_, table(2), 4, 2),
      kSuccess);
  const std::vector<float> after = second.get();
  for (std::size_t i = 0; i < after.size(); ++i) EXPECT_EQ(after[i] != before[i], i < 12) << i;
  EXPECT_NE(first.get()[0], 1);
  cudaFree(tables);
}

TEST_F(CublasStandIn, ScalarsOfTheDeviceAreReadThere) {
  Floats x(100), y(100), result(1), other(1);
  ASSERT_EQ(cublasSdot_v2(handle_, 100, x.data(), 1, y.data(), 1, result.data()), kNotSupported);
  ASSERT_EQ(cublasSetPointerMode_v2(handle_, 1), kSuccess);
  ASSERT_EQ(cublasSdot_v2(handle_, 100, x.data(), 1, y.data(), 1, result.data()), kSuccess);
  const std::vector<float> first = result.get();
  y.set(99, -5);
  ASSERT_EQ(cublasSdot_v2(handle_, 100, x.data(), 1, y.data(), 1, other.data()), kSuccess);
  EXPECT_NE(other.get(), first);
}

// Two products in one stream are in order, however early an adversary runs each: the second reads what the first wrote.
TEST_F(CublasStandIn, WorkIsOnTheHandlesStream) {
  Floats a(20), b(15), c(24), chained(24), expected(24);
  ASSERT_EQ(multiply(a, b, c, 0, 4, 3, 5, 4), kSuccess);
  ASSERT_EQ(
      cublasSgemm_v2(handle_, kPlain, kTransposed, 4, 4, 3, &one_, c.data(), 4, c.data(), 4, &zero_, chained.data(), 4),
      kSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  ASSERT_EQ(cublasSgemm_v2(handle_, kPlain, kTransposed, 4, 4, 3, &one_, c.data(), 4, c.data(), 4, &zero_,
                           expected.data(), 4),
            kSuccess);
  EXPECT_EQ(chained.get(), expected.get());
}

class CublasLtStandIn : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cublasLtCreate(&handle_), kSuccess);
    ASSERT_EQ(cublasLtMatmulDescCreate(&operation_, kCompute32, CUDA_R_32F), kSuccess);
    ASSERT_EQ(cublasLtMatmulPreferenceCreate(&preference_), kSuccess);
    const auto layout = [](void** out, uint64_t rows, uint64_t columns) {
      ASSERT_EQ(cublasLtMatrixLayoutCreate(out, CUDA_R_32F, rows, columns, static_cast<int64_t>(rows)), kSuccess);
    };
    layout(&a_, kRows, kSum);
    layout(&b_, kSum, kColumns);
    layout(&c_, kRows, kColumns);
  }
  void TearDown() override {
    for (void* layout : {a_, b_, c_}) EXPECT_EQ(cublasLtMatrixLayoutDestroy(layout), kSuccess);
    EXPECT_EQ(cublasLtMatmulPreferenceDestroy(preference_), kSuccess);
    EXPECT_EQ(cublasLtMatmulDescDestroy(operation_), kSuccess);
    EXPECT_EQ(cublasLtDestroy(handle_), kSuccess);
  }
  template <class T>
  void set(int attribute, T value) {
    ASSERT_EQ(cublasLtMatmulDescSetAttribute(operation_, attribute, &value, sizeof(value)), kSuccess);
  }
  int multiply(const Floats& a, const Floats& b, Floats& d) {
    const float one = 1, zero = 0;
    return cublasLtMatmul(handle_, operation_, &one, a.data(), a_, b.data(), b_, &zero, d.data(), c_, d.data(), c_,
                          nullptr, nullptr, 0, nullptr);
  }

  static constexpr uint64_t kRows = 4, kColumns = 3, kSum = 5;
  static constexpr int kEpilogue = 7, kBias = 8, kAuxiliary = 11, kAuxiliaryLeading = 12;
  void *handle_ = nullptr, *operation_ = nullptr, *preference_ = nullptr;
  void *a_ = nullptr, *b_ = nullptr, *c_ = nullptr;
};

TEST_F(CublasLtStandIn, HeuristicStaysWithinTheWorkspaceOfThePreference) {
  struct {
    uint64_t algorithm[8];
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
  } result{};
  int found = 0;
  void *a = nullptr, *b = nullptr, *c = nullptr;
  ASSERT_EQ(cublasLtMatrixLayoutCreate(&a, CUDA_R_32F, 64, 65536, 64), kSuccess);
  ASSERT_EQ(cublasLtMatrixLayoutCreate(&b, CUDA_R_32F, 65536, 64, 65536), kSuccess);
  ASSERT_EQ(cublasLtMatrixLayoutCreate(&c, CUDA_R_32F, 64, 64, 64), kSuccess);
  ASSERT_EQ(cublasLtMatmulAlgoGetHeuristic(handle_, operation_, a, b, c, c, preference_, 1, &result, &found), kSuccess);
  EXPECT_EQ(found, 1);
  EXPECT_EQ(result.workspace, 0u);
  const uint64_t limit = 1 << 20;
  ASSERT_EQ(cublasLtMatmulPreferenceSetAttribute(preference_, 1, &limit, sizeof(limit)), kSuccess);
  ASSERT_EQ(cublasLtMatmulAlgoGetHeuristic(handle_, operation_, a, b, c, c, preference_, 1, &result, &found), kSuccess);
  EXPECT_GT(result.workspace, 0u);
  EXPECT_LE(result.workspace, limit);
  EXPECT_EQ(cublasLtMatmulAlgoGetHeuristic(handle_, operation_, a, a, c, c, preference_, 1, &result, &found),
            kInvalidValue)
      << "sizes that do not fit";
  EXPECT_EQ(found, 0);
  for (void* layout : {a, b, c}) cublasLtMatrixLayoutDestroy(layout);
}

TEST_F(CublasLtStandIn, EpilogueReadsAndWritesWhatItSays) {
  Floats a(20), b(15), d(12), plain(12), bias(4), auxiliary(12);
  ASSERT_EQ(multiply(a, b, plain), kSuccess);
  set(kEpilogue, 4 | 32 | 128);  // GELU of the sum with a bias; what it was of is kept
  set<void*>(kBias, bias.data());
  set<void*>(kAuxiliary, auxiliary.data());
  set<int64_t>(kAuxiliaryLeading, 4);
  const std::vector<float> before = auxiliary.get();
  ASSERT_EQ(multiply(a, b, d), kSuccess);
  const std::vector<float> first = d.get();
  EXPECT_NE(first, plain.get());
  EXPECT_NE(auxiliary.get(), before);
  bias.set(3, -7);
  ASSERT_EQ(multiply(a, b, d), kSuccess);
  EXPECT_NE(d.get(), first);
  // The gradient of a bias is written.
  set(kEpilogue, 512);
  const std::vector<float> old_bias = bias.get();
  ASSERT_EQ(multiply(a, b, d), kSuccess);
  EXPECT_NE(bias.get(), old_bias);
}

TEST_F(CublasLtStandIn, WrongArgumentsAreRefused) {
  Floats a(20), b(15), d(12);
  const float one = 1;
  EXPECT_EQ(cublasLtMatmul(nullptr, operation_, &one, a.data(), a_, b.data(), b_, &one, d.data(), c_, d.data(), c_,
                           nullptr, nullptr, 0, nullptr),
            kNotInitialized);
  EXPECT_EQ(cublasLtMatmul(handle_, operation_, &one, a.data(), a_, b.data(), a_, &one, d.data(), c_, d.data(), c_,
                           nullptr, nullptr, 0, nullptr),
            kInvalidValue);
  EXPECT_EQ(cublasLtMatmulDescSetAttribute(operation_, 99, &one, sizeof(one)), kInvalidValue);
}

// A framework's libraries name NVIDIA's symbol versions.
TEST(LibraryVersions, SymbolsHaveThem) {
  const std::pair<const char*, const char*> expected[] = {
      {"libcublas.so.13", "cublasCreate_v2"},    {"libcublasLt.so.13", "cublasLtMatmul"},
      {"libcudnn.so.9", "cudnnCreate"},          {"libcusparse.so.12", "cusparseCreate"},
      {"libcusolver.so.12", "cusolverDnCreate"}, {"libcufft.so.12", "cufftCreate"}};
  for (const auto& [file, symbol] : expected) {
    void* library = dlopen(file, RTLD_NOW);
    ASSERT_NE(library, nullptr) << dlerror();
    EXPECT_NE(dlvsym(library, symbol, file), nullptr) << file << ": " << dlerror();
  }
}

TEST(LibrariesThatAreNotThere, FailToBeCreatedAsDocumented) {
  const auto call = [](const char* file, const char* symbol, auto... arguments) {
    void* library = dlopen(file, RTLD_NOW);
    EXPECT_NE(library, nullptr) << dlerror();
    return reinterpret_cast<int (*)(decltype(arguments)...)>(dlsym(library, symbol))(arguments...);
  };
  void* handle = nullptr;
  EXPECT_EQ(call("libcusparse.so.12", "cusparseCreate", &handle), 1);
  EXPECT_EQ(call("libcusolver.so.12", "cusolverDnCreate", &handle), 1);
  EXPECT_EQ(call("libcufft.so.12", "cufftCreate", &handle), 7);
  EXPECT_EQ(call("libnccl.so.2", "ncclCommInitAll", &handle, 2, static_cast<const int*>(nullptr)), 2);
  EXPECT_EQ(call("libnccl.so.2", "ncclCommInitAll", &handle, 1, static_cast<const int*>(nullptr)), 0);
  EXPECT_EQ(call("libnccl.so.2", "ncclCommDestroy", handle), 0);
}

}  // namespace
