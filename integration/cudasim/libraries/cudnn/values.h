// Numbers and descriptors of cuDNN's classic interface, as its reference has them (tests/cudasim/libraries compares the
// numbers with a toolkit's header where there is one).
#pragma once
#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <initializer_list>

#include "common/answer.h"
#include "common/types.h"
#include "common/work.h"

namespace cudasim::libraries::cudnn {

enum Status : int {
  kSuccess = 0,
  kNotInitialized = 1001,
  kBadParameter = 2000,
  kNullPointer = 2002,
  kSizeInsufficient = 2006,
  kShapeMismatch = 2008,
  kNotSupported = 3000,
  kHostAllocationFailed = 4003,
  kExecutionFailed = 5000,
};

enum DataType : int {
  kFloat = 0,
  kDouble = 1,
  kHalf = 2,
  kInt8 = 3,
  kInt32 = 4,
  kUint8 = 6,
  kBfloat16 = 9,
  kInt64 = 10,
};

enum Format : int { kChannelsFirst = 0, kChannelsLast = 1 };
enum MathType : int { kDefaultMath = 0, kTensorOpMath = 1, kTensorOpMathWithConversion = 2, kFmaMath = 3 };

// Newer than what any program was built with: programs refuse a library that is older.
constexpr int kVersion = 99900;
constexpr int kMostDimensions = 8;

struct Handle {
  cudaStream_t stream;
};

struct Tensor {
  int type;
  int count;  // of dimensions; 0: not set
  int size[kMostDimensions];
  int stride[kMostDimensions];
};

struct Filter {
  int type, format, count;
  int size[kMostDimensions];
};

struct Activation {
  int mode, nan;
  double coefficient;
};

struct Dropout {
  float probability;
  void* states;
  size_t state_bytes;
};

inline bool type_of(int type, Type* out) {
  switch (type) {
    case kFloat:
      return *out = Type::kSingle, true;
    case kDouble:
      return *out = Type::kDouble, true;
    case kHalf:
      return *out = Type::kHalf, true;
    case kBfloat16:
      return *out = Type::kBrainFloat, true;
    case kInt8:
    case kUint8:
      return *out = Type::kByte, true;
    case kInt32:
      return *out = Type::kInteger32, true;
    case kInt64:
      return *out = Type::kInteger64, true;
    default:
      return false;
  }
}

inline Type element_type(int type) {
  Type result = Type::kSingle;
  type_of(type, &result);
  return result;
}

inline uint64_t element_bytes(int type) { return bytes_of(element_type(type)); }

inline int status_of(cudaError_t error) { return error == cudaSuccess ? kSuccess : kExecutionFailed; }

uint64_t elements(const Tensor& tensor);
uint64_t elements(const Filter& filter);

// The bytes of a tensor at `data`: false where its strides make more than planes of rows of bytes.
bool part_of(const Tensor& tensor, const void* data, Part* out);
inline Part part_of(const Filter& filter, const void* data) {
  const uint64_t bytes = elements(filter) * element_bytes(filter.type);
  return {const_cast<void*>(data), bytes, 1, bytes, 1, 0, 0};
}

// A scale factor in host memory: double for tensors of doubles, else float. Null is zero.
double scalar(const void* value, int type);

template <class T>
int create(T** out) {
  if (!out) return kNullPointer;
  *out = static_cast<T*>(calloc(1, sizeof(T)));
  return *out ? kSuccess : kHostAllocationFailed;
}

template <class T>
int destroy(T* object) {
  free(object);
  return kSuccess;
}

}  // namespace cudasim::libraries::cudnn
