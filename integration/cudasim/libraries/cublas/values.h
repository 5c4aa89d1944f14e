// Numbers of cuBLAS's public interface, as its reference has them (tests/cudasim/libraries compares them with a
// toolkit's header where there is one).
#pragma once
#include <cuda_runtime_api.h>
#include <library_types.h>
#include <stddef.h>
#include <stdint.h>

#include "common/answer.h"
#include "common/types.h"
#include "common/work.h"

namespace cudasim::libraries::cublas {

enum Status : int {
  kSuccess = 0,
  kNotInitialized = 1,
  kAllocationFailed = 3,
  kInvalidValue = 7,
  kArchitectureMismatch = 8,
  kMappingError = 11,
  kExecutionFailed = 13,
  kInternalError = 14,
  kNotSupported = 15,
  kLicenseError = 16,
};

enum Operation : int { kPlain = 0, kTransposed = 1, kConjugate = 2 };
enum PointerMode : int { kHost = 0, kDevice = 1 };
enum Side : int { kLeft = 0, kRight = 1 };
enum MathMode : int { kDefaultMath = 0, kTensorFloatMath = 3 };
enum ComputeType : int {
  kCompute16 = 64,
  kCompute32 = 68,
  kCompute32Fast16 = 74,
  kCompute32FastBrainFloat = 75,
  kCompute32FastTensorFloat = 77,
  kCompute64 = 70,
  kComputeInteger = 72,
};

constexpr int kVersion = 130400;

// Bytes and rates; false for types that no product here takes (fp4, fp6, four-bit integers).
constexpr bool type_of(cudaDataType type, Type* out) {
  switch (type) {
    case CUDA_R_32F:
      return *out = Type::kSingle, true;
    case CUDA_R_64F:
      return *out = Type::kDouble, true;
    case CUDA_R_16F:
      return *out = Type::kHalf, true;
    case CUDA_R_16BF:
      return *out = Type::kBrainFloat, true;
    case CUDA_R_8I:
    case CUDA_R_8U:
    case CUDA_R_8F_E4M3:
    case CUDA_R_8F_E5M2:
      return *out = Type::kByte, true;
    case CUDA_R_32I:
    case CUDA_R_32U:
      return *out = Type::kInteger32, true;
    case CUDA_C_32F:
      return *out = Type::kComplexSingle, true;
    case CUDA_C_64F:
      return *out = Type::kComplexDouble, true;
    default:
      return false;
  }
}

inline Status status_of(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return kSuccess;
    case cudaErrorMemoryAllocation:
      return kAllocationFailed;
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorInitializationError:
      return kNotInitialized;
    default:
      return kExecutionFailed;
  }
}

// Bytes of a column-major matrix of `rows` by `columns`, `leading` elements from one column to the next.
inline Part matrix(const void* data, int64_t rows, int64_t columns, int64_t leading, uint64_t element,
                   int64_t batch = 1, int64_t stride = 0) {
  // A batch with stride 0 is one matrix for all.
  const bool one = batch <= 1 || stride == 0;
  return {const_cast<void*>(data),
          static_cast<uint64_t>(rows) * element,
          static_cast<uint64_t>(columns),
          static_cast<uint64_t>(leading) * element,
          one ? 1 : static_cast<uint64_t>(batch),
          one ? 0 : static_cast<uint64_t>(stride) * element,
          0};
}

// What a product with few results and a long sum splits, and sums up in a workspace: as many parts as fill the device.
uint64_t split_workspace(int64_t m, int64_t n, int64_t k, int64_t batch, uint64_t limit);

}  // namespace cudasim::libraries::cublas
