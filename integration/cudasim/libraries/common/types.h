// Types of numbers, as far as sizes and rates go.
#pragma once
#include <stdint.h>

namespace cudasim::libraries {

enum class Type : uint32_t {
  kSingle,
  kDouble,
  kHalf,
  kBrainFloat,
  kByte,
  kInteger32,
  kInteger64,
  kComplexSingle,
  kComplexDouble
};

constexpr uint64_t bytes_of(Type type) {
  switch (type) {
    case Type::kByte:
      return 1;
    case Type::kHalf:
    case Type::kBrainFloat:
      return 2;
    case Type::kDouble:
    case Type::kInteger64:
    case Type::kComplexSingle:
      return 8;
    case Type::kComplexDouble:
      return 16;
    default:
      return 4;
  }
}

// A product's arithmetic in multiples of single precision's rate on the current device: of its tensor cores for half
// precision, and of double precision. From the data sheets; a device of another compute capability counts as the next
// lower one.
double rate_of(Type type, bool tensor_float);

// The current device's compute capability, times ten, and its multiprocessors; asked once.
int compute_capability();
int multiprocessors();

}  // namespace cudasim::libraries
