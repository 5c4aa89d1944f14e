// Driver calls in tests: an error is shown by its name.
#pragma once
#include <cuda.h>
#include <gtest/gtest.h>

#include <cstring>
#include <ostream>

// A value that the enumeration does not have, as a program of a later CUDA version passes it.
template <typename Enum>
Enum unknown_value(int number) {
  Enum value{};
  static_assert(sizeof value == sizeof number);
  std::memcpy(&value, &number, sizeof value);
  return value;
}

// Only a failed check asks for the name: the question is a driver call too, and some cases count calls.
inline void PrintTo(const CUresult& error, std::ostream* out) {
  const char* name = nullptr;
  *out << (cuGetErrorName(error, &name) == CUDA_SUCCESS ? name : "CUresult") << " (" << int(error) << ")";
}

#define EXPECT_CU(expected, call) EXPECT_EQ(call, expected)
#define EXPECT_OK(call) EXPECT_CU(CUDA_SUCCESS, call)
#define ASSERT_OK(call) ASSERT_EQ(call, CUDA_SUCCESS)
