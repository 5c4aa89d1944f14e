// The CUDA driver API, found at run time: the program starts, and says why, where there is no driver. Functions have
// the names and versions that cuda.h gives them.
#pragma once
#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace facts {

// What the kit can't do without; a driver that lacks one is refused.
#define FACTS_FUNCTIONS(X)    \
  X(cuInit)                   \
  X(cuDriverGetVersion)       \
  X(cuGetErrorName)           \
  X(cuDeviceGet)              \
  X(cuDeviceGetCount)         \
  X(cuDeviceGetName)          \
  X(cuDeviceGetAttribute)     \
  X(cuDevicePrimaryCtxRetain) \
  X(cuCtxSetCurrent)          \
  X(cuCtxSynchronize)         \
  X(cuMemGetInfo)             \
  X(cuModuleLoadData)         \
  X(cuModuleGetFunction)      \
  X(cuStreamCreate)           \
  X(cuStreamSynchronize)      \
  X(cuStreamQuery)            \
  X(cuStreamWaitEvent)        \
  X(cuEventCreate)            \
  X(cuEventDestroy)           \
  X(cuEventRecord)            \
  X(cuEventQuery)             \
  X(cuEventSynchronize)       \
  X(cuEventElapsedTime)       \
  X(cuLaunchKernel)           \
  X(cuMemAlloc)               \
  X(cuMemFree)                \
  X(cuMemHostAlloc)           \
  X(cuMemFreeHost)            \
  X(cuMemHostRegister)        \
  X(cuMemHostUnregister)      \
  X(cuMemcpyHtoD)             \
  X(cuMemcpyDtoH)             \
  X(cuMemcpyHtoDAsync)        \
  X(cuMemcpyDtoHAsync)        \
  X(cuMemcpyDtoDAsync)        \
  X(cuMemsetD32Async)         \
  X(cuPointerGetAttribute)    \
  X(cuMemAddressReserve)      \
  X(cuMemAddressFree)         \
  X(cuMemCreate)              \
  X(cuMemRelease)             \
  X(cuMemMap)                 \
  X(cuMemUnmap)               \
  X(cuMemSetAccess)           \
  X(cuMemGetAllocationGranularity)
// May be absent, then null: older drivers, and the simulator.
#define FACTS_OPTIONAL_FUNCTIONS(X) \
  X(cuMemAllocAsync)                \
  X(cuMemFreeAsync)                 \
  X(cuFuncGetParamInfo)             \
  X(cuTensorMapEncodeTiled)

struct Driver {
#define FACTS_MEMBER(name) decltype(&::name) name = nullptr;
  FACTS_FUNCTIONS(FACTS_MEMBER)
  FACTS_OPTIONAL_FUNCTIONS(FACTS_MEMBER)
#undef FACTS_MEMBER

  // Of the simulated driver only; null on a real one.
  int (*cudasim_counters)(void*) = nullptr;

  bool simulated() const { return cudasim_counters != nullptr; }
  std::string error_name(CUresult result) const;
};

// Loads libcuda.so.1 once. Throws where there is none, or one that lacks something.
const Driver& driver();

class DriverError : public std::runtime_error {
 public:
  DriverError(CUresult result, const std::string& call);
  CUresult result;
};

inline void check(CUresult result, const char* call) {
  if (result != CUDA_SUCCESS) [[unlikely]]
    throw DriverError(result, call);
}
// CALL(cuMemAlloc, &p, n): the driver's function, its error thrown.
#define FACTS_TEXT_(name) #name
#define FACTS_TEXT(name) FACTS_TEXT_(name)
#define CALL(name, ...) ::facts::check(::facts::driver().name(__VA_ARGS__), FACTS_TEXT(name))

}  // namespace facts
