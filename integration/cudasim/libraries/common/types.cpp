#include "common/types.h"

#include <cuda_runtime_api.h>

namespace cudasim::libraries {
namespace {

int attribute(cudaDeviceAttr which) {
  int value = 0;
  // An error here is not the program's: it must not find it by cudaGetLastError.
  if (cudaDeviceGetAttribute(&value, which, 0) != cudaSuccess) cudaGetLastError();
  return value;
}

}  // namespace

int compute_capability() {
  static int known;
  if (int value = __atomic_load_n(&known, __ATOMIC_RELAXED)) return value;
  const int value = 10 * attribute(cudaDevAttrComputeCapabilityMajor) + attribute(cudaDevAttrComputeCapabilityMinor);
  __atomic_store_n(&known, value, __ATOMIC_RELAXED);
  return value;
}

int multiprocessors() {
  static int known;
  if (int value = __atomic_load_n(&known, __ATOMIC_RELAXED)) return value;
  const int value = attribute(cudaDevAttrMultiProcessorCount);
  __atomic_store_n(&known, value, __ATOMIC_RELAXED);
  return value;
}

double rate_of(Type type, bool tensor_float) {
  const int capability = compute_capability();
  switch (type) {
    case Type::kHalf:
    case Type::kBrainFloat:
    case Type::kByte:
      // A100: 312 of 19.5 TFLOP/s; H200: 989 of 67. Before Volta there are no tensor cores.
      return capability >= 90 ? 14.8 : capability >= 80 ? 16 : capability >= 70 ? 8 : 1;
    case Type::kDouble:
    case Type::kComplexDouble:
      // Tensor cores do double precision at single's rate on A100 and H200; consumer cards have a 32nd.
      return capability == 80 || capability >= 90 ? 1 : 1.0 / 32;
    default:
      return tensor_float && capability >= 80 ? (capability >= 90 ? 7.4 : 8) : 1;
  }
}

}  // namespace cudasim::libraries
