// Code that the program loads itself, as libraries.

#include "api.h"
#include "call.h"
#include "registry.h"

using namespace cudart;

namespace {

static_assert(static_cast<int>(cudaJitOptimizationLevel) == static_cast<int>(CU_JIT_OPTIMIZATION_LEVEL));

cudaError_t get_variable(cudaError_t error, CUdeviceptr address, void** dptr) {
  if (error == cudaSuccess && dptr) *dptr = reinterpret_cast<void*>(address);
  return record(error);
}

}  // namespace

cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, enum cudaJitOption* jitOptions,
                                void** jitOptionsValues, unsigned int numJitOptions,
                                enum cudaLibraryOption* libraryOptions, void** libraryOptionValues,
                                unsigned int numLibraryOptions) {
  return call_context<&DriverTable::cuLibraryLoadData>(
      kDefaultStream, reinterpret_cast<CUlibrary*>(library), code, reinterpret_cast<CUjit_option*>(jitOptions),
      jitOptionsValues, numJitOptions, reinterpret_cast<CUlibraryOption*>(libraryOptions), libraryOptionValues,
      numLibraryOptions);
}

cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t* library, const char* fileName, enum cudaJitOption* jitOptions,
                                    void** jitOptionsValues, unsigned int numJitOptions,
                                    enum cudaLibraryOption* libraryOptions, void** libraryOptionValues,
                                    unsigned int numLibraryOptions) {
  return call_context<&DriverTable::cuLibraryLoadFromFile>(
      kDefaultStream, reinterpret_cast<CUlibrary*>(library), fileName, reinterpret_cast<CUjit_option*>(jitOptions),
      jitOptionsValues, numJitOptions, reinterpret_cast<CUlibraryOption*>(libraryOptions), libraryOptionValues,
      numLibraryOptions);
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  return call_context<&DriverTable::cuLibraryUnload>(kDefaultStream, reinterpret_cast<CUlibrary>(library));
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t* pKernel, cudaLibrary_t library, const char* name) {
  if (!pKernel) return record(cudaErrorInvalidValue);
  CUkernel kernel = nullptr;
  const cudaError_t error = ask_context<&DriverTable::cuLibraryGetKernel>(kDefaultStream, &kernel,
                                                                          reinterpret_cast<CUlibrary>(library), name);
  if (error != cudaSuccess) return record(error);
  *pKernel = kernel;
  return record(note_kernel(kernel));
}

cudaError_t cudaLibraryGetKernelCount(unsigned int* count, cudaLibrary_t lib) {
  return call_context<&DriverTable::cuLibraryGetKernelCount>(kDefaultStream, count, reinterpret_cast<CUlibrary>(lib));
}

cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t* kernels, unsigned int numKernels, cudaLibrary_t lib) {
  if (!kernels) return record(cudaErrorInvalidValue);
  // The driver may fill in fewer than asked for, and leaves the rest alone.
  for (unsigned i = 0; i < numKernels; ++i) kernels[i] = nullptr;
  cudaError_t error = ask_context<&DriverTable::cuLibraryEnumerateKernels>(kDefaultStream, kernels, numKernels,
                                                                           reinterpret_cast<CUlibrary>(lib));
  for (unsigned i = 0; error == cudaSuccess && i < numKernels && kernels[i]; ++i) error = note_kernel(kernels[i]);
  return record(error);
}

cudaError_t cudaLibraryGetGlobal(void** dptr, size_t* bytes, cudaLibrary_t library, const char* name) {
  CUdeviceptr address = 0;
  const cudaError_t error = ask_context<&DriverTable::cuLibraryGetGlobal>(kDefaultStream, &address, bytes,
                                                                          reinterpret_cast<CUlibrary>(library), name);
  return get_variable(error, address, dptr);
}

cudaError_t cudaLibraryGetManaged(void** dptr, size_t* bytes, cudaLibrary_t library, const char* name) {
  CUdeviceptr address = 0;
  const cudaError_t error = ask_context<&DriverTable::cuLibraryGetManaged>(kDefaultStream, &address, bytes,
                                                                           reinterpret_cast<CUlibrary>(library), name);
  return get_variable(error, address, dptr);
}
