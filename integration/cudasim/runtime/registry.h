#pragma once

// The code that nvcc put into the program: fat binaries with their kernels and variables, registered by static
// constructors and given to the driver when first used (or all at once, CUDA_MODULE_LOADING=EAGER).
//
// A kernel is named by the address of its host stub, a variable by the address of its host shadow. Threads: any.

#include <cuda.h>
#include <driver_types.h>

namespace cudart {

struct Binary;
struct Function;

Binary* register_binary(const void* wrapper);
void unregister_binary(Binary* binary);
// Where memory is short these drop the entry: its use fails later with the error for an unknown one.
void register_function(Binary* binary, const void* stub, const char* device_name);
void register_variable(Binary* binary, const void* shadow, const char* device_name, size_t size);
void register_managed_variable(Binary* binary, void** shadow, const char* device_name, size_t size);
// Gives the shadows of the managed variables their addresses.
cudaError_t place_managed_variables(Binary* binary);

// The record behind a stub, null where none is registered. It lives until its binary is unregistered.
Function* find_function(const void* stub);
// The driver's handle; loads the binary if need be.
cudaError_t resolve(Function* function, CUkernel* kernel);

// For API functions that take a stub or a kernel handle that the runtime has given out. cudaErrorInvalidDeviceFunction
// for all else.
cudaError_t resolve_symbol(const void* stub_or_kernel, CUkernel* kernel);
cudaError_t note_kernel(CUkernel kernel);

// Address (in the current context) and size of a variable.
cudaError_t resolve_variable(const void* shadow, CUdeviceptr* address, size_t* size);

// Loads everything registered so far if the environment asks for it.
cudaError_t load_eagerly_if_asked();

}  // namespace cudart
