// cuda.h and cudaTypedefs.h with every ABI version declared, and without the macros that rename plain functions to
// their newest version. The only way in which this folder includes them.
#pragma once

#ifdef __cuda_cuda_h__
#error "cuda.h was included before preload/driver_api.h: its macros would turn old ABIs into new ones"
#endif
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cudaTypedefs.h>
