// CUDA's own pointer types, all ABI versions; nothing here links to a driver.
#pragma once

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cudaTypedefs.h>
