// The smallest of loops through the CUDA runtime: vectors from cudaMalloc, on one stream, freed as soon as they are not
// needed any more.
#include "../cuda_check.h"
#include "options.h"
#include "results.h"
#include "vector_kernels.cuh"

namespace {

constexpr int kThreads = 256;

using Vector = DeviceArray<unsigned>;

void one_round(cudaStream_t stream, PinnedArray<unsigned>& host, unsigned seed, int count) {
  const int blocks = (count + kThreads - 1) / kThreads;
  const auto length = static_cast<std::size_t>(count);
  Vector x(length), v(length);
  vector_fill<<<blocks, kThreads, 0, stream>>>(x.get(), seed, count);
  vector_fill<<<blocks, kThreads, 0, stream>>>(v.get(), ~seed, count);
  Vector y(length);
  vector_combine<<<blocks, kThreads, 0, stream>>>(y.get(), x.get(), v.get(), count);
  v.reset();
  Vector z(length);
  vector_combine<<<blocks, kThreads, 0, stream>>>(z.get(), y.get(), x.get(), count);
  CHECK_CUDA(cudaGetLastError());
  CHECK_CUDA(cudaMemcpyAsync(host.get(), z.get(), z.bytes(), cudaMemcpyDeviceToHost, stream));
  CHECK_CUDA(cudaStreamSynchronize(stream));
}

}  // namespace

int main(int argc, char** argv) {
  const vector::Options options = vector::parse(argc, argv, "vector_runtime");
  vector::Results results("vector_runtime");
  cudaStream_t stream = nullptr;
  CHECK_CUDA(cudaStreamCreate(&stream));
  {
    PinnedArray<unsigned> host(static_cast<std::size_t>(options.elements));
    unsigned seed = 0;
    for (int iteration = 0; iteration < options.iterations; ++iteration) {
      for (int round = 0; round < vector::kRounds; ++round, ++seed) {
        const int count = vector::length_of(options.elements, round);
        one_round(stream, host, seed, count);
        results.verify(host.get(), count, seed);
      }
    }
  }
  CHECK_CUDA(cudaStreamDestroy(stream));
  results.print();
  return 0;
}
