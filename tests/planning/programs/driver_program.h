// What the small programs of these tests share: calls of the driver that must succeed, numbers of the command line, the
// device's context.
#pragma once

#include <cuda.h>

#include <cstdio>
#include <cstdlib>

// The name that messages begin with.
extern const char* const kProgram;

inline void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "%s: %s: error %d\n", kProgram, what, static_cast<int>(result));
  std::exit(3);
}

inline int number(const char* text, const char* what) {
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (end == text || *end != '\0' || value < 0 || value > 100000000) {
    std::fprintf(stderr, "%s: %s expects a number, not '%s'\n", kProgram, what, text);
    std::exit(2);
  }
  return static_cast<int>(value);
}

// Makes the first device's primary context current.
inline CUcontext open_device(CUdevice* device) {
  CUcontext context = nullptr;
  check(cuInit(0), "cuInit");
  check(cuDeviceGet(device, 0), "cuDeviceGet");
  check(cuDevicePrimaryCtxRetain(&context, *device), "cuDevicePrimaryCtxRetain");
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  return context;
}
