// What nvcc's generated code calls before main, around launches and at exit.

#include "api.h"
#include "call.h"
#include "registry.h"
#include "thread_state.h"

using namespace cudart;

namespace {
Binary* binary_of(void** handle) { return reinterpret_cast<Binary*>(handle); }
}  // namespace

void** __cudaRegisterFatBinary(void* fatCubin) { return reinterpret_cast<void**>(register_binary(fatCubin)); }

// Loading waits for the first use, so that the end of registration changes nothing.
void __cudaRegisterFatBinaryEnd(void**) {}

void __cudaUnregisterFatBinary(void** fatCubinHandle) { unregister_binary(binary_of(fatCubinHandle)); }

void __cudaRegisterFunction(void** fatCubinHandle, const char* hostFun, char*, const char* deviceName, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
  register_function(binary_of(fatCubinHandle), hostFun, deviceName);
}

void __cudaRegisterVar(void** fatCubinHandle, char* hostVar, char*, const char* deviceName, int, size_t size, int,
                       int) {
  register_variable(binary_of(fatCubinHandle), hostVar, deviceName, size);
}

void __cudaRegisterManagedVar(void** fatCubinHandle, void** hostVarPtrAddress, char*, const char* deviceName, int,
                              size_t size, int, int) {
  register_managed_variable(binary_of(fatCubinHandle), hostVarPtrAddress, deviceName, size);
}

// A host variable that device code names needs the device to read host memory at will; device code that does so can't
// be loaded here.
void __cudaRegisterHostVar(void**, const char*, char*, size_t) {}

char __cudaInitModule(void** fatCubinHandle) {
  cudaError_t error = enter_context();
  if (error == cudaSuccess) error = place_managed_variables(binary_of(fatCubinHandle));
  return record(error) == cudaSuccess;
}

unsigned __cudaPushCallConfiguration(dim3 gridDim, dim3 blockDim, size_t sharedMem, struct CUstream_st* stream) {
  return push_configuration({gridDim, blockDim, sharedMem, stream}) ? cudaSuccess : record(cudaErrorMemoryAllocation);
}

cudaError_t __cudaPopCallConfiguration(dim3* gridDim, dim3* blockDim, size_t* sharedMem, void* stream) {
  CallConfiguration configuration{};
  if (!pop_configuration(configuration)) return record(cudaErrorMissingConfiguration);
  *gridDim = configuration.grid;
  *blockDim = configuration.block;
  *sharedMem = configuration.shared_bytes;
  *static_cast<void**>(stream) = configuration.stream;
  return cudaSuccess;
}

// The compiler keeps this handle for good, even if the driver is not there yet or refuses the code. So it names our own
// record, and each launch finds out anew, with the true error.
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* entryFuncAddr) {
  *kernel = reinterpret_cast<cudaKernel_t>(find_function(entryFuncAddr));
  return *kernel ? cudaSuccess : record(cudaErrorInvalidDeviceFunction);
}
