/* What the simulated driver and a plug-in of kernels agree on. Plain C, versioned: either side may be older.
 *
 * A plug-in is a shared library that exports cudasim_plugin(). The driver calls it once, right after dlopen, and keeps
 * the library loaded for good. Both tables have their version as the first field, in every version. Plug-in authors use
 * cudasim/kernel_plugin.h.
 */
#ifndef CUDASIM_PLUGIN_ABI_H_
#define CUDASIM_PLUGIN_ABI_H_
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CUDASIM_PLUGIN_ABI 1

typedef struct CudasimLaunch {
  uint32_t grid[3];  /* blocks: x, y, z */
  uint32_t block[3]; /* threads of a block: x, y, z */
  uint32_t dynamic_shared_bytes;
} CudasimLaunch;

/* Work of one launch for the roofline: it takes the longer of flops and bytes at the device's rates, plus its latency.
 * With nanoseconds > 0 it takes exactly these, and the rest is not looked at. */
typedef struct CudasimCost {
  double flops;
  double bytes; /* read from and written to device memory */
  double nanoseconds;
} CudasimCost;

typedef struct CudasimKernel {
  const char* mangled_name;
  const uint32_t* parameter_sizes; /* parameter_count of them */
  uint32_t parameter_count;
  uint32_t reserved;
  /* Runs blocks first … last - 1 (numbered x fastest), each thread of a block after the other. params[i] points at
   * parameter i and is not written to. Called on one thread at a time for all kernels of all plug-ins. It may be left
   * by a longjmp (a fault). */
  void (*run)(const void* const* params, const CudasimLaunch* launch, uint64_t first_block, uint64_t last_block);
  CudasimCost (*cost)(const void* const* params, const CudasimLaunch* launch);
} CudasimKernel;

/* From the driver. */
typedef struct CudasimHost {
  uint32_t abi;
  uint32_t struct_size;
  /* Bytes that the running kernel touched; for instrumented plug-ins. */
  void (*access)(const void* address, size_t size, int write);
  /* 0: certainly neither device nor pinned memory. Lock-free. */
  int (*is_tracked)(const void* address);
} CudasimHost;

/* From the plug-in; lives as long as the process. */
typedef struct CudasimPlugin {
  uint32_t abi;
  uint32_t struct_size;
  uint32_t kernel_size;  /* sizeof(CudasimKernel) */
  uint32_t instrumented; /* 1: every load and store is reported */
  uint64_t kernel_count;
  const CudasimKernel* kernels;
  /* Instrumented plug-ins collect accesses; this hands the collected ones over. The driver calls it after every piece
   * of a launch, also after one that was left by a fault. NULL in plain plug-ins. */
  void (*flush)(void);
} CudasimPlugin;

/* NULL when the plug-in can't work with this driver (the driver then says so). */
const CudasimPlugin* cudasim_plugin(const CudasimHost* host);
typedef const CudasimPlugin* (*CudasimPluginEntry)(const CudasimHost* host);

#ifdef __cplusplus
}
#endif
#endif /* CUDASIM_PLUGIN_ABI_H_ */
