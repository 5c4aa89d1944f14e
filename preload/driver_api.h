// cuda.h and cudaTypedefs.h with every ABI version declared, and without the macros that rename plain functions to
// their newest version: the whole folder is compiled with __CUDA_API_VERSION_INTERNAL, so that no other header can
// bring them in differently.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#error "compile with __CUDA_API_VERSION_INTERNAL: the macros of cuda.h would turn old ABIs into new ones"
#endif
#include <cuda.h>
#include <cudaTypedefs.h>
