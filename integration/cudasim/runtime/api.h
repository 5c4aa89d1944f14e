#pragma once

// The public declarations that the files of this folder define. In a shared library they are its exports; in the static
// one they are hidden, as the real one's are, so that a program made with it shows none of them to other libraries.
//
// Files named streamed_* are compiled twice: plain, and with CUDA_API_PER_THREAD_DEFAULT_STREAM, under which the
// toolkit's header renames exactly the functions that have a per-thread variant (_ptds, _ptsz).

#ifdef CUDASIM_RUNTIME_STATIC
#pragma GCC visibility push(hidden)
#else
#pragma GCC visibility push(default)
#endif

#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>

extern "C" {

// Called by code that nvcc generates; declared here as in the toolkit's crt/host_runtime.h and crt/device_functions.h,
// which only the compiler itself may include.
void** __cudaRegisterFatBinary(void* fatCubin);
void __cudaRegisterFatBinaryEnd(void** fatCubinHandle);
void __cudaUnregisterFatBinary(void** fatCubinHandle);
void __cudaRegisterVar(void** fatCubinHandle, char* hostVar, char* deviceAddress, const char* deviceName, int ext,
                       size_t size, int constant, int global);
void __cudaRegisterManagedVar(void** fatCubinHandle, void** hostVarPtrAddress, char* deviceAddress,
                              const char* deviceName, int ext, size_t size, int constant, int global);
void __cudaRegisterHostVar(void** fatCubinHandle, const char* deviceName, char* hostVar, size_t size);
char __cudaInitModule(void** fatCubinHandle);
void __cudaRegisterFunction(void** fatCubinHandle, const char* hostFun, char* deviceFun, const char* deviceName,
                            int thread_limit, uint3* tid, uint3* bid, dim3* bDim, dim3* gDim, int* wSize);
unsigned __cudaPushCallConfiguration(dim3 gridDim, dim3 blockDim, size_t sharedMem, struct CUstream_st* stream);
cudaError_t __cudaPopCallConfiguration(dim3* gridDim, dim3* blockDim, size_t* sharedMem, void* stream);
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* entryFuncAddr);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 gridDim, dim3 blockDim, void** args, size_t sharedMem,
                               cudaStream_t stream);
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 gridDim, dim3 blockDim, void** args, size_t sharedMem,
                                    cudaStream_t stream);

// In no header of CUDA 13, but what programs compiled with CUDA 12 call.
cudaError_t cudaGetDeviceProperties_v2(void* prop, int device);
cudaError_t cudaEventElapsedTime_v2(float* ms, cudaEvent_t start, cudaEvent_t end);
}

#pragma GCC visibility pop
