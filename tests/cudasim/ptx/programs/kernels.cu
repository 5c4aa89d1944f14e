// Kernels of every kind that nvcc compiles to PTX, each checked against the host: divergence, barriers, shuffles,
// shared memory, atomics, calls, tables, halves, printf, assert, malloc.
//
//   kernels [--race | --assert | --fault]
//
// Prints "ok NAME" or "FAILED NAME" for each, and exits with 1 where one has failed.
#include <cuda_fp16.h>

#include <cassert>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <vector>

namespace {

constexpr int kThreads = 256, kBlocks = 6, kCount = kThreads * kBlocks;

#define CHECK(call)                                            \
  do {                                                         \
    const cudaError_t error = (call);                          \
    if (error != cudaSuccess) {                                \
      std::printf("%s: %s\n", #call, cudaGetErrorName(error)); \
      std::exit(3);                                            \
    }                                                          \
  } while (0)

__constant__ int table[8] = {3, 1, 4, 1, 5, 9, 2, 6};
__device__ unsigned long long total;

__device__ __noinline__ int collatz(int n) {
  int steps = 0;
  while (n != 1) {
    n = n % 2 == 0 ? n / 2 : 3 * n + 1;
    ++steps;
  }
  return steps;
}
__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

__global__ void divergence(int* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  int value = 0;
  for (int a = 0; a < i % 7; ++a) {
    for (int b = a; b < 9; ++b) {
      if ((a + b + i) % 3 == 0) continue;
      if (b > i % 11) break;
      value += a * b;
    }
  }
  switch (i % 5) {
    case 0:
      value += 100;
      break;
    case 1:
      value -= 7;
    case 2:
      value *= 3;
      break;
    case 3:
      value ^= 0x55;
      break;
    default:
      value = -value;
  }
  out[i] = value + table[i & 7];
}
__global__ void calls(int* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = collatz(i % 97 + 1) + fibonacci(i % 9);
}
__global__ void reduce(const float* in, float* out) {
  __shared__ float part[kThreads / 32];
  float value = in[blockIdx.x * blockDim.x + threadIdx.x];
  for (int delta = 16; delta > 0; delta /= 2) value += __shfl_down_sync(0xffffffffu, value, delta);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x < 32) {
    value = threadIdx.x < kThreads / 32 ? part[threadIdx.x] : 0.0f;
    for (int delta = 16; delta > 0; delta /= 2) value += __shfl_xor_sync(0xffffffffu, value, delta);
    if (threadIdx.x == 0) out[blockIdx.x] = value;
  }
}
__global__ void transpose(const int* in, int* out, int n) {
  extern __shared__ int tile[];
  const int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  tile[threadIdx.y * 17 + threadIdx.x] = in[y * n + x];
  __syncthreads();
  out[(blockIdx.x * 16 + threadIdx.y) * n + blockIdx.y * 16 + threadIdx.x] = tile[threadIdx.x * 17 + threadIdx.y];
}
__global__ void histogram(const int* in, unsigned* bins) {
  __shared__ unsigned local[16];
  if (threadIdx.x < 16) local[threadIdx.x] = 0;
  __syncthreads();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&local[in[i] & 15], 1u);
  const unsigned same = __match_any_sync(0xffffffffu, in[i] & 1);
  if ((same & ((1u << threadIdx.x % 32) - 1)) == 0) atomicAdd(&total, static_cast<unsigned long long>(__popc(same)));
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}
__global__ void halves(const float* in, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const __half2 a = __floats2half2_rn(in[i], in[i] * 2);
  const __half2 b = __hfma2(a, a, __float2half2_rn(0.5f));
  out[i] = __low2float(b) + __high2float(b);
}
__global__ void wide(const double* in, long long* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const double x = sqrt(in[i]) * 1e3 + 1.0 / (in[i] + 1);
  out[i] = __double2ll_rn(x) * 1000003ll / (i + 1) + __umul64hi(0x123456789abcdefull * i, ~0ull / (i + 1));
}
__global__ void heap(int* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  int* const mine = static_cast<int*>(malloc(4 * sizeof(int)));
  for (int n = 0; n < 4; ++n) mine[n] = i + n;
  out[i] = mine[i & 3];
  free(mine);
}
__global__ void speak(int n) {
  if (threadIdx.x < 2)
    printf("thread %d of %u: %5.2f %s %c %llx%%\n", threadIdx.x, blockDim.x, n * 0.5, "text", 'x', 0x123456789aull);
}
__global__ void fill(int* out, int value) { out[blockIdx.x * blockDim.x + threadIdx.x] = value; }
__global__ void insist(int n) { assert(n == 3); }

int failures = 0;
void report(const char* name, bool good) {
  std::printf("%s %s\n", good ? "ok" : "FAILED", name);
  failures += !good;
}

template <class T>
struct Device {
  T* data = nullptr;
  explicit Device(const std::vector<T>& from) {
    CHECK(cudaMalloc(&data, from.size() * sizeof(T)));
    CHECK(cudaMemcpy(data, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~Device() { cudaFree(data); }
  std::vector<T> back(std::size_t count) const {
    std::vector<T> to(count);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(to.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost));
    return to;
  }
};

int host_collatz(int n) {
  int steps = 0;
  for (; n != 1; ++steps) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
  return steps;
}

void integers() {
  const int digits[8] = {3, 1, 4, 1, 5, 9, 2, 6};
  Device<int> out(std::vector<int>(kCount, 0));
  divergence<<<kBlocks, kThreads>>>(out.data);
  std::vector<int> got = out.back(kCount);
  bool good = true;
  for (int i = 0; i < kCount; ++i) {
    int value = 0;
    for (int a = 0; a < i % 7; ++a)
      for (int b = a; b < 9; ++b) {
        if ((a + b + i) % 3 == 0) continue;
        if (b > i % 11) break;
        value += a * b;
      }
    const int kind = i % 5;
    value = kind == 0   ? value + 100
            : kind == 1 ? (value - 7) * 3
            : kind == 2 ? value * 3
            : kind == 3 ? value ^ 0x55
                        : -value;
    good &= got[i] == value + digits[i & 7];
  }
  report("divergence", good);
  calls<<<kBlocks, kThreads>>>(out.data);
  got = out.back(kCount);
  const int fib[] = {0, 1, 1, 2, 3, 5, 8, 13, 21};
  good = true;
  for (int i = 0; i < kCount; ++i) good &= got[i] == host_collatz(i % 97 + 1) + fib[i % 9];
  report("calls", good);
  heap<<<kBlocks, kThreads>>>(out.data);
  got = out.back(kCount);
  good = true;
  for (int i = 0; i < kCount; ++i) good &= got[i] == i + (i & 3);
  report("heap", good);
}

void blocks() {
  std::vector<float> in(kCount);
  std::vector<int> numbers(48 * 48);
  for (int i = 0; i < kCount; ++i) in[i] = static_cast<float>(i % 13 - 6);
  for (int i = 0; i < 48 * 48; ++i) numbers[i] = i * 2654435761u >> 7;
  Device<float> values(in), sums(std::vector<float>(kBlocks, 0));
  reduce<<<kBlocks, kThreads>>>(values.data, sums.data);
  const std::vector<float> got = sums.back(kBlocks);
  bool good = true;
  for (int b = 0; b < kBlocks; ++b) {
    float want = 0;  // whole numbers: any order gives the same
    for (int t = 0; t < kThreads; ++t) want += in[b * kThreads + t];
    good &= got[b] == want;
  }
  report("reduce", good);
  Device<int> matrix(numbers), turned(std::vector<int>(48 * 48, 0));
  transpose<<<dim3(3, 3), dim3(16, 16), 16 * 17 * sizeof(int)>>>(matrix.data, turned.data, 48);
  const std::vector<int> t = turned.back(48 * 48);
  good = true;
  for (int y = 0; y < 48; ++y)
    for (int x = 0; x < 48; ++x) good &= t[x * 48 + y] == numbers[y * 48 + x];
  report("transpose", good);
  Device<unsigned> bins(std::vector<unsigned>(16, 0));
  histogram<<<kBlocks, kThreads>>>(matrix.data, bins.data);
  const std::vector<unsigned> counted = bins.back(16);
  std::vector<unsigned> want(16, 0);
  for (int i = 0; i < kCount; ++i) ++want[numbers[i] & 15];
  unsigned long long all = 0;
  CHECK(cudaMemcpyFromSymbol(&all, total, sizeof all));
  report("histogram", counted == want && all == kCount);
}

void floats() {
  std::vector<float> in(kCount);
  std::vector<double> big(kCount);
  for (int i = 0; i < kCount; ++i) {
    in[i] = static_cast<float>(i % 32) * 0.25f;
    big[i] = i * 17.0;
  }
  Device<float> values(in), out(std::vector<float>(kCount, 0));
  halves<<<kBlocks, kThreads>>>(values.data, out.data);
  const std::vector<float> got = out.back(kCount);
  bool good = true;
  for (int i = 0; i < kCount; ++i) {
    const float low = in[i] * in[i] + 0.5f, high = 4 * in[i] * in[i] + 0.5f;  // exact in f32; f16 rounds once
    good &= got[i] == __half2float(__float2half_rn(low)) + __half2float(__float2half_rn(high));
  }
  report("halves", good);
  Device<double> doubles(big);
  Device<long long> longs(std::vector<long long>(kCount, 0));
  wide<<<kBlocks, kThreads>>>(doubles.data, longs.data);
  const std::vector<long long> numbers = longs.back(kCount);
  good = true;
  for (int i = 0; i < kCount; ++i) {
    const double x = std::fma(std::sqrt(big[i]), 1e3, 1.0 / (big[i] + 1));
    const unsigned long long high = static_cast<unsigned long long>(
        static_cast<unsigned __int128>(0x123456789abcdefull * i) * (~0ull / (i + 1)) >> 64);
    good &= numbers[i] == std::llrint(x) * 1000003ll / (i + 1) + static_cast<long long>(high);
  }
  report("wide", good);
}

}  // namespace

int main(int count, char** arguments) {
  const char* const what = count > 1 ? arguments[1] : "";
  Device<int> out(std::vector<int>(kCount, 0));
  if (std::strcmp(what, "--race") == 0) {
    cudaStream_t streams[2];
    for (int s = 0; s < 2; ++s) {
      CHECK(cudaStreamCreateWithFlags(&streams[s], cudaStreamNonBlocking));
      fill<<<kBlocks, kThreads, 0, streams[s]>>>(out.data, s);
    }
    CHECK(cudaDeviceSynchronize());
    return 0;
  }
  if (std::strcmp(what, "--assert") == 0 || std::strcmp(what, "--fault") == 0) {
    if (what[2] == 'a') {
      insist<<<1, 32>>>(4);
    } else {
      fill<<<1, 32>>>(nullptr, 1);
    }
    std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
    return 0;
  }
  integers();
  blocks();
  floats();
  speak<<<1, 64>>>(5);
  CHECK(cudaDeviceSynchronize());
  return failures == 0 ? 0 : 1;
}
